"""A conversation on disk decides as one in memory, for every gatekeeper that has it open and after every restart."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from conversations import decided
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, sides

import gatekeeper
from gatekeeper import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    ContextGatekeeper,
    SessionNotFoundError,
    Settings,
    StoreError,
    StoreSettingsError,
    TurnError,
)
from gatekeeper.store import files
from gatekeeper.store.gate import SessionGatekeeper

REDIS = ("Redis 惰性删除是什么", "访问时才检查键是否过期。")
GIT = ("git rebase 怎么用", "先切到功能分支。Never rebase a shared branch.")
HISTORY = [REDIS, GIT, ("继续", "然后 git push --force-with-lease。"), ("\ud800 broken \x00", "\udfff 惰性删除")]

CALLS = ("add", "add", "add", "add", "forget", "truncate", "forbid", "open", "select")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


# --- what survives


def test_turns_constraints_settings_and_topic_survive(path: Path) -> None:
    own = Settings.thorough().replace(topic_window=3, k1=0.9)
    with gatekeeper.open(path, session="a", token_budget=700, settings=own) as gate:
        assert gate.add_turn(*REDIS) == 0
        assert list(gate.add_turns(HISTORY[1:])) == [1, 2, 3]
        gate.constraints.language = "zh"
        gate.constraints.forbid("外链")
        gate.constraints["project"] = "gatekeeper"
        before = [decided(gate, query) for query in ("惰性删除", "继续", "git push", "\ud800")]
    plain = ContextGatekeeper(700, settings=own)
    plain.add_turns(HISTORY)
    for key in ("language", "project"):
        plain.constraints[key] = {"language": "zh", "project": "gatekeeper"}[key]
    plain.constraints.forbid("外链")
    with gatekeeper.open(path, session="a") as gate:
        assert (gate.token_budget, gate.settings) == (700, own)
        assert [decided(gate, query) for query in ("惰性删除", "继续", "git push", "\ud800")] == before
        assert [decided(plain, query) for query in ("惰性删除", "继续", "git push", "\ud800")] == before
        assert [(gate.block(i).user, gate.block(i).assistant) for i in range(4)] == HISTORY
        assert gate.add_turn("x", "y") == 4


def test_a_constraint_taken_back_stays_away(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.constraints.update({"language": "zh", "style": "short", "a": "1"})
        gate.constraints.forbidden = ["x", "y", "x"]
        gate.constraints.allow("x")
        gate.constraints.style = None
        del gate.constraints["a"]
        with pytest.raises(KeyError):
            del gate.constraints["none"]
        with pytest.raises(KeyError):
            gate.constraints.allow("none")
        with pytest.raises(ArgumentValueError):
            gate.constraints["a:b"] = "c"
        with pytest.raises(AttributeError):
            gate.constraints = ContextGatekeeper(1).constraints  # type: ignore[misc]
    with gatekeeper.open(path) as gate:
        assert dict(gate.constraints) == {"language": "zh", "forbidden": "y"}


@settings(max_examples=40)
@given(st.data())
def test_any_history_of_calls_is_decided_as_in_memory(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Two gatekeepers have the session open and take turns; one of them may be opened anew at any time."""
    path = tmp_path_factory.mktemp("store") / "chat.db"
    model = ContextGatekeeper(600)
    pair = [gatekeeper.open(path, token_budget=600), gatekeeper.open(path)]
    for _ in range(data.draw(st.integers(0, 12))):
        gate = pair[data.draw(st.integers(0, 1))]
        call = data.draw(st.sampled_from(CALLS))
        if call == "add":
            batch = data.draw(st.lists(st.tuples(sides, sides), max_size=3))
            assert gate.add_turns(batch) == model.add_turns(batch)
        elif call == "forget" and len(model):
            turn_id = data.draw(st.integers(0, len(model) - 1))
            gate.forget(turn_id)
            model.forget(turn_id)
        elif call == "truncate":
            n_turns = data.draw(st.integers(0, len(model)))
            gate.truncate(n_turns)
            model.truncate(n_turns)
        elif call == "forbid":
            item = data.draw(st.sampled_from(("x", "y\n[query] z")))
            gate.constraints.forbid(item)
            model.constraints.forbid(item)
        elif call == "open":
            pair[0].close()
            pair[0] = gatekeeper.open(path)
        else:
            query = data.draw(queries)
            assert decided(gate, query) == decided(model, query)
    query = data.draw(queries)
    assert decided(pair[0], query) == decided(pair[1], query) == decided(model, query)
    for gate in pair:
        gate.close()
    with gatekeeper.open(path) as gate:
        assert decided(gate, query) == decided(model, query)


