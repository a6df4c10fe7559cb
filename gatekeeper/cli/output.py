"""What the commands print: colours by role, aligned tables, text that cannot steer a terminal; written at the end."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from gatekeeper.printable import one_line, printable

PALETTE = {
    "normal": "#FFFFFF",
    "highlight": "#5EEAD4",  # anchor hits, switches
    "warn": "#FBBF24",  # budget, low recall
    "error": "#F87171",
    "debug": "#6B7280",  # idf, state
    "accent": "#A78BFA",  # coverage gain
}
PIPE_WIDTH = 100_000  # wider than any row: in a pipe nothing is cut or wrapped

Cell = str | tuple[str, str]  # a text, or (text, role)


class Output:
    """Collects what a command prints; `flush` writes it at once. Messages go to stderr directly.

    color: "auto", "always" or "never"; auto colours a terminal unless NO_COLOR is set or TERM is dumb.
    """

    def __init__(self, color: str) -> None:
        self.color = color
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        self.buffer = io.StringIO()
        self.console = self._console(self.buffer, sys.stdout)

    def _console(self, buffer: io.StringIO, stream: TextIO | None) -> Console:
        """A console that renders into `buffer` what suits `stream`."""
        is_terminal = stream is not None and stream.isatty()
        coloured = self.is_coloured(stream)
        return Console(
            file=buffer, theme=Theme(PALETTE), highlight=False, markup=False, emoji=False, legacy_windows=False,
            width=shutil.get_terminal_size().columns if is_terminal else PIPE_WIDTH,
            force_terminal=coloured, no_color=not coloured,
            color_system=None if not coloured else "truecolor" if self.color == "always" else "auto",
        )  # fmt: skip

    def is_coloured(self, stream: TextIO | None) -> bool:
        """Whether what goes to `stream` is coloured."""
        if self.color != "auto":
            return self.color == "always"
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return stream is not None and stream.isatty() and not plain

    # --- to stdout

    def line(self, *cells: Cell) -> None:
        """One line or paragraph: cells side by side, never wrapped."""
        self.console.print(Text.assemble(*[_styled(cell, printable) for cell in cells]), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "") -> None:
        """An aligned pipe table. A column whose name begins with "<" is text, flush left; all others are numbers."""
        table = Table(box=MARKDOWN, header_style="normal", pad_edge=True)
        for column in columns:
            left = column.startswith("<")
            table.add_column(Text(column.removeprefix("<")), justify="left" if left else "right", overflow="fold")
        for row in rows:
            table.add_row(*[Text(*_styled(cell, one_line)) for cell in row])
        if title:
            self.line("\n", (title, "highlight"))
        with self.console.capture() as capture:
            self.console.print(table)
        # the box has a blank line above and below
        self.buffer.write("".join(line for line in capture.get().splitlines(keepends=True) if "|" in line))

    def json(self, document: Any) -> None:
        """One JSON document. A lone surrogate becomes its JSON escape when it is written."""
        self.raw(json.dumps(document, ensure_ascii=False, indent=2) + "\n")

    def raw(self, text: str) -> None:
        """Text as it is."""
        self.buffer.write(text)

    def flush(self) -> bool:
        """Write what was collected. False when the reader went away, which is quiet; a full disk is an OSError."""
        text = self.buffer.getvalue()
        self.buffer.seek(0)
        self.buffer.truncate()
        if sys.stdout is None:
            return True
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            # nothing more can be written: not by the interpreter either, when it flushes at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                raise
            return False
        return True

    # --- to stderr

    def message(self, role: str, text: str) -> None:
        """One line on stderr."""
        buffer = io.StringIO()
        self._console(buffer, sys.stderr).print(Text(one_line(text), role), soft_wrap=True)
        if sys.stderr is not None:
            sys.stderr.write(buffer.getvalue())
            sys.stderr.flush()


class LogHandler(logging.Handler):
    """Shows the library's warnings as messages of the command."""

    def __init__(self, output: Output) -> None:
        super().__init__(logging.WARNING)
        self.output = output

    def emit(self, record: logging.LogRecord) -> None:
        self.output.message("warn", f"warning: {record.getMessage()}")


def _styled(cell: Cell, clean: Any) -> tuple[str, str]:
    text, role = (cell, "normal") if isinstance(cell, str) else cell
    return clean(text), role
