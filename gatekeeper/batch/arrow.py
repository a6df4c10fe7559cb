"""Arrow record batches of conversations in, record batches of what was chosen out; pyarrow is imported when used."""

from __future__ import annotations

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError, require_whole_number
from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pyarrow import Array, RecordBatch, Schema

    from gatekeeper.batch.rows import Chosen, Messages
    from gatekeeper.settings import Settings


def select_batches(
    batches: Iterable[Any], *, token_budget: int = 4000, settings: Settings | None = None,
    count_tokens: Callable[[str], int] = estimate_tokens, threads: int = 1,
) -> Iterator[RecordBatch]:
    """For each batch of conversations a batch of what was chosen: the same rows in the same order.

    batches: record batches, or anything that exports Arrow data by the PyCapsule interface, or an iterable of these.
    In: `turns`, a list of structs {user, assistant} of strings, or `messages`, a list of structs (chat messages) or the
    same as JSON text; and `query`, a string. All other columns go through as they are. Out: these, and `selected`, a
    list of structs {turn_id int32, user, assistant, score float64} in the order chosen; `prompt`; `tokens` int32, the
    prompt's; `error`, null or why the three are null. docs/batch.md.

    A batch is read when it is asked for and nothing is kept: memory is that of one batch. The same input gives the
    same bytes, however it is cut into batches. Raises ArgumentTypeError or ArgumentValueError for columns or arguments
    that do not fit; a bad row is no exception.
    """
    from gatekeeper.batch.many import in_order
    from gatekeeper.batch.rows import Chooser

    require_whole_number("threads", threads)
    if threads < 1:
        raise ArgumentValueError(f"threads must be at least 1, got {threads}")
    choose = Chooser(token_budget=token_budget, settings=settings, count_tokens=count_tokens)
    return (_answered(batch, list(in_order(choose, _rows(batch), threads))) for batch in record_batches(batches))


def record_batches(source: Any) -> Iterator[RecordBatch]:
    """The record batches of whatever exports Arrow data, or of an iterable of such."""
    import pyarrow

    if isinstance(source, pyarrow.RecordBatch):
        yield source
    elif isinstance(source, (pyarrow.Table, pyarrow.RecordBatchReader)):
        yield from source.to_batches() if isinstance(source, pyarrow.Table) else source
    elif hasattr(source, "__arrow_c_stream__"):
        yield from pyarrow.RecordBatchReader.from_stream(source)
    elif hasattr(source, "__arrow_c_array__"):
        yield pyarrow.record_batch(source)
    elif hasattr(source, "__iter__") and not isinstance(source, (str, bytes, dict)):
        for item in source:
            if not hasattr(item, "__arrow_c_stream__") and not hasattr(item, "__arrow_c_array__"):
                raise ArgumentTypeError(f"batches must hold Arrow data, got {type(item).__name__}: {item!r:.80}")
            yield from record_batches(item)
    else:
        raise ArgumentTypeError(f"batches must be Arrow data or an iterable of it, got {type(source).__name__}")


def output_schema(schema: Schema) -> Schema:
    """The schema that goes out for one that comes in. Raises ArgumentTypeError or ArgumentValueError."""
    import pyarrow

    from gatekeeper.batch.rows import MESSAGES, QUERY, TURNS, conversation_of

    conversation = conversation_of(schema.names)
    if conversation is None:
        raise ArgumentValueError(f"the input must have one column {TURNS!r} or {MESSAGES!r}, got the columns "
                                 f"{schema.names}")
    for name in (conversation, QUERY):
        if schema.names.count(name) != 1:
            raise ArgumentValueError(f"the input must have one column {name!r}, got the columns {schema.names}")
    added = added_fields()
    taken = [field.name for field in added if field.name in schema.names]
    if taken:
        raise ArgumentValueError(f"the input has columns that the output adds, rename them: {taken}")
    kind = schema.field(conversation).type
    texts = {QUERY: schema.field(QUERY).type} | (_check_messages(kind) if conversation == MESSAGES else _sides(kind))
    for name, kind in texts.items():
        if not _is_text(kind):
            raise ArgumentTypeError(f"{name} must be a string, got {kind}")
    return pyarrow.schema([field for field in schema if field.name != conversation] + added)


