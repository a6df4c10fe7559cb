"""add_messages and select_messages: what is known, what replaces, what is chosen from, that selecting only reads."""

from __future__ import annotations

from typing import Any

import pytest
from chats import FORMATS, Call, Chat, assert_valid, chats, openai, role_of, text_of
from conversations import decision
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries

from gatekeeper import ArgumentTypeError, BudgetError, ContextGatekeeper, Settings, fit_messages

PLENTY = 10**9
HISTORY = [
    {"role": "system", "content": "Answer briefly."},
    {"role": "user", "content": "How does Redis expire keys?", "id": "q1"},
    {"role": "assistant", "content": "Lazily, when redis reads them.", "id": "a1"},
    {"role": "user", "content": "What does git rebase do?", "id": "q2"},
    {"role": "assistant", "content": "It rewrites commits.", "id": "a2"},
]


def gate_with(messages: Any, budget: int = 4000, **arguments: Any) -> ContextGatekeeper:
    gate = ContextGatekeeper(budget, **arguments)
    gate.add_messages(messages)
    return gate


def turns_of(gate: ContextGatekeeper) -> list[tuple[str, str]]:
    return [(block.user, block.assistant) for block in map(gate.block, range(len(gate)))]


# --- adding


def test_a_user_message_with_all_that_follows_is_a_turn() -> None:
    assert turns_of(gate_with(HISTORY)) == [
        ("How does Redis expire keys?", "Lazily, when redis reads them."),
        ("What does git rebase do?", "It rewrites commits."),
    ]


def test_the_answer_heads_its_side_and_calls_are_searched() -> None:
    chat = Chat(None, [("Look", [[Call("a", '{"q": "redis"}', "found")], "It is there."])])
    assert turns_of(gate_with(openai(chat))) == [("Look", 'It is there.\nlook {"q": "redis"}\nfound')]


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_added(format_: str) -> None:
    chat = Chat("s", [("Look for redis", [[Call("a", '{"q": "redis"}', "found it")], "It is there."]), ("ok", ["yes"])])
    gate = gate_with(FORMATS[format_](chat))
    assert len(gate) == 2
    assert gate.block(0).user == "Look for redis"
    assert gate.block(0).assistant.startswith("It is there.\n")
    assert gate.block(0).assistant.endswith("found it")


def test_a_sharegpt_record_is_a_list_of_messages() -> None:
    turns = [{"from": "human", "value": "redis?"}, {"from": "gpt", "value": "yes"}]
    assert turns_of(gate_with({"id": "x", "conversations": turns})) == [("redis?", "yes")]


def test_adding_a_known_id_changes_nothing() -> None:
    gate = gate_with(HISTORY)
    before = decision(gate, "redis keys")
    gate.add_messages([dict(message) for message in HISTORY[1:]])
    gate.add_messages(HISTORY[2:3])
    assert decision(gate, "redis keys") == before


def test_without_an_id_the_very_object_is_known() -> None:
    messages = [{"role": "user", "content": "ok"}, {"role": "assistant", "content": "ok"}]
    gate = gate_with(messages)
    gate.add_messages(messages)
    gate.add_messages(messages[1:])
    assert len(gate) == 1
    gate.add_messages([dict(messages[0])])
    assert len(gate) == 2


def test_without_ids_a_list_that_begins_with_all_that_is_known_has_only_grown() -> None:
    messages = [{"role": "system", "content": "brief"}, {"role": "user", "content": "a redis lock"},
                {"role": "assistant", "content": "ok"}]  # fmt: skip
    more = {"role": "user", "content": "a redis lock"}
    gate = gate_with(messages)
    for grown in (messages, [*messages, more]):
        gate.add_messages([dict(message) for message in grown])
        before = decision(gate, "redis")
        gate.add_messages([dict(message) for message in grown])
        assert decision(gate, "redis") == before
    assert turns_of(gate) == [("a redis lock", "ok"), ("a redis lock", "")]
    assert gate.select_messages([dict(message) for message in [*messages, more]]) == [*messages, more]
    edited = [messages[0], {"role": "user", "content": "no"}, *messages[2:]]
    gate.add_messages([dict(message) for message in edited])
    assert len(gate) == 3


def test_a_changed_message_takes_the_place_of_the_old_one() -> None:
    gate = gate_with(HISTORY)
    gate.add_messages([{"role": "assistant", "content": "By sampling.", "id": "a1"}])
    changed = [*HISTORY[:2], {"role": "assistant", "content": "By sampling.", "id": "a1"}, *HISTORY[3:]]
    assert turns_of(gate)[0] == ("How does Redis expire keys?", "By sampling.")
    assert decision(gate, "git rebase") == decision(gate_with(changed), "git rebase")


