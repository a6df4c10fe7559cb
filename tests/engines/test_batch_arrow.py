"""Record batches: each row as a gatekeeper of its own decides it, whatever the batches, types and exporters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import queries, sides

from gatekeeper import ArgumentTypeError, ArgumentValueError, BudgetError, ContextGatekeeper, Settings
from gatekeeper.batch import select_batches
from gatekeeper.batch.arrow import output_schema
from gatekeeper.batch.engines import select_table

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.engines

TURN = pa.struct([("user", pa.string()), ("assistant", pa.string())])
REDIS = [("Redis 惰性删除是什么", "访问时才检查键是否过期。"), ("Git rebase 怎么用", "先切到功能分支。")]
conversations = st.lists(st.tuples(st.lists(st.tuples(sides, sides), max_size=5), queries), max_size=6)


def table_of(rows: Any, turns_type: Any = None, text_type: Any = None) -> Any:
    """A table of (turns, query) with an id; turns are pairs."""
    turns = [None if turns is None else [{"user": user, "assistant": assistant} for user, assistant in turns]
             for turns, _ in rows]  # fmt: skip
    return pa.table({
        "id": pa.array(range(len(rows)), pa.int64()), "turns": pa.array(turns, turns_type or pa.list_(TURN)),
        "query": pa.array([query for _, query in rows], text_type or pa.string()),
    })  # fmt: skip


def one_by_one(rows: Any, **options: Any) -> list[dict[str, Any]]:
    answers = []
    for index, (turns, query) in enumerate(rows):
        gate = ContextGatekeeper(options.get("token_budget", 4000), settings=options.get("settings"))
        gate.add_turns(turns)
        explained = gate.explain(query)
        selected = [{key: block[key] for key in ("turn_id", "user", "assistant", "score")} for block in
                    gate.select(query)]  # fmt: skip
        answers.append({"id": index, "query": query, "selected": selected, "prompt": gate.build_prompt(query),
                        "tokens": explained["tokens"]["prompt"], "error": None})  # fmt: skip
    return answers


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@settings(max_examples=50)
@given(conversations, st.integers(1, 4), st.integers(1, 3))
def test_each_row_is_what_a_gatekeeper_of_its_own_decides(rows: Any, batch_rows: int, threads: int) -> None:
    options = {"token_budget": 200, "settings": Settings(topic_window=2)}
    batches = table_of(rows).to_batches(max_chunksize=batch_rows)
    answered = list(select_batches(iter(batches), threads=threads, **options))
    assert [batch.num_rows for batch in answered] == [batch.num_rows for batch in batches]
    assert rows_of(answered) == one_by_one(rows, **options)


def test_however_it_is_cut_the_bytes_are_the_same() -> None:
    table = table_of([(REDIS, f"惰性删除 {i}") for i in range(50)])
    whole = select_table(table)
    assert whole.schema == output_schema(table.schema)
    for size in (1, 7, 50):
        parts = [select_table(table.slice(at, size)) for at in range(0, 50, size)]
        assert pa.concat_tables(parts).combine_chunks().equals(whole.combine_chunks())
    for nothing in (table.slice(0, 0), table.slice(0, 0).to_batches()):
        assert rows_of(select_batches(nothing)) == []
    assert select_table(table.slice(0, 0)).schema == whole.schema


LARGE = pa.struct([("assistant", pa.large_string()), ("x", pa.int8()), ("user", pa.large_string())])


@pytest.mark.parametrize(("turns_type", "text_type"), [
    (pa.large_list(TURN), pa.large_string()), (pa.list_(LARGE), pa.dictionary(pa.int32(), pa.string())),
    (pa.list_(TURN, 2), pa.string_view()),
])  # fmt: skip
def test_every_kind_of_list_and_string_is_read(turns_type: Any, text_type: Any) -> None:
    rows = [(REDIS, "惰性删除"), (REDIS[::-1], "git rebase"), (REDIS, "惰性删除")]
    table = table_of(rows)
    turns = pa.array(table.column("turns").to_pylist(), turns_type)
    query = pa.array([query for _, query in rows]).cast(text_type)
    other = pa.table({"id": table.column("id"), "turns": turns, "query": query})
    assert rows_of(select_batches(other)) == one_by_one(rows)
    assert rows_of(select_batches(other.slice(1, 2))) == [
        {**row, "id": index + 1} for index, row in enumerate(one_by_one(rows[1:]))]  # fmt: skip


class Exporter:
    """Anything that exports a stream of batches by the PyCapsule interface, and has no other method."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class ArrayExporter:
    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def test_any_exporter_is_accepted() -> None:
    table = table_of([(REDIS, "惰性删除"), (REDIS, "git rebase")])
    [batch] = table.to_batches()
    wanted = rows_of(select_batches(table))
    assert len(wanted) == 2
    for source in (batch, [batch], iter([batch]), Exporter(table), ArrayExporter(batch), [ArrayExporter(batch)],
                   table.to_reader(), [Exporter(table)]):  # fmt: skip
        assert rows_of(select_batches(source)) == wanted


