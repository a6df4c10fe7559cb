"""Many conversations: order, bounded reading, one bad conversation, the same answers as one by one."""

import itertools

import pytest

from gatekeeper import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    ContextGatekeeper,
    ConversationError,
    select_many,
)

REDIS = [("Redis 惰性删除是什么", "访问时才检查键是否过期。"), ("Git rebase 怎么用", "先切到功能分支。")]
GIT = [("how does git bisect work?", "It halves the range of commits."), ("lunch?", "noodles")]
QUERIES = ["惰性删除怎么触发", "git bisect"]


def one_by_one(conversations, queries, budget=4000):
    answers = []
    for turns, query in zip(conversations, queries, strict=True):
        gate = ContextGatekeeper(budget)
        for turn in turns:
            gate.add_turn(*turn)
        answers.append(gate.select(query))
    return answers


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_results_are_those_of_one_gatekeeper_each_in_order(threads):
    conversations = [REDIS, GIT] * 40
    queries = QUERIES * 40
    assert list(select_many(conversations, queries, threads=threads)) == one_by_one(conversations, queries)


@pytest.mark.parametrize("threads", [1, 3])
def test_iterables_are_read_no_further_ahead_than_needed(threads):
    read = itertools.count()
    conversations = (REDIS for _ in read)
    results = select_many(conversations, itertools.repeat(QUERIES[0]), threads=threads)
    for _ in range(10):
        next(results)
    assert next(read) <= 10 + 4 * threads + 2
    results.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bad_conversation_reports_its_index_and_the_rest_goes_on(threads):
    conversations = [REDIS, [("no", 7)], GIT]
    first, bad, last = select_many(conversations, [QUERIES[0], "x", QUERIES[1]], threads=threads)
    assert [first, last] == one_by_one([REDIS, GIT], QUERIES)
    assert isinstance(bad, ConversationError)
    assert bad.index == 1
    assert isinstance(bad.cause, ArgumentTypeError)
    assert "conversation 1" in str(bad)


@pytest.mark.parametrize("threads", [1, 2])
def test_stop_on_error_raises_the_error_of_the_conversation(threads):
    results = select_many([REDIS, None, GIT], [*QUERIES, "x"], threads=threads, stop_on_error=True)
    assert next(results)
    with pytest.raises(ConversationError, match="conversation 1: TypeError"):
        next(results)


def test_iterables_of_different_length_are_refused():
    with pytest.raises(ArgumentValueError, match="queries ended after 1"):
        list(select_many([REDIS, GIT], QUERIES[:1]))
    with pytest.raises(ArgumentValueError, match="conversations ended after 1"):
        list(select_many([REDIS], QUERIES))


def test_bad_arguments_are_refused_before_anything_is_read():
    with pytest.raises(BudgetError):
        select_many([], [], token_budget=0)
    with pytest.raises(ArgumentValueError, match="threads"):
        select_many([], [], threads=0)
    with pytest.raises(ArgumentTypeError, match="threads"):
        select_many([], [], threads=1.5)
    with pytest.raises(ArgumentTypeError, match="queries"):
        list(select_many([REDIS], "x"))


def test_nothing_in_nothing_out():
    assert list(select_many([], [], threads=2)) == []