def test_an_object_changed_in_place_is_seen_when_added_again() -> None:
    messages = [{"role": "user", "content": "alpha"}, {"role": "assistant", "content": "ok"}]
    gate = gate_with(messages)
    messages[0]["content"] = "omega"
    gate.add_messages(messages)
    assert turns_of(gate) == [("omega", "ok")]


def test_a_change_of_role_moves_the_bounds_of_turns() -> None:
    gate = gate_with(HISTORY)
    gate.add_messages([{"role": "assistant", "content": "What does git rebase do?", "id": "q2"}])
    assert turns_of(gate) == [("How does Redis expire keys?",
                               "It rewrites commits.\nLazily, when redis reads them.\nWhat does git rebase do?")]


def test_a_bad_message_leaves_the_conversation_as_it_was() -> None:
    gate = gate_with(HISTORY)
    before = decision(gate, "redis")
    with pytest.raises(ArgumentTypeError, match=r"messages\[1\]"):
        gate.add_messages([{"role": "user", "content": "new", "id": "q3"}, 3])
    assert decision(gate, "redis") == before
    assert len(gate.select_messages("redis")) == 3


@given(chat=chats, cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=60)
def test_adding_piece_by_piece_equals_adding_at_once(chat: Chat, cuts: list[int]) -> None:
    messages = openai(chat)
    whole, grown = gate_with(messages), ContextGatekeeper(4000)
    start = 0
    for cut in [*sorted(cuts), len(messages)]:
        grown.add_messages(messages[:cut] if cut % 2 else messages[start:cut])
        start = max(start, cut)
    assert turns_of(grown) == turns_of(whole)
    assert decision(grown, "redis 删除") == decision(whole, "redis 删除")
    assert grown.select_messages("redis 删除") == whole.select_messages("redis 删除")


# --- with turns that came as texts, forgotten ones, dropped ones


def test_turns_that_came_as_texts_come_back_in_the_canonical_form() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turn("redis one", "first")
    gate.add_messages([{"role": "user", "content": "redis two"}, {"role": "assistant", "content": "second"}])
    gate.add_turn("redis three", "third")
    sent = gate.select_messages("redis one two three")
    assert [m["content"] for m in sent] == ["redis one", "first", "redis two", "second", "redis three", "third"]
    assert sent[0] == {"role": "user", "content": "redis one"}


def test_a_turn_of_texts_that_no_question_heads_is_not_sent() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turn("", "redis")
    assert list(gate.select_messages("redis")) == []


def test_a_turn_that_goes_on_behind_a_turn_of_texts_keeps_its_place() -> None:
    gate = gate_with([{"role": "user", "content": "alpha"}])
    gate.add_turn("beta", "b")
    gate.add_messages([{"role": "assistant", "content": "a"}])
    assert turns_of(gate) == [("alpha", "a"), ("beta", "b")]


def test_what_is_forgotten_is_gone_and_does_not_come_back() -> None:
    gate = gate_with(HISTORY)
    gate.forget(0)
    gate.add_messages(HISTORY)
    assert turns_of(gate) == [("", ""), ("What does git rebase do?", "It rewrites commits.")]
    assert [m["role"] for m in gate.select_messages("redis expire keys")] == ["system"]
    assert gate._message_log
    assert not any("Redis" in text for view in gate._message_log.views for text in view.texts)


def test_a_forgotten_turn_stays_forgotten_when_another_changes() -> None:
    gate = gate_with([*HISTORY, {"role": "user", "content": "bananas", "id": "q3"}])
    gate.forget(1)
    gate.add_messages([{"role": "assistant", "content": "By sampling.", "id": "a1"}])
    assert turns_of(gate) == [("How does Redis expire keys?", "By sampling."), ("", ""), ("bananas", "")]


def test_truncate_drops_the_messages_too() -> None:
    gate = gate_with(HISTORY)
    gate.truncate(1)
    assert [m["role"] for m in gate.select_messages("git rebase commits")] == ["system"]
    gate.add_messages(HISTORY)
    assert turns_of(gate) == turns_of(gate_with(HISTORY))


# --- selecting


def test_a_query_by_itself_chooses_from_all_turns_and_is_not_in_the_result() -> None:
    sent = gate_with(HISTORY).select_messages("redis keys")
    assert list(sent) == HISTORY[:3]
    assert all(a is b for a, b in zip(sent, HISTORY, strict=False))


