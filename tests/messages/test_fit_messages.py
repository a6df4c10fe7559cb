"""fit_messages: what comes back can be sent, is the caller's own, is within the budget, and costs what is new."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chats import FORMATS, IMAGE, Call, Chat, Orphan, assert_valid, chats, openai, places, role_of, text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, sides

import gatekeeper
from gatekeeper import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    ContextGatekeeper,
    Settings,
    estimate_tokens,
    fit_messages,
)
from gatekeeper.corpus import Corpus
from gatekeeper.messages import forget_all
from gatekeeper.messages.fit import MessageFitter
from gatekeeper.tokens import estimate_tokens_by_script

PLENTY = 10**9
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
COUNTERS = {"x1.5": estimate_tokens, "script": estimate_tokens_by_script, "words": lambda text: len(text.split())}
REDIS = Chat("Answer briefly.", [
    ("How does Redis expire keys?", ["Redis deletes a key lazily when it is read. It also samples. Ask me more."]),
    ("What does git rebase do?", ["It rewrites commits onto another base. Be careful with shared branches."]),
    ("Is lazy deletion in redis enough?", []),
])  # fmt: skip


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget_all()
    yield
    forget_all()


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: Any, **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **extra}


def last_turn(messages: list[Any]) -> int:
    """Where the last turn begins."""
    starts = [i for i, m in enumerate(messages) if role_of(m) == "user" and not is_result(m)]
    return starts[-1] if starts else 0


def is_result(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(part["type"] == "tool_result" for part in content)


# --- by example


def test_one_line() -> None:
    messages = openai(REDIS)
    sent = fit_messages(messages, token_budget=4000)
    assert sent == [messages[0], messages[1], assistant("Redis deletes a key lazily when it is read."), messages[-1]]
    assert sent[0] is messages[0]
    assert sent[1] is messages[1]
    assert sent[-1] is messages[-1]
    assert isinstance(sent, list)
    assert json.loads(json.dumps(sent)) == list(sent)


def test_without_pruning_messages_are_the_very_objects() -> None:
    messages = openai(REDIS)
    sent = fit_messages(messages, prune=False)
    assert [id(message) for message in sent] == [id(messages[i]) for i in (0, 1, 2, 5)]


def test_nothing_that_came_in_is_changed() -> None:
    messages = openai(REDIS)
    before = copy.deepcopy(messages)
    fit_messages(messages)
    assert messages == before


def test_parallel_calls_go_together() -> None:
    found = Call("a", '{"q": "lazy deletion"}', "redis lazy deletion works")
    both = [found, Call("b", '{"q": "x"}', "Nothing. At all.")]
    chat = Chat(None, [("Compare the two policies", [both, [Call("c", "{}", "unrelated")], "One is lazy."]),
                       ("How does redis lazy deletion work?", [])])  # fmt: skip
    messages = openai(chat)
    sent = fit_messages(messages, 4000)
    assert [role_of(m) for m in sent] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert sent[1] is messages[1]
    assert sent[2] is messages[2]
    assert sent[3] == {"role": "tool", "tool_call_id": "b", "content": "Nothing."}


def test_an_interrupted_run_is_left_out_whole() -> None:
    torn = [Call("a", "{}", "redis found"), Call("b", "{}", None)]
    chat = Chat(None, [("Look up redis", [torn, "Stopped at redis."]), ("What of redis?", [])])
    assert [text_of(m) for m in fit_messages(openai(chat))] == ["Look up redis", "Stopped at redis.", "What of redis?"]


def test_the_last_turn_stays_with_its_tools_and_never_ends_dangling() -> None:
    done, open_ = [Call("a", "{}", "42")], [Call("b", "{}", None)]
    chat = Chat(None, [("hello", ["hi"]), ("Count the keys", [done, open_])])
    messages = openai(chat)
    assert list(fit_messages(messages)) == messages[2:5]


def test_a_result_that_comes_too_late_is_an_orphan() -> None:
    turns = [("redis?", [[Call("a", "{}", None)]]), ("redis again?", []), ("go on with redis", [])]
    messages = openai(Chat(None, turns))
    late = {"role": "tool", "tool_call_id": "a", "content": "redis"}
    assert_valid(fit_messages([*messages[:3], late, *messages[3:]]))


def test_ids_may_be_used_again() -> None:
    one = [Call("call_0", '{"q": "redis"}', "redis lazy")]
    chat = Chat(None, [("redis?", [one, "ok"]), ("redis more?", [one, "yes"]), ("redis lazy?", [])])
    sent = fit_messages(openai(chat), settings=Settings.thorough())
    assert_valid(sent)
    assert len(sent) == 9


def test_an_answer_that_holds_nothing_keeps_its_first_sentence() -> None:
    messages = [user("My badge is 42."), assistant("Noted. Anything else?"), user("what is my badge")]
    assert [text_of(m) for m in fit_messages(messages)] == ["My badge is 42.", "Noted.", "what is my badge"]


def test_what_stands_before_the_first_user_message_is_left_out() -> None:
    messages = [assistant("redis greeting"), user("redis one"), assistant("redis two"), user("redis")]
    assert fit_messages(messages)[0] is messages[1]


def test_a_list_without_a_user_message_stays() -> None:
    messages = [{"role": "system", "content": "s"}, assistant("a"), assistant("b")]
    assert list(fit_messages(messages)) == messages
    assert list(fit_messages([])) == []


def test_a_system_message_stays_wherever_it_stands() -> None:
    chat = openai(REDIS)
    late = {"role": "developer", "content": "Be kind."}
    sent = fit_messages([*chat[:4], late, *chat[4:]])
    assert any(message is late for message in sent)
    assert sent.index(late) == 3


# --- content


def test_content_may_be_none_a_list_or_hold_images() -> None:
    messages = [
        user([{"type": "text", "text": "Hello from Turin"}, IMAGE]), assistant(None), assistant("A fine picture."),
        user([IMAGE]), assistant("Another."), user("Turin"),
    ]  # fmt: skip
    sent = fit_messages(messages, 4000)
    assert list(sent) == [messages[0], messages[2], messages[5]]
    assert sent[0] is messages[0]


def test_an_image_costs_what_the_setting_says_and_its_bytes_are_never_counted() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    messages = [user([{"type": "text", "text": "Turin"}, IMAGE])]
    sent = fit_messages(messages, 4000, count_tokens=count, settings=Settings(image_tokens=85))
    assert sent.n_tokens == len("Turin") + 85 + 2 * 5
    assert not any("base64" in text for text in counted)


def test_an_image_that_does_not_fit_keeps_its_turn_out() -> None:
    messages = [user([{"type": "text", "text": "Hello from Turin"}, IMAGE]), assistant("Hi"), user("Turin")]
    assert list(fit_messages(messages, 200)) == [messages[2]]
    assert list(fit_messages(messages, 200, settings=Settings(image_tokens=85))) == messages


def test_parts_without_a_kept_sentence_are_cut_and_others_stay() -> None:
    parts = [{"type": "text", "text": "Nothing here."}, {"type": "text", "text": "Redis is fast. So is C."}, IMAGE]
    sent = fit_messages([user(parts), assistant("ok"), user("redis fast")])
    assert sent[0]["content"] == [{"type": "text", "text": "Redis is fast."}, IMAGE]
    assert len(parts) == 3


def test_thinking_goes_back_as_it_was_and_is_not_searched() -> None:
    thought = {"type": "thinking", "thinking": "redis redis", "signature": "abc"}
    said = {"type": "text", "text": "Redis is a store. It is fast."}
    sent = fit_messages([user("What is that redis"), assistant([thought, said]), user("a redis store")])
    assert sent[1]["content"] == [thought, {"type": "text", "text": "Redis is a store."}]


def test_words_beside_an_orphaned_result_are_still_the_query() -> None:
    orphan = {"type": "tool_result", "tool_use_id": "gone", "content": "x"}
    messages = [user("redis is fast"), assistant("yes"), user([orphan, {"type": "text", "text": "why is redis fast"}])]
    sent = fit_messages(messages)
    assert list(sent) == [messages[0], messages[1], user([{"type": "text", "text": "why is redis fast"}])]
    assert list(fit_messages(copy.deepcopy(messages))) == list(sent)


def test_words_beside_results_are_the_query_and_no_new_turn() -> None:
    call = assistant([{"type": "tool_use", "id": "t", "name": "f", "input": {}}])
    result = user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "text", "text": "and redis?"}])
    messages = [user("redis is fast"), assistant("yes"), user("go"), call, result]
    assert list(fit_messages(messages)) == messages


def test_the_old_function_form() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"q": "redis"}'}}
    result = {"role": "function", "name": "f", "content": "redis is fast"}
    messages = [user("look"), call, result, assistant("Done."), user("redis fast?")]
    assert list(fit_messages(messages)) == messages
    assert list(fit_messages([messages[0], result, *messages[3:]])) == [messages[-1]]


# --- pinned, strict, reserved


def test_a_pinned_message_stays_with_its_question() -> None:
    messages = [user("Q"), assistant("The code word is swordfish."), user("bananas"), assistant("ok"), user("zebra")]
    assert list(fit_messages(messages)) == [messages[4]]
    sent = fit_messages(messages, pinned=lambda message: message is messages[1])
    assert [id(m) for m in sent] == [id(messages[i]) for i in (0, 1, 4)]


def test_a_message_may_say_itself_that_it_is_pinned() -> None:
    messages: list[Any] = [{"role": "user", "content": "Keep this.", "pinned": True}, assistant("ok"), user("zebra")]
    assert list(fit_messages(messages)) == [messages[0], messages[2]]


def test_a_pinned_result_keeps_its_whole_unit() -> None:
    pair = [Call("a", "{}", "first"), Call("b", "{}", "second")]
    messages = openai(Chat(None, [("Q", [pair, "done"]), ("zebra", [])]))
    sent = fit_messages(messages, pinned=lambda message: message.get("content") == "second")
    assert list(sent) == [*messages[:4], messages[5]]


def test_over_budget_is_flagged_with_its_size_and_an_error_only_if_strict(caplog: pytest.LogCaptureFixture) -> None:
    messages = [{"role": "system", "content": "rule " * 400}, user("redis"), assistant("redis"), user("redis?")]
    with caplog.at_level(logging.WARNING, logger="gatekeeper"):
        sent = fit_messages(messages, 50)
    assert list(sent) == [messages[0], messages[3]]
    assert sent.over_budget
    assert sent.n_tokens == sent.n_fixed_tokens == 3000 + 9 + 3 * 5
    assert "take 3024 tokens, the budget is 50" in caplog.text
    with pytest.raises(BudgetError, match="take 3024 tokens, the budget is 50"):
        fit_messages(messages, 50, strict=True)


def test_tools_and_what_is_reserved_count() -> None:
    messages = [user("q")]
    plain = fit_messages(messages).n_tokens
    assert plain == 2 + 2 * 5
    assert fit_messages(messages, reserved_tokens=100).n_tokens == plain + 100
    assert fit_messages(messages, tools=TOOLS).n_tokens == plain + estimate_tokens(json.dumps(TOOLS))
    assert fit_messages(messages, tools=()).n_tokens == plain
    assert fit_messages(messages, 100, tools=TOOLS).over_budget


# --- bad input


@pytest.mark.parametrize(("messages", "error", "said"), [
    ("hello", ArgumentTypeError, "messages must be a list of messages, got str"),
    (None, ArgumentTypeError, "messages must be"),
    ({"role": "user"}, ArgumentTypeError, "messages must be"),
    ([user("a"), "b"], ArgumentTypeError, r"messages\[1\]: expected a message with a role, got str"),
    ([user("a"), {}], ArgumentTypeError, r"messages\[1\]: expected a message with a role"),
    ([{"role": "wizard", "content": "a"}], ArgumentValueError, r"messages\[0\]: a role is one of system, .*'wizard'"),
    ([user([3])], ArgumentTypeError, r"messages\[0\]: expected a content part"),
    ([user(3)], ArgumentTypeError, r"messages\[0\]: expected a content part"),
])  # fmt: skip
def test_bad_messages_are_named(messages: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        fit_messages(messages)


@pytest.mark.parametrize(("arguments", "error"), [
    ({"token_budget": 0}, BudgetError), ({"token_budget": "9"}, ArgumentTypeError),
    ({"reserved_tokens": -1}, ArgumentValueError), ({"reserved_tokens": None}, ArgumentTypeError),
    ({"tools": "f"}, ArgumentTypeError), ({"tools": [print]}, ArgumentTypeError), ({"pinned": [1]}, ArgumentTypeError),
    ({"settings": {}}, ArgumentTypeError), ({"count_tokens": 3}, ArgumentTypeError),
])  # fmt: skip
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"^(a )?{next(iter(arguments)).rstrip('s')}"):
        fit_messages([user("a")], **arguments)


def test_a_message_that_fails_leaves_the_memory_usable() -> None:
    messages = openai(REDIS)
    first = fit_messages(messages)
    with pytest.raises(ArgumentTypeError):
        fit_messages([*messages, 3])
    assert fit_messages(messages) == first


# --- whatever the chat


@pytest.mark.parametrize("format_", FORMATS)
@given(chat=chats, budget=st.integers(1, 400), thorough=st.booleans(), prune=st.booleans())
@settings(max_examples=60)
def test_it_can_be_sent(format_: str, chat: Chat, budget: int, thorough: bool, prune: bool) -> None:
    messages = FORMATS[format_](chat)
    before = copy.deepcopy(messages)
    chosen = Settings.thorough() if thorough else Settings.minimal()
    for count in COUNTERS.values():
        for allowed in (budget, PLENTY):
            sent = fit_messages(messages, allowed, prune=prune, settings=chosen, count_tokens=count, tools=TOOLS)
            assert_valid(sent)
            taken = places(sent, messages)
            assert prune or all(any(m is message for message in messages) for m in sent)
            assert {i for i, m in enumerate(messages) if role_of(m) in ("system", "developer")} <= set(taken)
            assert last_turn(messages) in taken
            assert sent[taken.index(last_turn(messages))] is messages[last_turn(messages)]
            assert all(sent[k] is messages[i] for k, i in enumerate(taken) if i >= last_turn(messages))
            counted = sum(count(text_of(m)) for m in sent) + count(json.dumps(TOOLS))
            assert counted <= sent.n_tokens
            assert sent.over_budget == (sent.n_fixed_tokens > allowed)
            assert sent.over_budget or sent.n_tokens <= allowed
    assert messages == before


@given(chat=chats, thorough=st.booleans())
def test_every_format_says_the_same(chat: Chat, thorough: bool) -> None:
    """Without orphans and interrupted calls, and with one call at a time, the same turns are chosen and cut alike."""
    for call in (call for _, steps in chat.turns for step in steps if isinstance(step, list) for call in step):
        call.result = call.result or "redis"
    steps_of = [[s[:1] if isinstance(s, list) else s for s in steps if not isinstance(s, Orphan)]
                for _, steps in chat.turns]
    tame = Chat(chat.system, [(text, steps) for (text, _), steps in zip(chat.turns, steps_of, strict=True)])
    chosen = Settings.thorough() if thorough else Settings.minimal()
    said = []
    for format_ in ("openai", "anthropic", "responses"):
        sent = fit_messages(FORMATS[format_](tame), PLENTY, settings=chosen)
        said.append([(role_of(m) == "user" and not is_result(m), text_of(m)) for m in sent
                     if m.get("type") != "reasoning" and text_of(m)])
    assert said[0] == said[1] == said[2]


@given(history=st.lists(st.tuples(queries, sides), max_size=6), query=queries, thorough=st.booleans())
def test_it_selects_what_select_selects(history: list[tuple[str, str]], query: str, thorough: bool) -> None:
    chosen = Settings.thorough() if thorough else Settings.minimal()
    gate = ContextGatekeeper(PLENTY, settings=chosen)
    gate.add_turns(history)
    blocks = sorted(gate.select(query), key=lambda block: block["turn_id"])
    messages = openai(Chat(None, [*((u, [a]) for u, a in history), (query, [])]))
    sent = fit_messages([{**m, "turn": i // 2} for i, m in enumerate(messages)], PLENTY, settings=chosen)
    turn_ids = [m["turn"] for m in sent]
    assert [turn_id for turn_id in dict.fromkeys(turn_ids) if turn_id < len(history)] == [b["turn_id"] for b in blocks]
    for block in blocks:
        texts = [text_of(m).strip() for m, turn_id in zip(sent, turn_ids, strict=True) if turn_id == block["turn_id"]]
        assert block["user"] in ("", texts[0])
        assert block["assistant"] in ("", texts[-1])


# --- only the new work


@given(chat=chats, others=st.lists(chats, max_size=2), budget=st.integers(1, 300))
@settings(max_examples=60)
def test_what_is_remembered_never_shows(chat: Chat, others: list[Chat], budget: int) -> None:
    """Lists that grow, share their beginning, are edited: each answer is that of a process that saw nothing."""
    lists = [openai(Chat(c.system, [*chat.turns[:i], *c.turns])) for c in [chat, *others] for i in (0, 1)]
    asked = [messages[:n] for n in range(1, 12) for messages in lists if n <= len(messages)]
    remembered = [fit_messages(copy.deepcopy(messages), budget) for messages in asked]
    for messages, sent in zip(asked, remembered, strict=True):
        forget_all()
        fresh = fit_messages(messages, budget)
        assert (list(sent), sent.n_tokens, sent.n_fixed_tokens) == (list(fresh), fresh.n_tokens, fresh.n_fixed_tokens)


def test_a_list_that_has_grown_costs_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    indexed: list[tuple[str, str]] = []
    append = Corpus.append

    def recorded(self: Corpus, turns: Any) -> range:
        indexed.extend(turns)
        return append(self, turns)

    monkeypatch.setattr(Corpus, "append", recorded)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for i in range(30):
        messages.append(user(f"redis question {i}"))
        fit_messages(json.loads(json.dumps(messages)), count_tokens=count)  # new objects each time, as from a request
        messages.append(assistant(f"redis answer {i}"))
    assert indexed == [(f"redis question {i}", f"redis answer {i}") for i in range(29)]
    assert len(counted) == len(set(counted))


def test_an_agent_that_goes_on_in_its_turn_indexes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = openai(Chat(None, [("redis?", ["yes"]), ("look", [[Call(f"c{i}", "{}", "x")] for i in range(5)])]))
    fit_messages(messages[:3])
    monkeypatch.setattr(Corpus, "append", lambda *_: pytest.fail("it indexed"))
    for n in range(4, len(messages) + 1):
        fit_messages(messages[:n])


def test_a_counter_made_anew_for_each_call_counts_anew_and_indexes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = openai(REDIS)
    assert fit_messages(messages, count_tokens=lambda text: len(text)).n_tokens > 0
    monkeypatch.setattr(Corpus, "append", lambda *_: pytest.fail("it indexed"))
    assert fit_messages(messages, count_tokens=lambda text: 1).n_tokens == 5 * (4 + 1) + 4


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from gatekeeper.messages import fit

    for i in range(fit.MAX_CONVERSATIONS + 5):
        fit_messages([user(f"a{i}"), assistant("b"), user("c")])
    assert len(fit.PROCESS_MEMORY) == fit.MAX_CONVERSATIONS
    monkeypatch.setattr(fit, "MAX_CHARACTERS", 10)
    fit_messages([user("a" * 100), assistant("b"), user("c")])
    assert len(fit.PROCESS_MEMORY) == 1
    forget_all()
    assert len(fit.PROCESS_MEMORY) == 0


def test_ids_made_anew_for_each_request_are_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    fit_messages([{**m, "id": f"first {i}"} for i, m in enumerate(openai(REDIS))])
    monkeypatch.setattr(Corpus, "append", lambda *_: pytest.fail("it indexed"))
    fit_messages([{**m, "id": f"second {i}"} for i, m in enumerate(openai(REDIS))])


def test_messages_come_back_as_the_objects_of_this_call() -> None:
    first, second = openai(REDIS), openai(REDIS)
    fit_messages(first, prune=False)
    assert all(any(m is message for message in second) for m in fit_messages(second, prune=False))


def test_a_message_edited_in_place_is_seen() -> None:
    messages = [user("the word is alpha"), assistant("ok"), user("the word")]
    fit_messages(messages)
    messages[0]["content"] = "the word is omega"
    assert fit_messages(messages)[0]["content"] == "the word is omega"


def test_threads_with_the_same_beginning_do_not_mix() -> None:
    def talk(who: int) -> list[str]:
        messages: list[Any] = [user("hello"), assistant("hi")]
        said = []
        for i in range(20):
            messages.append(user(f"secret of {who} number {i}"))
            said.append(" ".join(text_of(m) for m in fit_messages(messages)))
            messages.append(assistant(f"noted by {who}"))
        return said

    with ThreadPoolExecutor(8) as pool:
        for who, said in enumerate(pool.map(talk, range(8))):
            assert not any(f"of {other} " in text for text in said for other in range(8) if other != who)


def test_fit_messages_is_found_where_it_is_named() -> None:
    assert gatekeeper.fit_messages is fit_messages


def test_an_error_names_the_place_of_the_message_whatever_is_remembered() -> None:
    good = [{"role": "user", "content": "redis"}, {"role": "assistant", "content": "ok", "id": "a"},
            {"role": "user", "content": "lock"}]  # fmt: skip
    fitter = MessageFitter(4000)
    for _ in range(2):
        for bad in (None, {"role": "user", "content": [None]}, {"role": "nobody"}):
            for place in range(3):
                with pytest.raises((ArgumentTypeError, ArgumentValueError), match=rf"^messages\[{place}\]"):
                    fitter.fit([*good[:place], bad, *good[place + 1 :]])
        fitter.fit(good)
