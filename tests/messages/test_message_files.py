"""Files in ShareGPT's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatekeeper import ChatFileError, fit_messages
from gatekeeper.chat_file import read_chat_file
from gatekeeper.messages.files import read_sharegpt

FIRST = [{"from": "system", "value": "s"}, {"from": "human", "value": "redis?"}, {"from": "gpt", "value": "yes"},
         {"from": "human", "value": "look"}, {"from": "function_call", "value": "{}"},
         {"from": "observation", "value": "found"}, {"from": "gpt", "value": "there"}]  # fmt: skip
RECORDS = [{"id": "a", "conversations": FIRST}, {"id": "b", "conversations": [{"from": "human", "value": "锁"}]}]


def file_of(folder: Path, text: str) -> Path:
    path = folder / "chats.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [
    json.dumps(RECORDS), "\ufeff \n" + json.dumps(RECORDS, ensure_ascii=False, indent=1),
    "\n".join(map(json.dumps, RECORDS)), "\n\n" + json.dumps(RECORDS[0]) + "\n\n" + json.dumps(RECORDS[1]) + "\n",
])  # fmt: skip
def test_each_record_is_a_conversation(tmp_path: Path, text: str) -> None:
    assert list(read_sharegpt(file_of(tmp_path, text))) == [record["conversations"] for record in RECORDS]


def test_a_conversation_is_fitted_as_it_is(tmp_path: Path) -> None:
    [messages, _] = read_sharegpt(file_of(tmp_path, json.dumps(RECORDS)))
    question = {"from": "human", "value": "is it redis?"}
    assert list(fit_messages([*messages, question])) == [*messages[:3], question]


@pytest.mark.parametrize(("text", "said"), [
    ("[{}]", "record 1: expected"), ('{"conversations": [{"role": "user"}]}', "record 1: expected"),
    ("{", "expected JSON"), ("[", "expected JSON"),
    (json.dumps(RECORDS[0]) + "\n[1]", "record 2: expected"), ("\udcff", "expected JSON"),
])  # fmt: skip
def test_what_is_broken_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ChatFileError, match=said) as error:
        list(read_sharegpt(path))
    assert str(path) in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChatFileError, match="cannot be read"):
        list(read_sharegpt(tmp_path / "none.json"))


@pytest.mark.parametrize("content", [RECORDS[:1], FIRST, RECORDS[0]])
def test_the_command_line_reads_one_conversation(tmp_path: Path, content: Any) -> None:
    turns = [("redis?", "yes"), ("look", "there")]
    assert read_chat_file(file_of(tmp_path, json.dumps(content))) == turns


def test_the_command_line_takes_one_conversation_a_file(tmp_path: Path) -> None:
    warnings: list[str] = []
    path = file_of(tmp_path, json.dumps(RECORDS))
    assert len(read_chat_file(path, on_warning=warnings.append)) == 2
    assert warnings == [f"{path}:item 2: expected one conversation a file, got another one"]