def test_messages_go_on_from_those_added() -> None:
    question = {"role": "user", "content": "redis keys again"}
    assert list(gate_with(HISTORY).select_messages([question])) == [*HISTORY[:3], question]


def test_the_whole_list_may_be_given_added_or_not() -> None:
    messages = [*HISTORY, {"role": "user", "content": "redis keys again", "id": "q3"}]
    wanted = list(fit_messages(messages))
    assert list(ContextGatekeeper(4000).select_messages(messages)) == wanted
    assert list(gate_with(messages).select_messages(messages)) == wanted
    assert list(gate_with(messages[:3]).select_messages(messages)) == wanted


def test_arguments_are_those_of_fit_messages() -> None:
    gate = gate_with(HISTORY)
    assert gate.select_messages("bananas", pinned=lambda m: m.get("id") == "a2")[1:] == HISTORY[3:]
    assert gate.select_messages("redis keys", token_budget=50).over_budget
    with pytest.raises(BudgetError):
        gate.select_messages("redis keys", token_budget=50, strict=True)
    plain = gate.select_messages("redis").n_tokens
    assert gate.select_messages("redis", tools=[{"a": 1}], reserved_tokens=7).n_tokens == plain + 15 + 7


@given(chat=chats, more=chats, query=queries)
@settings(max_examples=60)
def test_selecting_changes_nothing(chat: Chat, more: Chat, query: str) -> None:
    history, later = openai(chat), openai(more)
    gate = gate_with(history)
    gate.add_turn("redis between", "yes")
    gate.forget(0) if len(gate) > 2 else None
    before = decision(gate, query), gate.select_messages(query)
    for messages in (later, later[:1], history, history + later, history[:2], []):
        first, second = gate.select_messages(messages), gate.select_messages(messages)
        assert first == second
        assert_valid(first)
        assert (decision(gate, query), gate.select_messages(query)) == before


@given(chat=chats, thorough=st.booleans())
@settings(max_examples=60)
def test_a_gatekeeper_says_what_the_one_line_says(chat: Chat, thorough: bool) -> None:
    messages = openai(chat)
    chosen = Settings.thorough() if thorough else Settings.minimal()
    wanted = fit_messages(messages, 300, settings=chosen)
    gate = ContextGatekeeper(300, settings=chosen)
    for n in range(len(messages)):
        gate.add_messages(messages[: n + 1])
    assert gate.select_messages(messages) == wanted
    sent = ContextGatekeeper(300, settings=chosen).select_messages(messages)
    assert (list(sent), sent.n_tokens) == (list(wanted), wanted.n_tokens)


def test_a_counter_that_fails_leaves_the_gatekeeper_as_it_was() -> None:
    def count(text: str) -> int:
        if "boom" in text:
            raise RuntimeError(text)
        return 1

    messages = [*HISTORY, {"role": "user", "content": "redis boom"}]
    gate = gate_with(messages[:-1], count_tokens=count)
    before = decision(gate, "redis")
    with pytest.raises(RuntimeError):
        gate.select_messages(messages)
    assert decision(gate, "redis") == before


@pytest.mark.parametrize("messages", [
    [{"role": "user", "content": "boom " * 40}], [{"role": "assistant", "content": "boom " * 40, "id": "a1"}],
])  # fmt: skip
def test_a_counter_that_fails_while_adding_leaves_it_too(messages: Any) -> None:
    def count(text: str) -> int:
        if "boom" in text:
            raise RuntimeError(text)
        return 1

    gate = gate_with(HISTORY, 400, count_tokens=count)
    before = decision(gate, "redis"), gate.select_messages("redis")
    with pytest.raises(RuntimeError):
        gate.add_messages(messages)
    assert (decision(gate, "redis"), gate.select_messages("redis")) == before
    gate.add_messages([{"role": "user", "content": "redis again"}])
    assert turns_of(gate)[2] == ("redis again", "")


def test_a_run_of_tools_too_long_for_the_budget_is_cut_to_its_best() -> None:
    steps: list[Any] = [[Call(f"k{i}", "{}", f"step {i}")] for i in range(6)]
    messages = openai(Chat(None, [("start", [*steps, "finished step five"])]))
    gate = gate_with(messages, PLENTY)
    assert [role_of(m) for m in gate.select_messages("what was step 5", token_budget=95)] == ["user", "assistant"]
    sent = gate.select_messages("what was step 5", token_budget=130)
    assert [text_of(m) for m in sent] == ["start", "", "step 0", "finished step five"]
    assert_valid(sent)
