"""The OpenAI Agents SDK's own runner with its scripted model, the input filter and the session."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.memory import Session
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from history import BUDGET, QUERY, SYSTEM, TURNS, chosen, pairs, slow_counter

from gatekeeper import Settings
from gatekeeper.integrations.openai_agents import GatekeeperInputFilter, GatekeeperSession


def history() -> list[Any]:
    items: list[Any] = []
    for i, (role, text) in enumerate(pairs()):
        if role == "user":
            items.append({"role": "user", "content": text})
        else:
            part = {"type": "output_text", "text": text, "annotations": []}
            items.append({"type": "message", "id": f"m{i}", "role": role, "status": "completed", "content": [part]})
    return items


def said(items: list[Any]) -> list[tuple[str, str]]:
    return [(item["role"], text_of(item["content"])) for item in items]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def run(agent: Agent[Any], given: Any, *, is_async: bool = True, **options: Any) -> Any:
    options["run_config"] = RunConfig(tracing_disabled=True, **options.pop("config", {}))
    return asyncio.run(Runner.run(agent, given, **options)) if is_async else Runner.run_sync(agent, given, **options)


def scripted(*steps: Any) -> ScriptedModel:
    return ScriptedModel([ModelStep(output=[step]) for step in steps])


@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_gets_what_the_plain_interface_chooses(is_async: bool, settings: Settings) -> None:
    model = scripted(assistant_message("No."))
    agent = Agent("a", instructions=SYSTEM, model=model)
    given = [*history(), {"role": "user", "content": QUERY}]
    config = {"call_model_input_filter": GatekeeperInputFilter(BUDGET, settings=settings)}
    result = run(agent, given, is_async=is_async, config=config)
    assert [("system", SYSTEM), *said(model.calls[0].input)] == chosen(settings=settings)
    assert len(result.to_input_list()) == 2 * len(TURNS) + 2


def test_tools_count_and_calls_stay_with_their_results() -> None:
    @function_tool
    def look(q: str) -> str:
        """Look something up."""
        return f"found {q}"

    model = scripted(function_call("look", {"q": "redis"}, call_id="c1"), assistant_message("It is."))
    agent = Agent("a", instructions=SYSTEM, model=model, tools=[look])
    given = [*history(), {"role": "user", "content": QUERY}]
    run(agent, given, config={"call_model_input_filter": GatekeeperInputFilter(700)})
    assert [item.get("type") for item in model.calls[1].input[-2:]] == ["function_call", "function_call_output"]
    assert said(model.calls[1].input[:-2]) == said(model.calls[0].input)
    agent.model = scripted(assistant_message("x"))
    with pytest.raises(ValueError, match="the budget is 150"):
        run(agent, "hi", config={"call_model_input_filter": GatekeeperInputFilter(150, strict=True)})


def test_the_loop_is_not_blocked() -> None:
    threads: list[int] = []
    agent = Agent("a", model=scripted(assistant_message("No.")))
    given = [*history(), {"role": "user", "content": QUERY}]
    input_filter = GatekeeperInputFilter(BUDGET, count_tokens=slow_counter(threads))
    run(agent, given, config={"call_model_input_filter": input_filter})
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("settings", [Settings.minimal(), Settings.thorough()])
def test_a_session_keeps_all_and_gives_what_the_plain_interface_chooses(settings: Settings) -> None:
    session = GatekeeperSession("s", BUDGET, settings=settings)
    assert isinstance(session, Session)
    asyncio.run(session.add_items(history()))
    model = scripted(assistant_message("No."), assistant_message("Commits."))
    agent = Agent("a", instructions=SYSTEM, model=model)
    config = {"session_input_callback": session.choose}
    run(agent, QUERY, session=session, config=config)
    assert said(model.calls[0].input) == chosen(settings=settings, system=None)
    items = asyncio.run(session.get_items())
    assert said(items) == [*pairs(), ("user", QUERY), ("assistant", "No.")]
    run(agent, "And git rebase?", session=session, config=config)
    assert ("user", "What does git rebase do?") in said(model.calls[1].input)
    assert len(asyncio.run(session.get_items())) == 2 * len(TURNS) + 4


def test_a_session_works_on_another_one() -> None:
    async def talk() -> None:
        store = SQLiteSession("s")
        session = GatekeeperSession("s", store=store)
        await session.add_items(history()[:2])
        assert await store.get_items() == await session.get_items() == history()[:2]
        assert await session.get_items(1) == history()[1:2]
        assert await session.pop_item() == history()[1]
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(talk())
