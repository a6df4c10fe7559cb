"""From file to file: JSON lines or Parquet, in bounded memory, and on again after a kill.

The rows are answered in parts of a fixed number of rows of the input. A part is a file in the folder `OUT.parts` that
gets its name when it is whole and on disk; a run that goes on counts the parts that are there. At the end they are put
together, so the bytes of OUT do not depend on how often the run was killed.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from gatekeeper.batch.many import in_order
from gatekeeper.batch.rows import (
    ERROR,
    MESSAGES,
    PROMPT,
    QUERY,
    SELECTED,
    TOKENS,
    TURNS,
    Chooser,
    Messages,
    conversation_of,
)
from gatekeeper.errors import ArgumentValueError, BatchError, require_whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from gatekeeper.settings import Settings

    Path = str | os.PathLike[str]

ROWS_A_PART = 4096
ROWS_A_BATCH = 256  # of Parquet, read at once
JSON_LINES, PARQUET = "JSON lines", "Parquet"
KINDS = {".jsonl": JSON_LINES, ".ndjson": JSON_LINES, ".parquet": PARQUET}
VERSION = 1  # of how the parts are cut


class Totals(NamedTuple):
    """What a run has written: rows answered, bad rows, and where they are described ("" without any)."""

    n_rows: int
    n_bad: int
    bad_file: str


def select_file(source: Path, target: Path, *, token_budget: int = 4000, settings: Settings | None = None,
                threads: int = 1, resume: bool = False, strict: bool = False,
                on_progress: Callable[[int, float], None] | None = None) -> Totals:
    """Answer every row of a file: docs/batch.md describes the rows.

    source, target: both *.jsonl or *.ndjson, or both *.parquet. Bad rows go to `TARGET.bad.jsonl` with their number
    and a reason; under strict the first one is a BatchError. resume: go on with an interrupted run of the same
    arguments. on_progress: gets, part by part, the rows that are done and
    their share of the input. Memory: a part's answers, whatever the input.

    Raises BatchError that names the file; ArgumentTypeError or ArgumentValueError for arguments that do not fit.
    """
    require_whole_number("threads", threads)
    if threads < 1:
        raise ArgumentValueError(f"threads must be at least 1, got {threads}")
    choose = Chooser(token_budget=token_budget, settings=settings)
    run = _Run(os.fspath(source), os.fspath(target), choose, threads, strict)
    try:
        return run.go(resume, on_progress or (lambda *_: None))
    except OSError as error:
        raise BatchError(f"{error.filename or f'{source} to {target}'}: {error.strerror or error}") from error


def kind_of(path: str) -> str:
    """What a file is by its name. Raises BatchError."""
    kind = KINDS.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise BatchError(f"{path}: expected a name that ends in {', '.join(KINDS)}")
    return kind


class _Run:
    def __init__(self, source: str, target: str, choose: Chooser, threads: int, strict: bool) -> None:
        self.source, self.target = source, target
        self.choose, self.threads, self.strict = choose, threads, strict
        self.folder = target + ".parts"
        if kind_of(source) != kind_of(target):
            raise BatchError(f"{target}: {source} is {kind_of(source)}, so it must be too")
        self.form: JsonLines | Parquet = JsonLines(self) if kind_of(source) == JSON_LINES else Parquet(self)

    def go(self, resume: bool, on_progress: Callable[[int, float], None]) -> Totals:
        if os.path.exists(self.target):
            if not resume:
                raise BatchError(f"{self.target}: exists; remove it, or name another file")
            shutil.rmtree(self.folder, ignore_errors=True)  # it was finished, and killed while it tidied up
            return self.totals()
        self.form.check()
        self._begin(resume)
        n_parts = self.n_parts()
        n_done = n_parts * ROWS_A_PART
        for rows in self.form.parts(n_done):
            n_rows = self.form.write_part(self._part(n_parts), rows, n_parts * ROWS_A_PART)
            n_parts += 1
            n_done += n_rows
            on_progress(n_done, self.form.done_ratio)
        self._finish(n_parts)
        return self.totals()

    def plan(self) -> dict[str, Any]:
        """What must be the same for a run to go on with another one's parts."""
        status = os.stat(self.source)
        settings = self.choose.settings.as_dict() if self.choose.settings else None
        return {"version": VERSION, "source": os.path.abspath(self.source), "bytes": status.st_size,
                "modified": status.st_mtime_ns, "token_budget": self.choose.token_budget, "settings": settings}

    def _begin(self, resume: bool) -> None:
        """Make the folder of parts, or see that the one that is there fits."""
        plan, path = self.plan(), os.path.join(self.folder, "plan.json")
        if not os.path.exists(path):
            shutil.rmtree(self.folder, ignore_errors=True)
            os.mkdir(self.folder)
            with whole(path) as stream:
                stream.write(json.dumps(plan).encode())
            return
        if not resume:
            raise BatchError(f"{self.folder}: holds an interrupted run: go on with --resume, or remove it")
        with open(path, "rb") as file:
            other = json.load(file)
        wrong = [f"{name} was {other.get(name)!r}, is {plan[name]!r}" for name in plan if other.get(name) != plan[name]]
        if wrong:
            raise BatchError(f"{self.folder}: is of another run: {'; '.join(wrong)}")

    def _part(self, number: int) -> str:
        return os.path.join(self.folder, f"{number:08}")

    def n_parts(self) -> int:
        """Parts that are whole."""
        n = 0
        while os.path.exists(self._part(n)):
            n += 1
        return n

    def _finish(self, n_parts: int) -> None:
        """Put the parts together and take their folder away."""
        bad_file = self.target + ".bad.jsonl"
        with whole(bad_file) as stream:
            for number in range(n_parts):
                with open(self._part(number) + ".bad", "rb") as part:
                    shutil.copyfileobj(part, stream)
        if os.path.getsize(bad_file) == 0:
            os.unlink(bad_file)
        self.form.join([self._part(number) for number in range(n_parts)])
        shutil.rmtree(self.folder)

    def totals(self) -> Totals:
        """What the finished files hold."""
        bad_file = self.target + ".bad.jsonl"
        n_bad = 0
        if os.path.exists(bad_file):
            with open(bad_file, "rb") as file:
                n_bad = sum(1 for _ in file)
        return Totals(self.form.n_rows(), n_bad, bad_file if n_bad else "")

    def refuse(self, row: int, reason: str) -> None:
        """Under strict a bad row ends the run."""
        if self.strict:
            raise BatchError(f"{self.source}:{row}: {reason}")


