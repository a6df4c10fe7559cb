"""What every command shares: its options, how it fails, how it loads a chat file."""

from __future__ import annotations

import functools
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.progress import Progress

from gatekeeper.chat_file import ChatReader, open_chat_file
from gatekeeper.cli.output import LogHandler, Output
from gatekeeper.errors import ChatFileError, GatekeeperError
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.printable import one_line
from gatekeeper.settings import Settings

BATCH = 1000  # turns handed to the library at once
PROGRESS_BYTES = 5_000_000  # files larger than this show a progress bar on a terminal
RUN_OPTIONS = ("as_json", "color", "strict", "budget", "settings")
SETTINGS: dict[str, Callable[[], Settings]] = {"minimal": Settings.minimal, "thorough": Settings.thorough}

OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
                 help="auto: on a terminal, unless NO_COLOR is set or TERM is dumb."),
    click.option("--strict", is_flag=True, help="A broken line is an error, not a warning."),
    click.option("--budget", type=click.IntRange(min=1), default=4000, show_default=True, metavar="N",
                 help="Tokens of the whole prompt."),
    click.option("--settings", type=click.Choice(list(SETTINGS)), default="minimal", show_default=True,
                 help="minimal: the least text that covers the query; thorough: the most evidence for the budget."),
)  # fmt: skip


class Run:
    """One run of a command: its options and its output."""

    def __init__(self, *, as_json: bool = False, color: str = "never", strict: bool = False, budget: int = 4000,
                 settings: str = "minimal") -> None:
        self.as_json = as_json
        self.strict = strict
        self.budget = budget
        self.settings = settings
        self.output = Output(color)

    def gatekeeper(self) -> ContextGatekeeper:
        """A gatekeeper of the budget and settings asked for, without a turn."""
        return ContextGatekeeper(self.budget, settings=SETTINGS[self.settings]())

    def load(self, file: str) -> tuple[ContextGatekeeper, ChatReader]:
        """A gatekeeper with the turns of a chat file ("-": stdin), and the reader with its counts.

        Broken lines, skipped messages and an empty history are named on stderr. Raises ChatFileError.
        """
        gate = self.gatekeeper()
        with stdin() if file == "-" else open_chat_file(file) as stream:
            reader = ChatReader(stream, "<stdin>" if file == "-" else file, strict=self.strict, on_warning=self.warn)
            turns = reader.turns()
            with self._progress(stream) as advance:
                while batch := list(islice(turns, BATCH)):
                    gate.add_turns(batch)
                    advance(reader.n_bytes)
        skipped = [f"{n} {kind}" for n, kind in ((reader.n_system, "system"), (reader.n_tool, "tool")) if n]
        if skipped:
            self.output.message("debug", f"{reader.name}: {' and '.join(skipped)} messages skipped: they are no turns")
        if not len(gate):
            self.output.message("warn", f"{reader.name}: no history")
        return gate, reader

    def warn(self, message: str) -> None:
        """One warning on stderr."""
        self.output.message("warn", f"warning: {message}")

    @contextmanager
    def _progress(self, stream: BinaryIO) -> Iterator[Callable[[int], None]]:
        """A progress bar on stderr for a large file, where stderr is a terminal."""
        n_bytes = _size(stream)
        if n_bytes <= PROGRESS_BYTES or sys.stderr is None or not sys.stderr.isatty():
            yield lambda _: None
            return
        console = Console(stderr=True, no_color=not self.output.is_coloured(sys.stderr))
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("reading", total=n_bytes)
            yield lambda done: progress.update(task, completed=done)


def stdin() -> BinaryIO:
    """Standard input as bytes. Raises ChatFileError when there is none."""
    if sys.stdin is None:
        raise ChatFileError("<stdin>: cannot be read: it is closed")
    return sys.stdin.buffer


def _size(stream: BinaryIO) -> int:
    """Bytes of a regular file; 0 for anything else."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


class Refused(click.ClickException):
    """The file or the library refuses: one line on stderr, exit code 1."""

    def __init__(self, output: Output, message: str) -> None:
        super().__init__(one_line(message))
        self.output = output

    def show(self, file: Any = None) -> None:
        """Print the line."""
        self.output.message("error", f"error: {self.message}")


def sharing(options: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command some of the shared options; it is called with a Run in their place.

    What it printed is written when it ends, also when it ends by an exit code of its own.
    """

    def command(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def called(**arguments: Any) -> None:
            own = {name: arguments.pop(name) for name in RUN_OPTIONS if name in arguments}
            run = Run(**own)
            with log_shown(run.output):
                try:
                    try:
                        function(run, **arguments)
                    finally:
                        run.output.flush()
                except GatekeeperError as error:
                    raise Refused(run.output, str(error)) from error
                except OSError as error:
                    raise Refused(run.output, f"cannot write: {error.strerror or error}") from error

        decorated: Callable[..., None] = called
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return command


command = sharing(OPTIONS)


@contextmanager
def log_shown(output: Output) -> Iterator[None]:
    """Show the library's warnings as messages of a command while it runs."""
    logger = logging.getLogger("gatekeeper")
    handler = LogHandler(output)
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