# --- settings that are stored are checked


def test_settings_that_index_otherwise_are_refused_and_name_both_values(path: Path) -> None:
    gatekeeper.open(path, settings=Settings(topic_window=5)).close()
    with pytest.raises(StoreSettingsError, match=rf"made with topic_window=5, not {Settings().topic_window}") as caught:
        gatekeeper.open(path, settings=Settings())
    assert caught.value.path == str(path)


def test_settings_of_a_query_hold_for_this_gatekeeper_alone(path: Path) -> None:
    gatekeeper.open(path).close()
    with gatekeeper.open(path, settings=Settings.thorough(), token_budget=77) as gate:
        assert (gate.settings, gate.token_budget) == (Settings.thorough(), 77)
    with gatekeeper.open(path) as gate:
        assert (gate.settings, gate.token_budget) == (Settings(), 4000)


def test_every_setting_is_either_checked_or_known_to_be_of_a_query(path: Path) -> None:
    other = {"ngram_idf_floor": 1.0, "overlap_continue": 0.5, "overlap_switch": 0.1, "new_ratio_switch": 0.6,
             "topic_window": 9, "ngram_weight": 0.4, "unseen_weight": 0.4, "pronoun_mass": 0.1, "shared_mass": 9.0,
             "answer_mass": 0.1}  # fmt: skip
    gatekeeper.open(path).close()
    for name in Settings().as_dict():
        if name in other:
            with pytest.raises(StoreSettingsError, match=name):
                gatekeeper.open(path, settings=Settings(**{name: other[name]}))
    from gatekeeper.store.gate import QUERY_SETTINGS

    assert QUERY_SETTINGS | set(other) == set(Settings().as_dict())


