"""Chat files: both shapes, both layouts, what is skipped and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.chat_file import ChatReader, open_chat_file, read_chat_file
from gatekeeper.errors import ChatFileError, GatekeeperError

PAIR = {"user": "u", "assistant": "a"}
GOOD = json.dumps(PAIR)


def reader(content: str | bytes, **arguments: Any) -> ChatReader:
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    return ChatReader(io.BytesIO(data), "chat.jsonl", **arguments)


def read(content: str | bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """The turns and the warnings."""
    warnings: list[str] = []
    return list(reader(content, on_warning=warnings.append).turns()), warnings


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def message(role: str, content: Any, **extra: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **extra}


# --- layouts


def test_json_lines_of_pairs() -> None:
    assert read(lines({**PAIR, "topic": "x"}, {"user": "", "assistant": ""})) == ([("u", "a"), ("", "")], [])


@pytest.mark.parametrize("indent", [None, 2])
def test_one_json_list(indent: int | None) -> None:
    content = "\n  " + json.dumps([PAIR, message("user", "q"), message("assistant", "r")], indent=indent)
    assert read(content) == ([("u", "a"), ("q", "r")], [])


@pytest.mark.parametrize("content", [GOOD + "\n", f"[{GOOD}]", "\n" + GOOD])
def test_a_byte_order_mark_is_accepted(content: str) -> None:
    assert read("\ufeff" + content)[0] == [("u", "a")]


def test_line_ends_and_blank_lines() -> None:
    assert read(f"\r\n{GOOD}\r\n\n   \n{GOOD}")[0] == [("u", "a"), ("u", "a")]


def test_line_separators_inside_a_string_do_not_end_a_line() -> None:
    assert read('{"user": "a\u2028b\x85c", "assistant": ""}')[0] == [("a\u2028b\x85c", "")]


@pytest.mark.parametrize("content", ["", "\n \n", "[]", "\ufeff", " [ ] "])
def test_nothing_is_no_turn_and_no_error(content: str) -> None:
    assert read(content) == ([], [])


def test_lines_are_read_as_they_are_asked_for() -> None:
    class Endless(io.RawIOBase):
        def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]  # bytes only
            while True:
                yield (GOOD + "\n").encode()

    chat = ChatReader(Endless(), "endless")  # type: ignore[arg-type]  # only iterated
    turns = chat.turns()
    assert [next(turns) for _ in range(3)] == [("u", "a")] * 3
    assert chat.n_bytes == 3 * (len(GOOD) + 1)


@given(st.lists(st.tuples(st.text(), st.text())), st.booleans())
def test_what_is_written_is_read(turns: list[tuple[str, str]], as_list: bool) -> None:
    records = [{"user": user, "assistant": assistant} for user, assistant in turns]
    content = json.dumps(records, indent=1) if as_list else "\n".join(map(json.dumps, records))
    assert read(content) == (turns, [])


# --- messages to turns


def test_a_turn_is_a_user_message_and_all_that_follows() -> None:
    chat = lines(message("user", "q1"), message("assistant", "a1"), message("assistant", "a2"), message("user", "q2"),
                 message("user", "q3"), message("assistant", "a3"))  # fmt: skip
    assert read(chat)[0] == [("q1", "a1\na2"), ("q2", ""), ("q3", "a3")]


def test_an_assistant_before_any_user_is_a_turn_without_question() -> None:
    chat = lines(message("assistant", "hello"), message("user", "q"))
    assert read(chat)[0] == [("", "hello"), ("q", "")]


def test_system_and_tool_messages_are_skipped_and_counted() -> None:
    chat = reader(lines(
        message("system", "s"), message("developer", "d"), message("user", "q"),
        message("assistant", None, tool_calls=[{"id": 1}]), message("tool", "42"), message("function", "43"),
        message("assistant", "r"),
    ))  # fmt: skip
    assert list(chat.turns()) == [("q", "r")]
    assert (chat.n_turns, chat.n_system, chat.n_tool, chat.n_broken) == (1, 2, 2, 0)


def test_only_system_messages_are_an_empty_history() -> None:
    assert read(lines(message("system", "s"))) == ([], [])


def test_a_call_without_content_is_an_empty_answer() -> None:
    assert read(lines(message("user", "q"), {"role": "assistant", "tool_calls": []}))[0] == [("q", "")]


@pytest.mark.parametrize(("content", "text"), [
    (None, ""),
    ([], ""),
    ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}], "b"),
    ([{"type": "input_text", "text": "a"}, "b"], "a\nb"),
])  # fmt: skip
def test_content_may_be_null_or_parts(content: Any, text: str) -> None:
    assert read(lines(message("user", content)))[0] == [(text, "")]


def test_both_shapes_may_stand_in_one_file() -> None:
    chat = lines(message("user", "q"), PAIR, message("assistant", "late"), PAIR)
    assert read(chat)[0] == [("q", ""), ("u", "a"), ("", "late"), ("u", "a")]


# --- what is broken


BROKEN = [
    ("{", "expected a JSON object, got invalid JSON at column 2"),
    ("nonsense", "expected a JSON object, got invalid JSON at column 1"),
    ("[1]", 'expected {"user", "assistant"} or {"role", "content"}, got a list of 1'),
    ('"text"', 'got "text"'),
    ("null", "got null"),
    ("{}", "got an empty object"),
    ('{"user": "x"}', 'got an object with the keys "user"'),
    ('{"user": null, "assistant": "x"}', 'expected a string as "user", got null'),
    ('{"user": "x", "assistant": 7}', 'expected a string as "assistant", got 7'),
    ('{"role": "wizard", "content": "x"}', "expected role user, assistant, system, developer or tool, got \"wizard\""),
    ('{"role": ["user"], "content": "x"}', "got a list of 1"),
    ('{"role": "user"}', 'expected a message with "content", got an object with the keys "role"'),
    ('{"role": "user", "content": 3}', 'expected a string, null or a list of parts as "content", got 3'),
    ('{"role": "user", "content": [3]}', 'expected a part {"type": "text", "text": ...} in "content", got 3'),
    ('{"role": "user", "content": [{"type": "text"}]}', 'expected a string as "text", got null'),
    ("[" * 100_000, "expected"),
    ("1" * 10_000, "expected"),
]


@pytest.mark.parametrize(("line", "expected"), BROKEN, ids=[line[:40] for line, _ in BROKEN])
def test_a_broken_line_is_named_and_the_good_ones_are_kept(line: str, expected: str) -> None:
    turns, warnings = read(f"{GOOD}\n\n{line}\n{GOOD}\n")
    assert turns == [("u", "a"), ("u", "a")]
    assert len(warnings) == 1
    assert warnings[0].startswith("chat.jsonl:3: expected ")
    assert expected in warnings[0]
    assert len(warnings[0].splitlines()) == 1


@pytest.mark.parametrize("line", [line for line, _ in BROKEN[:4]])
def test_strict_makes_a_broken_line_an_error(line: str) -> None:
    turns = reader(f"{GOOD}\n{line}\n", strict=True).turns()
    assert next(turns) == ("u", "a")
    with pytest.raises(ChatFileError, match=r"^chat\.jsonl:2: expected .*, got "):
        next(turns)


def test_in_a_list_the_item_takes_the_place_of_the_line() -> None:
    turns, warnings = read(json.dumps([PAIR, 7, PAIR], indent=1))
    assert turns == [("u", "a"), ("u", "a")]
    assert warnings == ['chat.jsonl:item 2: expected {"user", "assistant"} or {"role", "content"}, got 7']
    with pytest.raises(ChatFileError, match="item 2"):
        list(reader(json.dumps([PAIR, 7]), strict=True).turns())


def test_what_follows_a_broken_line_is_no_answer_to_the_question_before() -> None:
    chat = lines(message("user", "q1"), message("user", 3), message("assistant", "to the lost question"))
    assert read(chat)[0] == [("q1", ""), ("", "to the lost question")]


def test_a_broken_list_is_an_error_with_its_line() -> None:
    with pytest.raises(ChatFileError, match=r"^chat\.jsonl:4: expected a JSON list, got invalid JSON"):
        read(f"\n[\n{GOOD},\n")
    with pytest.raises(ChatFileError, match=r"^chat\.jsonl: expected a JSON list, got "):
        read("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("content", ["name,text\nx,y\n", "[1, 2]", '{"a": 1}'])
def test_a_file_without_one_good_record_is_an_error(content: str) -> None:
    with pytest.raises(ChatFileError, match=r"^chat\.jsonl: expected .* found none"):
        read(content)


@pytest.mark.parametrize(("content", "place"), [
    (GOOD.encode("utf-16"), "1"), (GOOD.encode() + b"\n\xff\n", "2"), (b"[\n\n\x80]", "3"), (b"\xed\xa0\x80", "1"),
])  # fmt: skip
def test_a_file_that_is_not_utf8_is_an_error(content: bytes, place: str) -> None:
    with pytest.raises(ChatFileError, match=rf"^chat\.jsonl:{place}: expected UTF-8 text, got the byte 0x"):
        read(content)


def test_a_lone_surrogate_is_kept() -> None:
    assert read('{"user": "a\\ud800", "assistant": ""}')[0] == [("a\ud800", "")]


# --- files


def test_read_chat_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(lines(PAIR), encoding="utf-8")
    assert read_chat_file(path) == read_chat_file(str(path)) == [("u", "a")]


def test_warnings_are_logged_when_nobody_takes_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(lines(PAIR, 7), encoding="utf-8")
    read_chat_file(path)
    assert caplog.messages == [f'{path}:2: expected {{"user", "assistant"}} or {{"role", "content"}}, got 7']


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "nul\0name"])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ChatFileError, match="cannot be read") as caught:
        open_chat_file(f"{tmp_path}/{name}")
    assert tmp_path.name in str(caught.value)
    assert isinstance(caught.value, GatekeeperError)
    assert isinstance(caught.value, ValueError)


def test_an_error_while_reading_is_named() -> None:
    class Failing(io.RawIOBase):
        def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]  # bytes only
            raise OSError(5, "Input/output error")

    with pytest.raises(ChatFileError, match=r"^disk: cannot be read: Input/output error"):
        list(ChatReader(Failing(), "disk").turns())  # type: ignore[arg-type]  # only iterated
