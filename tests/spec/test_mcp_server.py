"""The MCP server, driven by the SDK's own client over stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

import gatekeeper
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.tools import SpecTools

FOLDER = Path(gatekeeper.__file__).parents[1]
EXPORT: dict[str, Any] = {
    "name": "库存服务拆分", "category": "refactor", "tags": ["库存", "拆分"], "trigger": "用户说「拆分库存服务」",
    "approach": ["先立接口", "再搬实现"], "acceptance": ["npm test 通过"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path_factory.mktemp("home")))


@asynccontextmanager
async def client_of(cwd: Path) -> AsyncIterator[Client]:
    environment = {"PYTHONPATH": str(FOLDER), "GATEKEEPER_HOME": os.environ["GATEKEEPER_HOME"]}
    server = StdioServerParameters(command=sys.executable, args=["-m", "gatekeeper", "mcp"], env=environment, cwd=cwd)
    async with Client(server) as client:
        yield client


def drive(cwd: Path, talk: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with client_of(cwd) as client:
            await talk(client)

    anyio.run(run)


async def call(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call that succeeds; its fields. The text for the model is one of them."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    fields = result.structured_content
    assert isinstance(fields, dict)
    (part,) = result.content
    text_field = next(tool.text_field for tool in TOOLS if tool.name == name)
    assert part.text.startswith(fields[text_field])
    return fields


def test_the_tools_are_listed_as_they_are_defined(tmp_path: Path) -> None:
    async def talk(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert [(tool.name, tool.description, tool.input_schema, tool.output_schema) for tool in listed] == [
            (tool.name, tool.description, tool.input_schema, tool.output_schema) for tool in TOOLS]  # fmt: skip

    drive(tmp_path, talk)


def test_a_session_from_recall_to_recall(tmp_path: Path) -> None:
    large = "把库存模块重构拆分成独立服务，接口保持不变"

    async def talk(client: Client) -> None:
        small = await call(client, "spec_recall", requirement="把登录按钮的文案改成「立即登录」")
        assert (small["next_step"], small["fast_track"], small["matched"]) == ("implement", True, False)

        open_question = await call(client, "spec_recall", requirement="登录页加个按钮")
        assert (open_question["next_step"], open_question["content_gap"]) == ("confirm", ["button"])

        recalled = await call(client, "spec_recall", requirement=large)
        assert (recalled["next_step"], recalled["matched"]) == ("triage", False)
        triaged = await call(client, "spec_triage", requirement=large)
        assert triaged["needs_clarify"]
        assert triaged["questions"]
        distilled = await call(client, "spec_distill", requirement=large, clarifications=["单独部署：是"],
                               constraints=["不改对外接口"], acceptance=["npm test 通过"])  # fmt: skip
        assert "不改对外接口" in distilled["prompt"]
        written = await call(client, "spec_retro", **EXPORT)
        assert written["saved"]
        assert Path(written["file"]).is_relative_to(tmp_path.resolve())

        again = await call(client, "spec_recall", requirement=large)
        assert again["matched"]
        assert again["templates"][0]["id"] == written["id"]
        assert "先立接口" in again["context"]

    drive(tmp_path, talk)


def test_the_server_answers_what_the_functions_answer(tmp_path: Path) -> None:
    tools = SpecTools(tmp_path)
    tools.retro(**EXPORT)
    texts = ["拆分库存服务", "登录页加个按钮", "", "你好", "\U0001f600 {\"orderId\": [1, 2, 3], \"x\": 1}",
             "订单" * 5000]  # fmt: skip

    async def talk(client: Client) -> None:
        for text in texts:
            assert await call(client, "spec_recall", requirement=text) == tools.recall(text)
            assert await call(client, "spec_triage", requirement=text) == tools.triage(text)
            assert await call(client, "spec_distill", requirement=text) == tools.distill(text)

    drive(tmp_path, talk)


def test_what_is_wrong_is_said_and_the_server_goes_on(tmp_path: Path) -> None:
    async def talk(client: Client) -> None:
        for name, arguments, message in (
            ("spec_recall", {}, "'requirement' is a required property"),
            ("spec_recall", {"requirement": 1}, "requirement"),
            ("spec_recall", {"requirement": "x", "more": 1}, "more"), ("spec_store", {}, "unknown tool"),
            ("spec_retro", {"name": "x", "scope": "team"}, "scope"), ("spec_retro", {"name": "x", "tags": "a"}, "tags"),
            ("spec_recall", {"requirement": "x", "cwd": "\0"}, "cwd must be a folder"),
            ("spec_retro", {"name": "x", "cwd": "/nowhere/at/all"}, "cwd must be a folder"),
        ):  # fmt: skip
            result = await client.call_tool(name, arguments)
            assert result.is_error, name
            assert message in result.content[0].text
        assert not (await call(client, "spec_retro", name=""))["saved"]
        assert (await call(client, "spec_recall", requirement="登录页加个按钮"))["next_step"] == "confirm"

    drive(tmp_path, talk)


def test_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    async def talk(client: Client) -> None:
        answers: list[dict[str, Any]] = []

        async def write(number: int) -> None:
            answers.append(await call(client, "spec_retro", name=f"模板 {number}", tags=[f"标签{number}"]))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(write, number)
        assert all(answer["saved"] for answer in answers)

    drive(tmp_path, talk)
    assert len(SpecTools(tmp_path).library.load().templates) == 8