def test_a_bad_row_says_why_and_the_others_go_on() -> None:
    rows = [(REDIS, "惰性删除"), (None, "x"), ([("a", None)], "x"), (REDIS, None), ([], "x"), (REDIS, "惰性删除")]
    for threads in (1, 3):
        answered = rows_of(select_batches(table_of(rows), threads=threads))
        assert [row["error"] for row in answered] == [
            None, "turns is null", "ArgumentTypeError: turns[0][1] must be a str, got NoneType: None",
            "ArgumentTypeError: query must be a str, got NoneType: None", None, None,
        ]  # fmt: skip
        assert [row["selected"] is None and row["prompt"] is None and row["tokens"] is None for row in answered] == [
            False, True, True, True, False, False]  # fmt: skip
        assert answered[4]["selected"] == []
        assert {**answered[5], "id": 0} == answered[0]


def test_columns_go_through_as_they_are() -> None:
    table = table_of([(REDIS, "惰性删除")])
    table = table.append_column("tags", pa.array([["a", None]])).append_column("none", pa.nulls(1))
    table = table.replace_schema_metadata({"made": "by a test"})
    answered = select_table(table)
    assert answered.column_names == ["id", "query", "tags", "none", "selected", "prompt", "tokens", "error"]
    for name in ("id", "query", "tags", "none"):
        assert answered.column(name).equals(table.column(name))