@contextmanager
def whole(path: str) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole and on disk."""
    try:
        with open(path + ".new", "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        if os.path.exists(path + ".new"):
            os.unlink(path + ".new")
        raise
    os.replace(path + ".new", path)


def bad_line(row: int, reason: str, **more: str) -> bytes:
    """A line of the file of bad rows."""
    return json.dumps({"row": row, "reason": reason, **more}).encode() + b"\n"


class JsonLines:
    """One row a line. Rows are numbered as lines are, from 1; blank lines are rows of no kind."""

    done_ratio = 0.0  # of the input

    def __init__(self, run: _Run) -> None:
        self.run = run

    def check(self) -> None:
        """Refuse a file that cannot be read, before anything is made. Its lines are looked at one by one."""
        with open(self.run.source, "rb"):
            pass

    def parts(self, n_done: int) -> Iterator[Iterator[bytes]]:
        """The lines of each part that is not done; each must be taken whole before the next."""
        with open(self.run.source, "rb") as file:
            for _ in islice(file, n_done):
                pass
            while line := file.readline():
                yield self._read(file, line)

    def _read(self, file: BinaryIO, first: bytes) -> Iterator[bytes]:
        yield from chain([first], islice(file, ROWS_A_PART - 1))
        self.done_ratio = file.tell() / max(os.fstat(file.fileno()).st_size, 1)

    def write_part(self, path: str, lines: Iterator[bytes], n_before: int) -> int:
        """Answer the lines into a part; how many they were."""
        row = n_before
        numbered = ((number, line, None) for number, line in enumerate(lines, n_before + 1))
        with whole(path) as good, whole(path + ".bad") as bad:  # the part has its name last: then both are there
            for row, answer, reason in in_order(self._answer, numbered, self.run.threads):
                if reason is None:
                    good.write(answer)
                else:
                    self.run.refuse(row, reason)
                    bad.write(answer)
        return row - n_before

    def _answer(self, row: int, line: bytes, _: None) -> tuple[int, bytes, str | None]:
        """(row, the line that goes out, None), or (row, the line of bad rows, the reason)."""
        if not line.strip():
            return row, b"", None
        try:
            record = _record(line)
            conversation = record.pop(MESSAGES if MESSAGES in record else TURNS)
            answer = self.run.choose(row, conversation, record[QUERY])
            if answer.error is not None:
                raise BatchError(answer.error)
        except BatchError as error:
            text = line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
            return row, bad_line(row, str(error), line=text), str(error)
        return row, _json({**record, SELECTED: answer.selected, PROMPT: answer.prompt, TOKENS: answer.tokens}), None

    def join(self, parts: list[str]) -> None:
        """The parts behind each other."""
        with whole(self.run.target) as stream:
            for path in parts:
                with open(path, "rb") as part:
                    shutil.copyfileobj(part, stream)

    def n_rows(self) -> int:
        """Rows of the finished file."""
        with open(self.run.target, "rb") as file:
            return sum(1 for _ in file)


def _record(line: bytes) -> dict[str, Any]:
    """The row of a line, its turns as pairs or as Messages. Raises BatchError that says what was expected."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BatchError(f"expected a JSON object, got {error}") from None
    if not isinstance(record, dict) or QUERY not in record or not conversation_of(record):
        raise BatchError(f'expected an object with "{TURNS}" and "{QUERY}", or with "{MESSAGES}" and "{QUERY}"')
    taken = [name for name in (SELECTED, PROMPT, TOKENS) if name in record]
    if taken:
        raise BatchError(f"has what the output adds, rename it: {', '.join(taken)}")
    if MESSAGES in record:
        record[MESSAGES] = Messages(record[MESSAGES])
        return record
    if not isinstance(record[TURNS], list):
        raise BatchError(f'expected a list as "{TURNS}"')
    record[TURNS] = [(turn.get("user"), turn.get("assistant")) if isinstance(turn, dict) else turn
                     for turn in record[TURNS]]  # fmt: skip
    return record


