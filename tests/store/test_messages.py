"""Chat messages of a session: they survive as messages, for every gatekeeper that has it open."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatekeeper
from gatekeeper import ArgumentTypeError, ChatFileError, ContextGatekeeper
from gatekeeper.store import files
from gatekeeper.store.recovery import recover

SYSTEM = {"role": "system", "content": "Answer briefly."}
CALL = {"id": "c1", "type": "function", "function": {"name": "ttl", "arguments": '{"key": "锁"}'}}
HISTORY: list[dict[str, Any]] = [
    SYSTEM,
    {"role": "user", "content": "How does Redis expire keys?", "id": "q1"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "id": "a1"},
    {"role": "tool", "tool_call_id": "c1", "content": "30 s, redis says", "id": "t1"},
    {"role": "assistant", "content": "Lazily, when redis reads them.", "id": "a2", "seen": [1, {"x": None}]},
    {"role": "user", "content": [{"type": "text", "text": "git rebase 怎么用 \ud800"},
                                 {"type": "image_url", "image_url": {"url": "data:"}}], "id": "q2"},
    {"role": "system", "content": "Now in Chinese."},
    {"role": "assistant", "content": "先切到功能分支。", "id": "a3"},
]  # fmt: skip
QUERIES = ("redis keys", "git rebase", "锁", "那这个呢")


def sent(gate: ContextGatekeeper, query: Any, **options: Any) -> list[Any]:
    return list(gate.select_messages(query, **options))


def all_sent(gate: ContextGatekeeper) -> list[Any]:
    return [sent(gate, query) for query in QUERIES]


def in_memory(*lists: list[Any]) -> ContextGatekeeper:
    gate = ContextGatekeeper(4000)
    for messages in lists:
        gate.add_messages(messages)
    return gate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


def test_messages_come_back_as_messages_after_a_restart(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_messages(HISTORY)
        assert any(message is HISTORY[4] for message in sent(gate, "redis keys", prune=False))
    with gatekeeper.open(path) as gate:
        assert all_sent(gate) == all_sent(in_memory(HISTORY))
        found = sent(gate, "redis keys", prune=False)
        assert found == [SYSTEM, *HISTORY[1:5], HISTORY[6]]
        assert not any(message is old for message in found for old in HISTORY)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_messages_may_come_in_pieces_and_from_other_processes(path: Path, size: int) -> None:
    for start in range(0, len(HISTORY), size):
        with gatekeeper.open(path) as gate:
            gate.add_messages(HISTORY[start : start + size])
    with gatekeeper.open(path) as gate:
        assert len(gate) == 2
        assert all_sent(gate) == all_sent(in_memory(HISTORY))


def test_known_ids_change_nothing_after_a_restart(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_messages(HISTORY)
        before = all_sent(gate), gate.session.head()
    with gatekeeper.open(path) as gate:
        gate.add_messages(json.loads(json.dumps(HISTORY[1:6])))
        gate.add_messages(json.loads(json.dumps(HISTORY)))
        assert (all_sent(gate), gate.session.head()) == before
        gate.add_messages([{**HISTORY[4], "content": "By sampling redis keys."}])
        assert len(gate) == 2
        assert gate.block(0).assistant.startswith("By sampling")
    with gatekeeper.open(path) as gate:
        changed = [*HISTORY[:4], {**HISTORY[4], "content": "By sampling redis keys."}, *HISTORY[5:]]
        assert all_sent(gate) == all_sent(in_memory(changed))


def test_a_list_without_ids_that_has_grown_is_the_same_conversation(path: Path) -> None:
    messages = [{key: value for key, value in message.items() if key != "id"} for message in HISTORY]
    for n in (2, 5, 5, len(messages), len(messages)):
        with gatekeeper.open(path) as gate:
            gate.add_messages(json.loads(json.dumps(messages[:n])))
    with gatekeeper.open(path) as gate:
        assert len(gate) == 2
        ask = {"role": "user", "content": "redis keys"}
        assert sent(gate, json.loads(json.dumps([*messages, ask]))) == [*sent(gate, "redis keys"), ask]
        assert len(gate) == 2


def test_two_gatekeepers_follow_each_other_and_keep_their_objects(path: Path) -> None:
    ours, theirs = gatekeeper.open(path), gatekeeper.open(path)
    ours.add_messages(HISTORY[:2])
    theirs.add_turn("redis came as text", "keys too")
    theirs.add_messages(HISTORY[2:5])  # the turn before the text has only grown
    ours.add_messages(HISTORY[5:])
    assert len(ours) == len(theirs) == 3
    assert all_sent(ours) == all_sent(theirs)
    assert any(message is HISTORY[1] for message in sent(ours, "redis keys"))
    theirs.forget(0)
    assert "Redis" not in str(all_sent(ours))
    ours.add_messages(HISTORY[1:5])  # forgotten ones stay out
    assert "Lazily" not in str(all_sent(ours)) + str(all_sent(theirs))
    theirs.truncate(2)
    assert all_sent(ours) == all_sent(theirs)
    assert "git" not in str(all_sent(ours))
    with gatekeeper.open(path) as anew:
        assert all_sent(anew) == all_sent(ours)
    ours.close()
    theirs.close()


IDS = [None, "a", "b", "c", "d", 7]
TEXTS = ["redis lock", "git rebase", "锁的 TTL", "", "ok", "\ud800 x"]
MESSAGES = st.builds(
    lambda role, content, key, call: {"role": role, "content": content, **({} if key is None else {"id": key}),
                                      **({"tool_calls": [CALL]} if call and role == "assistant" else {}),
                                      **({"tool_call_id": "c1"} if role == "tool" else {})},
    st.sampled_from(("system", "user", "user", "assistant", "assistant", "tool")), st.sampled_from(TEXTS),
    st.sampled_from(IDS), st.booleans())  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_history_of_calls_gives_the_messages_of_one_in_memory(tmp_path_factory: pytest.TempPathFactory,
                                                                  data: Any) -> None:
    path = tmp_path_factory.mktemp("store") / "chat.db"
    model = ContextGatekeeper(600)
    pair = [gatekeeper.open(path, token_budget=600), gatekeeper.open(path)]
    for _ in range(data.draw(st.integers(0, 8))):
        gate = pair[data.draw(st.integers(0, 1))]
        call = data.draw(st.sampled_from(("messages", "messages", "messages", "turn", "forget", "truncate", "open")))
        if call == "messages":
            batch = data.draw(st.lists(MESSAGES, max_size=4))
            gate.add_messages(batch)
            model.add_messages(batch)
        elif call == "turn":
            turn = data.draw(st.sampled_from(TEXTS)), data.draw(st.sampled_from(TEXTS))
            assert gate.add_turn(*turn) == model.add_turn(*turn)
        elif call == "forget" and len(model):
            turn_id = data.draw(st.integers(0, len(model) - 1))
            gate.forget(turn_id)
            model.forget(turn_id)
        elif call == "truncate":
            n_turns = data.draw(st.integers(0, len(model)))
            gate.truncate(n_turns)
            model.truncate(n_turns)
        elif call == "open":
            pair[0].close()
            gate = pair[0] = gatekeeper.open(path)
        query = data.draw(st.sampled_from(TEXTS[:3]))
        ask = [{"role": "user", "content": query, "id": "ask"}]
        assert sent(gate, query) == sent(model, query)
        assert sent(gate, ask) == sent(model, ask)
        assert len(gate) == len(model)
    lines = list(files.export_session(path))
    copy = path.with_name("copy.db")
    files.import_session(copy, [line.encode() for line in lines])
    assert list(files.export_session(copy))[1:] == lines[1:]
    for gate in (*pair, gatekeeper.open(copy)):
        assert [sent(gate, query) for query in TEXTS[:3]] == [sent(model, query) for query in TEXTS[:3]]
        assert [(gate.block(i).user, gate.block(i).assistant) for i in range(len(gate))] == [
            (model.block(i).user, model.block(i).assistant) for i in range(len(model))]
        gate.close()


def test_forget_takes_the_messages_out_of_every_byte(path: Path) -> None:
    secret = {"role": "user", "content": "the secret word", "id": "secret-id-1", "metadata": {"note": "secret note"}}
    with gatekeeper.open(path) as gate:
        gate.add_messages([*HISTORY, secret])
        gate.add_messages([{"role": "assistant", "content": "I keep a secret."}])
        assert "secret" in str(sent(gate, "secret word"))
        gate.forget(2)
        assert "secret" not in str(sent(gate, "secret word"))
        for file in path.parent.iterdir():
            assert b"secret" not in file.read_bytes(), file
        gate.add_messages([secret])
        assert len(gate) == 3
        assert gate.block(2).user == ""
    with gatekeeper.open(path) as gate:
        gate.add_messages([secret])
        assert gate.block(2).user == ""


def test_a_bad_message_and_one_without_a_json_form_change_nothing(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_messages(HISTORY)
        before = all_sent(gate), gate.session.head()
        for bad in (3, {"role": "user", "content": "x", "blob": b"raw"}, {"role": "nobody", "content": ""}):
            with pytest.raises((ArgumentTypeError, gatekeeper.ArgumentValueError)):
                gate.add_messages([{"role": "user", "content": "new"}, bad])
            assert (all_sent(gate), gate.session.head()) == before
    with gatekeeper.open(path) as gate:
        assert all_sent(gate) == before[0]


def test_objects_are_kept_as_openai_messages(path: Path) -> None:
    objects = [
        SimpleNamespace(type="human", content="a redis lock?", id="h1"),
        SimpleNamespace(type="ai", content="", id="h2",
                        tool_calls=[{"name": "ttl", "args": {"key": "锁"}, "id": "c9", "type": "tool_call"}]),
        SimpleNamespace(type="tool", content=[{"type": "text", "text": "redis says 30 s"}], tool_call_id="c9", id="h3"),
        SimpleNamespace(type="ai", content=[{"type": "text", "text": "The redis lock holds 30 s."}], id="h4"),
    ]  # fmt: skip
    with gatekeeper.open(path) as gate:
        gate.add_messages(objects)
        assert sent(gate, "redis lock", prune=False) == objects
        before = gate.session.head()
    with gatekeeper.open(path) as gate:
        gate.add_messages(objects)
        assert gate.session.head() == before
        assert sent(gate, "redis lock", prune=False) == [
            {"role": "user", "content": "a redis lock?", "id": "h1"},
            {"role": "assistant", "content": "", "id": "h2", "tool_calls": [
                {"id": "c9", "type": "function", "function": {"name": "ttl", "arguments": '{"key": "锁"}'}}]},
            {"role": "tool", "content": "redis says 30 s", "tool_call_id": "c9", "id": "h3"},
            {"role": "assistant", "content": "The redis lock holds 30 s.", "id": "h4"},
        ]  # fmt: skip


def test_what_is_damaged_is_recovered_with_its_messages(path: Path, tmp_path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn("redis text", "keys")
        gate.add_messages(HISTORY)
    report = recover(path, tmp_path / "saved.db")
    assert [item["n_saved"] for item in report] == [3]
    with gatekeeper.open(path) as gate, gatekeeper.open(tmp_path / "saved.db") as saved:
        assert all_sent(saved) == all_sent(gate)


def test_an_export_that_contradicts_itself_is_refused(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_messages(HISTORY)
    lines = [line.encode() for line in files.export_session(path)]
    for old, new in ((b'"content": "Lazily', b'"content": "Eagerly'), (b'"role": "tool"', b'"role": "x"')):
        with pytest.raises(ChatFileError, match="turn 1: expected the messages of the turn"):
            files.import_session(path.with_name("b.db"), [line.replace(old, new) for line in lines])
    files.import_session(path, lines)  # what is known comes in as texts
    with gatekeeper.open(path) as gate:
        assert len(gate) == 4
        assert sum(message.get("id") == "a2" for message in sent(gate, "redis keys", prune=False)) <= 1


def test_a_key_named_messages_in_another_chat_file_is_nothing(path: Path) -> None:
    turn = '[{"user": "a", "assistant": "b",'
    for text in (f'{turn}\n"messages": 3}}]', f'{turn} "messages": 3}}]',
                 '{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "messages": 3}'):
        files.import_session(path, [line.encode() for line in text.splitlines(keepends=True)])
    assert files.read_session(path)[1] == [("a", "b")] * 3


WRITER = """
import sys, gatekeeper
with gatekeeper.open(sys.argv[1]) as gate:
    for i in range(1000):
        gate.add_messages([{"role": "user", "content": f"question {i}", "id": f"q{i}"}])
        gate.add_messages([{"role": "assistant", "content": f"answer {i}", "id": f"a{i}"}])
        print(i, flush=True)