@pytest.mark.parametrize(("arguments", "error"), [
    ({"token_budget": 0}, BudgetError), ({"token_budget": "4"}, ArgumentTypeError), ({"user": " "}, ArgumentValueError),
    ({"session": ""}, ArgumentValueError), ({"session": 7}, ArgumentTypeError), ({"settings": {}}, ArgumentTypeError),
    ({"count_tokens": 1}, ArgumentTypeError),
])  # fmt: skip
def test_bad_arguments_are_refused_before_a_file_is_made(path: Path, arguments: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        gatekeeper.open(path, **arguments)
    assert not path.exists()


def test_bad_turns_change_nothing(path: Path) -> None:
    with gatekeeper.open(path) as gate:
        gate.add_turn(*REDIS)
        with pytest.raises(ArgumentTypeError):
            gate.add_turns([GIT, ("x", 1)])  # type: ignore[list-item]
        for turn_id in (-1, 1):
            with pytest.raises(TurnError):
                gate.forget(turn_id)
            with pytest.raises(TurnError):
                gate.block(turn_id)
        with pytest.raises(ArgumentValueError):
            gate.truncate(2)
        assert len(gate) == 1


# --- who sees what


@given(st.lists(st.tuples(st.text(min_size=1, max_size=3), st.text(min_size=1, max_size=3)).filter(
    lambda pair: all(part.strip() for part in pair)), min_size=2, max_size=6, unique=True))
@settings(max_examples=15)
def test_a_session_is_seen_by_its_user_alone(tmp_path_factory: pytest.TempPathFactory,
                                             names: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("store") / "chat.db"
    for user, session in names:
        with gatekeeper.open(path, user=user, session=session) as gate:
            gate.add_turn(f"secret of {user!r} {session!r}", "")
            gate.constraints["owner"] = repr((user, session))
    for user, session in names:
        with gatekeeper.open(path, user=user, session=session) as gate:
            assert len(gate) == 1
            assert gate.block(0).user == f"secret of {user!r} {session!r}"
            assert gate.explain("secret")["n_blocks"] == 1
            assert gate.constraints["owner"] == repr((user, session))
        listed = files.list_sessions(path, user=user)
        assert {item["session"] for item in listed} == {name for owner, name in names if owner == user}


def test_each_sees_what_the_other_wrote_at_its_next_call(path: Path) -> None:
    ours, theirs = gatekeeper.open(path), gatekeeper.open(path)
    assert ours.add_turn(*REDIS) == 0
    assert theirs.add_turn(*GIT) == 1
    assert [block["turn_id"] for block in ours.select("git rebase")] == [1]
    theirs.constraints.language = "zh"
    assert ours.constraints.language == "zh"
    assert ours.build_prompt("x").startswith("[constraints]\nlanguage: zh\n")
    ours.constraints["a"] = "1"
    theirs.constraints["b"] = "2"
    assert dict(ours.constraints) == dict(theirs.constraints) == {"language": "zh", "a": "1", "b": "2"}
    theirs.truncate(1)
    assert ours.select("git rebase") == []
    theirs.forget(0)
    assert ours.select("惰性删除") == []
    assert {gate.block(0).user + gate.block(0).assistant for gate in (ours, theirs)} == {""}
    files.forget_session(path)
    with pytest.raises(SessionNotFoundError, match="holds no session 'default' of user 'default'"):
        ours.add_turn(*REDIS)
    with gatekeeper.open(path) as anew:
        assert anew.add_turn("made anew", "") == 0
        assert [block["turn_id"] for block in theirs.select("anew")] == [0]
    ours.close()
    theirs.close()


def test_threads_may_share_a_gatekeeper_or_have_one_each(path: Path) -> None:
    shared = gatekeeper.open(path)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            gate = shared if number % 2 else gatekeeper.open(path)
            for i in range(20):
                turn_id = gate.add_turn(f"writer{number} turn{i}", "ok")
                assert gate.block(turn_id).user == f"writer{number} turn{i}"
                assert gate.select(f"writer{number} turn{i}")[0]["turn_id"] == turn_id
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(shared.block(i).user for i in range(120)) == sorted(
        f"writer{number} turn{i}" for number in range(6) for i in range(20))
    shared.close()


# --- closing


def test_a_closed_gatekeeper_says_so(path: Path) -> None:
    gate = gatekeeper.open(path)
    gate.close()
    gate.close()
    for call in (lambda: gate.add_turn(*REDIS), lambda: gate.select("x"), lambda: len(gate)):
        with pytest.raises(StoreError, match="is closed"):
            call()


def test_what_is_not_closed_is_not_lost(path: Path) -> None:
    gate = gatekeeper.open(path)
    gate.add_turn(*REDIS)
    del gate
    with gatekeeper.open(path) as gate:
        assert len(gate) == 1


def test_its_repr_names_the_session(path: Path) -> None:
    with gatekeeper.open(path, session="s", user="u") as gate:
        assert isinstance(gate, SessionGatekeeper)
        assert repr(gate) == f"SessionGatekeeper({str(path)!r}, session='s', user='u', token_budget=4000)"


def test_what_a_query_reads_is_up_to_date(path: Path) -> None:
    writer = gatekeeper.open(path)
    reader = gatekeeper.open(path)
    for gate in (writer, reader):
        assert gate.idf("redis") == 1.0
    writer.add_turn(*REDIS)
    assert reader.idf("redis") == writer.idf("redis") == 1.0
    writer.add_turn(*GIT)
    assert reader.idf("redis") == writer.idf("redis") > 1.0
    assert reader.to_scipy().shape[0] == 2
    writer.close()
    reader.close()


def test_a_turn_over_the_budget_is_kept_with_a_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with gatekeeper.open(path, token_budget=10) as gate:
        gate.add_turn("x" * 20, "")
        assert len(gate) == 1
    assert "turn 0 has 30 tokens, the budget is 10" in caplog.text


