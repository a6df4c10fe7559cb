"""What the commands of `gatekeeper spec` share: their options, their library, how they fail."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from gatekeeper.cli.options import Refused, log_shown
from gatekeeper.cli.output import Output
from gatekeeper.errors import GatekeeperError

if TYPE_CHECKING:
    from gatekeeper.spec.tools import SpecTools

OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
                 help="auto: on a terminal, unless NO_COLOR is set or TERM is dumb."),
    click.option("--cwd", type=click.Path(exists=True, file_okay=False), default=".", show_default=True,
                 help="The working folder, whose project's library is used."),
)  # fmt: skip
TEXT = click.argument("text")


class SpecRun:
    """One run of a command: its options, its output, its library."""

    def __init__(self, *, as_json: bool, color: str, cwd: str) -> None:
        self.as_json = as_json
        self.cwd = cwd
        self.output = Output(color)

    @functools.cached_property
    def tools(self) -> SpecTools:
        """The tools on the library of the working folder; warnings of its settings go to stderr."""
        from gatekeeper.spec.tools import SpecTools

        tools = SpecTools(self.cwd)
        for warning in tools.library.config.warnings:
            self.output.message("warn", f"warning: {warning}")
        return tools

    def show(self, document: dict[str, Any], text: str) -> None:
        """The document as JSON where that is asked for, else the text."""
        if self.as_json:
            self.output.json(document)
        else:
            self.output.line(text)


def spec_command(function: Callable[..., int | None]) -> Callable[..., None]:
    """Give a command the shared options; it is called with a SpecRun in their place, and may return an exit code.

    What it printed is written when it ends.
    """

    @functools.wraps(function)
    def called(*, as_json: bool, color: str, cwd: str, **arguments: Any) -> None:
        run = SpecRun(as_json=as_json, color=color, cwd=cwd)
        with log_shown(run.output):
            try:
                try:
                    code = function(run, **arguments)
                finally:
                    run.output.flush()
            except GatekeeperError as error:
                raise Refused(run.output, str(error)) from error
            except ModuleNotFoundError as error:
                raise Refused(run.output, _missing(error)) from error
            except OSError as error:
                raise Refused(run.output, f"{error.filename or 'cannot write'}: {error.strerror or error}") from error
        if code:
            raise click.exceptions.Exit(code)

    decorated: Callable[..., None] = called
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def read_argument(text: str) -> str:
    """A text argument; "-" is standard input."""
    if text != "-" or sys.stdin is None:
        return text
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _missing(error: ModuleNotFoundError) -> str:
    name = (error.name or "").partition(".")[0]
    if name == "gatekeeper":
        raise error
    extra = "mcp" if name in ("mcp", "anyio", "jsonschema") else "spec"
    return f"the command needs {name}: pip install 'context-gatekeeper[{extra}]'"