"""


def test_a_writer_of_messages_that_is_killed_loses_nothing_acknowledged(path: Path) -> None:
    chance = random.Random(5)
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True,
                              cwd=Path(gatekeeper.__file__).parents[1]) as writer:
            assert writer.stdout
            acknowledged = -1
            for _ in range(chance.randint(1, 60)):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
        with gatekeeper.open(path) as gate:
            texts = [(gate.block(i).user, gate.block(i).assistant) for i in range(len(gate))]
        assert len(texts) > acknowledged
        assert texts[: acknowledged + 1] == [(f"question {i}", f"answer {i}") for i in range(acknowledged + 1)]
        assert set(texts[acknowledged + 1 :]) <= {(f"question {acknowledged + i}", answer) for i in (1, 2)
                                                  for answer in ("", f"answer {acknowledged + i}")}
        files.forget_session(path)


def test_a_file_of_the_version_before_has_its_turns_and_takes_messages(path: Path) -> None:
    from gatekeeper.store import database as module

    steps = module.STEPS
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "STEPS", steps[:1])
        module.create(str(path))
    import sqlite3

    from gatekeeper.store.session import new_row, turn_row

    row = new_row("default", "default", 4000, gatekeeper.Settings())._replace(n_turns=1)
    connection = sqlite3.connect(path)
    connection.execute(f"INSERT INTO session VALUES ({', '.join('?' * 13)})", (*row[:-1], row.checksum()))
    connection.execute("INSERT INTO turn VALUES (?, ?, ?, ?, ?)", turn_row(row.id, 0, ("redis old", "keys"))[:-1])
    connection.commit()
    connection.close()
    old = path.read_bytes()
    saved = path.with_name("saved.db")
    assert [item["n_saved"] for item in recover(path, saved)] == [1]
    assert path.read_bytes() == old
    with gatekeeper.open(path) as gate:
        assert gate.block(0).user == "redis old"
        gate.add_messages(HISTORY)
    with gatekeeper.open(path) as gate:
        assert len(gate) == 3
        assert "redis old" in str(all_sent(gate))
        assert "Lazily" in str(all_sent(gate))


def test_threads_that_add_forget_and_ask_do_not_wait_for_each_other_for_ever(path: Path) -> None:
    gate = gatekeeper.open(path)
    gate.add_turns([("redis", "ok")] * 30)

    def add() -> None:
        for i in range(30):
            gate.add_messages([{"role": "user", "content": f"redis {i}", "id": i}])

    def forget() -> None:
        for i in range(30):
            gate.forget(i)

    def ask() -> None:
        for _ in range(30):
            gate.select_messages("redis")
            gate.constraints["a"] = "b"

    threads = [threading.Thread(target=work, daemon=True) for work in (add, forget, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(gate) == 60
    gate.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_asks_may_ask_too(path: Path) -> None:
    gate = gatekeeper.open(path)
    gate.add_turns([(f"redis lock {i}", "ok " * 50) for i in range(300)])
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            gate.select("redis lock")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for i in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                gate.add_messages([{"role": "user", "content": f"of child {i}"}])
                os._exit(0 if gate.select("redis lock") else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        thread.join()
    assert len(gate) == 320
    gate.close()