def _json(value: Any) -> bytes:
    """A row as a line; lone surrogates as escapes."""
    try:
        return json.dumps(value, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value).encode() + b"\n"


class Parquet:
    """One row a row, numbered from 1; each part is one row group."""

    done_ratio = 0.0  # of the input

    def __init__(self, run: _Run) -> None:
        try:
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise BatchError(f"{run.source}: Parquet needs pyarrow: pip install 'context-gatekeeper[arrow]'") from error
        self.run = run
        self.parquet = pyarrow.parquet

    def _open(self, path: str) -> Any:
        """A Parquet file. Raises BatchError."""
        import pyarrow

        try:
            return self.parquet.ParquetFile(path)
        except (pyarrow.ArrowException, ValueError) as error:
            raise BatchError(f"{path}: cannot be read as Parquet: {error}") from error

    def check(self) -> None:
        """Refuse a file that cannot be read or has not the columns, before anything is made."""
        self._schema()

    def _schema(self) -> Any:
        from gatekeeper.batch.arrow import output_schema

        with self._open(self.run.source) as file:
            schema = output_schema(file.schema_arrow)
        return schema.remove(schema.get_field_index(ERROR))

    def parts(self, n_done: int) -> Iterator[Iterator[Any]]:
        """The record batches of each part that is not done; each must be taken whole before the next."""
        with self._open(self.run.source) as file:
            left = _cut(file.iter_batches(batch_size=ROWS_A_BATCH), n_done)
            n_rows = file.metadata.num_rows
            for at in range(n_done, n_rows, ROWS_A_PART):
                self.done_ratio = min(1.0, (at + ROWS_A_PART) / n_rows)
                yield islice(left, ROWS_A_PART // ROWS_A_BATCH)

    def write_part(self, path: str, batches: Iterator[Any], n_before: int) -> int:
        """Answer the batches into a part; how many rows they had."""
        from pyarrow import Table

        answered, row = [], n_before
        with whole(path + ".bad") as bad:
            for batch in self._answers(batches):
                for reason in batch.column(ERROR).to_pylist():
                    row += 1
                    if reason is not None:
                        self.run.refuse(row, reason)
                        bad.write(bad_line(row, reason))
                answered.append(batch.filter(batch.column(ERROR).is_null()).drop_columns([ERROR]))
        with whole(path) as stream:
            self.parquet.write_table(Table.from_batches(answered), stream)
        return row - n_before

    def _answers(self, batches: Iterator[Any]) -> Iterator[Any]:
        from gatekeeper.batch.arrow import select_batches

        choose = self.run.choose
        return select_batches(batches, token_budget=choose.token_budget, settings=choose.settings,
                              threads=self.run.threads)  # fmt: skip

    def join(self, parts: list[str]) -> None:
        """The parts behind each other, one row group each."""
        schema = self._schema()
        with whole(self.run.target) as stream, self.parquet.ParquetWriter(stream, schema) as writer:
            for path in parts:
                writer.write_table(self.parquet.read_table(path, partitioning=None).cast(schema))

    def n_rows(self) -> int:
        """Rows of the finished file."""
        with self._open(self.run.target) as file:
            n_rows: int = file.metadata.num_rows
            return n_rows


def _cut(batches: Iterator[Any], n_done: int) -> Iterator[Any]:
    """Batches of ROWS_A_BATCH rows, only the last one shorter, without the first n_done rows.

    Parquet readers end a batch where a row group ends; parts must be of the same rows each time.
    """
    import pyarrow

    waiting: list[Any] = []
    n_waiting = 0
    for batch in batches:
        skipped = min(n_done, batch.num_rows)
        n_done -= skipped
        waiting.append(batch.slice(skipped))
        n_waiting += batch.num_rows - skipped
        while n_waiting >= ROWS_A_BATCH:
            table = pyarrow.Table.from_batches(waiting)
            yield table.slice(0, ROWS_A_BATCH).combine_chunks().to_batches()[0]
            waiting = table.slice(ROWS_A_BATCH).to_batches()
            n_waiting -= ROWS_A_BATCH
    if n_waiting:
        yield pyarrow.Table.from_batches(waiting).combine_chunks().to_batches()[0]