def _sides(turns: Any) -> dict[str, Any]:
    """The types of both sides of turns. Raises ArgumentTypeError."""
    if not _is_list(turns) or not {"user", "assistant"} <= {field.name for field in _struct_fields(turns.value_type)}:
        raise ArgumentTypeError(f"turns must be a list of structs {{user, assistant}} of strings, got {turns}")
    return {name: turns.value_type.field(name).type for name in ("user", "assistant")}


def _check_messages(messages: Any) -> dict[str, Any]:
    """No further types. Raises ArgumentTypeError unless messages are a list of structs or text."""
    if not _is_text(messages) and not (_is_list(messages) and _struct_fields(messages.value_type)):
        raise ArgumentTypeError(f"messages must be a list of structs, or a string that holds JSON, got {messages}")
    return {}


def added_fields() -> list[Any]:
    """The columns that go out beside those that came in."""
    import pyarrow

    from gatekeeper.batch.rows import ERROR, PROMPT, SELECTED, TOKENS

    block = pyarrow.struct([("turn_id", pyarrow.int32()), ("user", pyarrow.string()), ("assistant", pyarrow.string()),
                            ("score", pyarrow.float64())])  # fmt: skip
    kinds = {SELECTED: pyarrow.list_(block), PROMPT: pyarrow.string(), TOKENS: pyarrow.int32(), ERROR: pyarrow.string()}
    return [pyarrow.field(name, kind) for name, kind in kinds.items()]


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    # a column without any value is of the type null
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
                or types.is_null(kind) or (types.is_dictionary(kind) and _is_text(kind.value_type)))


def _struct_fields(kind: Any) -> list[Any]:
    from pyarrow import types

    return [kind.field(i) for i in range(kind.num_fields)] if types.is_struct(kind) else []


def _rows(batch: RecordBatch) -> Iterator[tuple[int, list[tuple[str, str]] | Messages | None, str]]:
    """(index, conversation, query) of each row; None for turns that are null."""
    from pyarrow import compute

    from gatekeeper.batch.rows import MESSAGES, QUERY, TURNS, Messages, conversation_of

    output_schema(batch.schema)
    if conversation_of(batch.schema.names) == MESSAGES:
        column = batch.column(MESSAGES)
        listed = _texts(column) if _is_text(column.type) else column.to_pylist()
        queries = _texts(batch.column(QUERY))
        yield from ((index, Messages(value), query)
                    for index, (value, query) in enumerate(zip(listed, queries, strict=True)))
        return
    column = batch.column(TURNS)
    turns = column.flatten()
    names = [field.name for field in _struct_fields(turns.type)]
    sides = turns.flatten()  # a null struct gives null texts
    users, assistants = (_texts(sides[names.index(name)]) for name in ("user", "assistant"))
    lengths = compute.list_value_length(column).to_pylist()
    at = 0
    for index, (length, query) in enumerate(zip(lengths, _texts(batch.column(QUERY)), strict=True)):
        if length is None:
            yield index, None, query
            continue
        yield index, list(zip(users[at : at + length], assistants[at : at + length], strict=True)), query
        at += length


def _texts(column: Array) -> list[Any]:
    """The texts of a column, None for null."""
    import pyarrow

    if not pyarrow.types.is_string(column.type):
        column = column.cast(pyarrow.large_string())
    texts: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return texts


def _answered(batch: RecordBatch, answers: list[Chosen]) -> RecordBatch:
    """The batch that goes out for one that came in."""
    import pyarrow

    schema = output_schema(batch.schema)
    kept = [batch.column(i) for i, name in enumerate(batch.schema.names) if name in schema.names]
    columns = zip(*answers, strict=True) if answers else [()] * len(added_fields())
    added = [pyarrow.array(list(values), field.type) for values, field in zip(columns, added_fields(), strict=True)]
    return pyarrow.RecordBatch.from_arrays(kept + added, schema=schema)