@pytest.mark.parametrize(("table", "error", "message"), [
    (pa.table({"turns": pa.nulls(1)}), ArgumentValueError, "one column 'query'"),
    (pa.table({"query": ["a"]}), ArgumentValueError, "one column 'turns' or 'messages', got the columns"),
    (pa.table({"turns": pa.nulls(1), "messages": pa.nulls(1), "query": ["a"]}), ArgumentValueError,
     "one column 'turns' or 'messages'"),
    (pa.table({"messages": [["a"]], "query": ["a"]}), ArgumentTypeError, "messages must be a list of structs, or a"),
    (pa.table({"turns": ["a"], "query": ["a"]}), ArgumentTypeError, "turns must be a list of structs"),
    (pa.table({"turns": [[["a", "b"]]], "query": ["a"]}), ArgumentTypeError, "turns must be a list of structs"),
    (pa.table({"turns": [[{"user": 1, "assistant": "b"}]], "query": ["a"]}), ArgumentTypeError, "user must be a str"),
    (pa.table({"turns": pa.array([], pa.list_(TURN)), "query": pa.array([], pa.int8())}), ArgumentTypeError,
     "query must be a string, got int8"),
    (pa.table({"turns": pa.array([], pa.list_(TURN)), "query": pa.array([], pa.string()), "error": [], "prompt": []}),
     ArgumentValueError, r"rename them: \['prompt', 'error'\]"),
    ("text", ArgumentTypeError, "batches must be Arrow data"), ([1], ArgumentTypeError, "batches must hold Arrow data"),
    ({"a": 1}, ArgumentTypeError, "got dict"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(table: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        select_table(table) if isinstance(table, pa.Table) else list(select_batches(table))


def test_bad_arguments_are_refused_before_anything_is_read() -> None:
    with pytest.raises(BudgetError):
        select_batches([], token_budget=0)
    with pytest.raises(ArgumentValueError, match="threads"):
        select_batches([], threads=0)
    with pytest.raises(ArgumentTypeError, match="threads"):
        select_batches([], threads=True)


def test_a_batch_is_read_when_it_is_asked_for() -> None:
    table = table_of([(REDIS, "惰性删除")] * 3)
    n_read = 0

    def batches() -> Any:
        nonlocal n_read
        while True:
            n_read += 1
            yield table.to_batches()[0]

    answered = select_batches(batches())
    for n in range(3):
        assert n_read == n
        next(answered)


# --- messages

CALL = {"id": "c1", "type": "function", "function": {"name": "ttl", "arguments": '{"key": "锁"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "brief"},
    {"role": "user", "content": [{"type": "text", "text": "Redis 惰性删除是什么"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "redis 30 s"},
    {"role": "assistant", "content": "访问时才检查键是否过期。"},
    {"role": "user", "content": "Git rebase 怎么用"}, {"role": "assistant", "content": "先切到功能分支。"},
]  # fmt: skip
PLAIN = [message for message in CHAT if message["role"] != "user"] + [
    {"role": "user", "content": "redis keys?"}, {"role": "assistant", "content": "lazily"}]


def decided_on(messages: list[dict[str, Any]], query: str) -> tuple[Any, ...]:
    gate = ContextGatekeeper(4000)
    gate.add_messages(messages)
    selected = [{key: block[key] for key in ("turn_id", "user", "assistant", "score")} for block in gate.select(query)]
    return selected, gate.build_prompt(query), None


def answers_of(table: Any) -> list[tuple[Any, ...]]:
    return [(row["selected"], row["prompt"], row["error"]) for row in select_table(table).to_pylist()]


def test_messages_are_read_as_a_gatekeeper_reads_them() -> None:
    table = pa.table({"messages": [PLAIN, PLAIN[:2], []], "query": ["redis keys", "ttl", "x"]})
    assert pa.types.is_struct(table.column("messages").type.value_type)  # a field that one message lacks is null there
    wanted = [decided_on(PLAIN, "redis keys"), decided_on(PLAIN[:2], "ttl"), decided_on([], "x")]
    assert answers_of(table) == wanted
    assert select_table(table).column_names == ["query", "selected", "prompt", "tokens", "error"]
    texts = [json.dumps(messages) for messages in (CHAT, PLAIN)]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"messages": pa.array(texts).cast(kind), "query": ["惰性删除", "redis keys"]})
        assert answers_of(table) == [decided_on(CHAT, "惰性删除"), decided_on(PLAIN, "redis keys")]


def test_bad_messages_say_why() -> None:
    texts = [None, "{", '"x"', '[{"role": "nobody"}]', "[3]", "[" * 100_000, json.dumps(CHAT)]
    answered = [row["error"] for row in select_table(pa.table({"messages": texts, "query": ["x"] * 7})).to_pylist()]
    assert answered[0] == "messages is null"
    assert answered[1].startswith("ArgumentValueError: messages must be a JSON list")
    assert answered[2].startswith("ArgumentTypeError: messages must be a list of messages, got str")
    assert answered[3].startswith("ArgumentValueError: messages[0]: a role is one of")
    assert answered[4].startswith("ArgumentTypeError: messages[0]: expected a message with a role, got int")
    assert answered[5].startswith("ArgumentValueError: messages must be a JSON list")
    assert answered[6] is None
