"""Whole files: list, export and import, and forgetting down to the bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conversations import decided
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries

import gatekeeper
from gatekeeper import ArgumentValueError, ChatFileError, ContextGatekeeper, SessionNotFoundError, Settings, TurnError
from gatekeeper.chat_file import read_chat_file
from gatekeeper.store import files

texts = st.one_of(st.text(max_size=20), st.sampled_from(("redis 惰性删除", "\ud800", "git rebase", "", "\x00\u2028")))
turns_and_forgotten = st.lists(st.tuples(texts, texts, st.booleans()), max_size=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


def exported(path: Path, **names: str) -> list[bytes]:
    return [line.encode() for line in files.export_session(path, **names)]


# --- list


def test_sessions_are_listed_by_user_and_name(path: Path) -> None:
    for user, session, n_turns in (("b", "2", 1), ("a", "9", 0), ("a", "1", 3)):
        with gatekeeper.open(path, user=user, session=session) as gate:
            gate.add_turns([("x", "y")] * n_turns)
    listed = files.list_sessions(path, user=None)
    assert [(item["user"], item["session"], item["n_turns"]) for item in listed] == [
        ("a", "1", 3), ("a", "9", 0), ("b", "2", 1)]  # fmt: skip
    assert all(0 < item["created"] <= item["updated"] for item in listed)
    assert files.list_sessions(path) == []


# --- export and import


@settings(max_examples=25)
@given(turns_and_forgotten, turns_and_forgotten, queries)
def test_an_imported_export_decides_the_same(tmp_path_factory: pytest.TempPathFactory, before: Any, after: Any,
                                             query: str) -> None:
    folder = tmp_path_factory.mktemp("store")
    with gatekeeper.open(folder / "a.db", token_budget=500, settings=Settings(topic_window=2)) as gate:
        gate.constraints["project"] = "\ud800 x"
        gate.constraints.forbid("外链")
        for turns in (before, after):
            ids = gate.add_turns([turn[:2] for turn in turns])
            forgotten = [i for i, turn in zip(ids, turns, strict=True) if turn[2]]
            if forgotten:
                gate.forget_turns(forgotten)
        lines = exported(folder / "a.db")
        assert files.import_session(folder / "b.db", lines, session="copy") == range(len(gate))
        with gatekeeper.open(folder / "b.db", session="copy") as copy:
            assert (copy.token_budget, copy.settings) == (500, Settings(topic_window=2))
            assert decided(copy, query) == decided(gate, query)
    again = exported(folder / "b.db", session="copy")
    assert again[1:] == lines[1:]
    assert all(line.count(b"\n") == 1 for line in lines)


def test_an_export_is_a_chat_file(path: Path, tmp_path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turns([("问题", "回答"), ("q\n2", "")])
        gate.constraints.language = "zh"
    (tmp_path / "chat.jsonl").write_bytes(b"".join(exported(path)))
    assert read_chat_file(tmp_path / "chat.jsonl", strict=True) == [("问题", "回答"), ("q\n2", "")]
    header, first, _ = map(json.loads, exported(path))
    assert header["content"] == "[constraints]\nlanguage: zh\n"
    assert first == {"user": "问题", "assistant": "回答"}
    assert "问题".encode() in exported(path)[1]


GOOD = b'{"user": "redis ttl", "assistant": "ok"}\n'


def test_good_lines_of_a_damaged_file_are_taken_and_the_damage_is_named(path: Path) -> None:
    warnings: list[str] = []
    ids = files.import_session(path, [GOOD, b'{"user": "tr\n', GOOD], name="chat.jsonl", on_warning=warnings.append)
    assert ids == range(2)
    assert len(warnings) == 1
    assert warnings[0].startswith("chat.jsonl:2: expected a JSON object, got invalid JSON")
    with gatekeeper.open(path) as gate:
        assert gate.add_turn("next", "") == 2
    with pytest.raises(ChatFileError, match=r"chat\.jsonl:2"):
        files.import_session(path, [GOOD, b"{trunc\n"], name="chat.jsonl", strict=True)
    with pytest.raises(ChatFileError):
        files.import_session(path, [b"\xff\n"])
    with gatekeeper.open(path) as gate:
        assert len(gate) == 3


def test_a_session_that_is_there_keeps_its_own_and_gets_the_turns(path: Path) -> None:
    with gatekeeper.open(path, session="a", token_budget=100) as gate:
        gate.constraints.language = "zh"
        gate.add_turn("one", "")
        gate.forget(0)
    with gatekeeper.open(path, session="b", token_budget=200) as gate:
        gate.constraints.language = "en"
        gate.add_turn("two", "")
        assert files.import_session(path, exported(path, session="a"), session="b") == range(1, 2)
        assert [gate.block(i).user for i in range(2)] == ["two", ""]
        assert gate.explain("x")["n_blocks"] == 1
        assert (gate.constraints.language, gate.token_budget) == ("en", 200)


def test_other_settings_come_in_by_an_import(path: Path) -> None:
    with gatekeeper.open(path, session="a") as gate:
        gate.add_turns([("redis ttl", "ok"), ("git rebase", "ok")])
    new = Settings(topic_window=1)
    files.import_session(path, exported(path, session="a"), session="b", settings=new, token_budget=77)
    plain = ContextGatekeeper(77, settings=new)
    plain.add_turns([("redis ttl", "ok"), ("git rebase", "ok")])
    with gatekeeper.open(path, session="b") as gate:
        assert decided(gate, "git") == decided(plain, "git")


@pytest.mark.parametrize("header", [
    {"format": 2}, {"format": 1, "settings": {"k1": "x"}}, {"format": 1, "settings": 3}, {"format": 1, "topics": 7},
    {"format": 1, "constraints": {"values": {"a:b": "c"}}}, {"format": 1, "constraints": []},
    {"format": 1, "token_budget": "many"}, {"format": 1, "constraints": {"forbidden": [1]}},
])  # fmt: skip
def test_a_header_that_does_not_fit_is_an_error_and_nothing_is_made(path: Path, header: dict[str, Any]) -> None:
    line = json.dumps({"role": "system", "content": "", "gatekeeper": header}).encode() + b"\n"
    with pytest.raises(ChatFileError, match="<stream>"):
        files.import_session(path, [line, GOOD])
    assert not path.exists()


@pytest.mark.parametrize("topics", [[9, 0], [1, 0, 0], [1], [2, 1], [0, 0], [1, 0, 5], [1, "0"]])
def test_topics_that_cannot_be_are_found_anew(path: Path, topics: list[Any]) -> None:
    header = {"format": 1, "topics": topics}
    line = json.dumps({"role": "system", "content": "", "gatekeeper": header}).encode() + b"\n"
    try:
        files.import_session(path, [line, GOOD, GOOD])
    except ChatFileError:
        return
    with gatekeeper.open(path) as gate:
        assert gate.select("redis")


def test_blank_names_are_refused(path: Path) -> None:
    with pytest.raises(ArgumentValueError):
        files.import_session(path, [GOOD], session=" ")
    assert not path.exists()


# --- forget


def bytes_of(folder: Path) -> bytes:
    return b"".join(item.read_bytes() for item in folder.iterdir())


def marker(number: int) -> str:
    return f"marker{number:05}geheim"


@pytest.mark.parametrize("seed", range(4))
def test_a_forgotten_text_is_in_no_byte_of_any_file(path: Path, seed: int) -> None:
    """Sessions that grow side by side, rows that move between pages, texts short and long."""
    chance = random.Random(seed)
    gates = [gatekeeper.open(path, session=f"s{i}", token_budget=10**9) for i in range(3)]
    alive: dict[int, tuple[int, int]] = {}
    for number in range(150):
        which = chance.randrange(3)
        text = f"{marker(number)} " + "long text " * chance.choice((0, 3, 40, 2500))
        turn_id = gates[which].add_turn(text, text[::-1] + f"答案 {marker(number)}")
        alive[number] = which, turn_id
    assert all(marker(number).encode() in bytes_of(path.parent) for number in alive)
    gates[0].constraints["note"] = "constraint-geheim"
    for number in chance.sample(sorted(alive), 6):
        which, turn_id = alive.pop(number)
        gates[which].forget(turn_id)
        data = bytes_of(path.parent)  # the other gatekeepers have the file open
        assert marker(number).encode() not in data
        assert marker(number)[::-1].encode() not in data
        assert all(marker(other).encode() in data for other in alive)
    files.forget_session(path, session="s0")
    data = bytes_of(path.parent)
    for number, (which, _) in alive.items():
        assert (marker(number).encode() in data) == (which != 0)
    assert b"constraint-geheim" not in data
    for gate in gates:
        gate.close()
    assert [item.name for item in path.parent.iterdir()] == ["chat.db"]


def test_forgetting_several_turns_is_all_or_none(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turns([("one", ""), ("two", ""), ("three", "")])
    with pytest.raises(TurnError):
        files.forget_session(path, turn_ids=[0, 7])
    files.forget_session(path, turn_ids=[0, 2])
    _, turns = files.read_session(path)
    assert turns == [None, ("two", ""), None]


def test_a_session_that_is_not_there_is_an_error(path: Path) -> None:
    gatekeeper.open(path, session="a").close()
    for turn_ids in (None, [0]):
        with pytest.raises(SessionNotFoundError, match="holds no session 'b' of user 'default'"):
            files.forget_session(path, session="b", turn_ids=turn_ids)
    with pytest.raises(SessionNotFoundError):
        files.read_session(path, session="a", user="other")
    assert [item["session"] for item in files.list_sessions(path, user=None)] == ["a"]
