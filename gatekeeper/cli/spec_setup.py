"""`gatekeeper spec init` and `gatekeeper mcp`: how coding agents get the tools."""

from __future__ import annotations

import os
import sys

import click

from gatekeeper.cli.spec_options import SpecRun, spec_command
from gatekeeper.errors import GatekeeperError
from gatekeeper.printable import printable
from gatekeeper.spec.clients import CLIENTS, Change, Commands, plan

LANGUAGE = click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True,
                        help="Of the texts an agent reads.")  # fmt: skip


@click.command()
@click.option("--client", "clients", type=click.Choice([*CLIENTS, "all"]), multiple=True, default=["all"],
              show_default=True, help="claude: Claude Code; codex: Codex; mcp: a .mcp.json for any other.")  # fmt: skip
@LANGUAGE
@click.option("--yes", is_flag=True, help="Write without asking.")
@spec_command
def init(run: SpecRun, clients: tuple[str, ...], language: str, *, yes: bool) -> int:
    """Set up coding agents for the project.

    Shows what changes as a diff, then asks. Exit code 1 when it was not written.

    \b
    Example:
      gatekeeper spec init --client claude
    """
    from gatekeeper.spec.routing import resident_text, skill_text

    chosen = CLIENTS if "all" in clients else tuple(name for name in CLIENTS if name in clients)
    top = run.tools.library.project.top
    is_english = language == "en"
    changes = plan(top, chosen, Commands.find(), resident=resident_text(is_english), skill=skill_text(is_english))
    if not run.as_json:
        _show(run, changes)
    is_wanted = bool(changes) and (yes or (not run.as_json and _agreed(run)))
    if is_wanted:
        for change in changes:
            change.apply()
    if run.as_json:
        files = [{"path": change.path, "is_new": change.old is None, "diff": change.diff()} for change in changes]
        run.output.json({"files": files, "applied": is_wanted})
    elif is_wanted:
        run.output.line((f"written: {len(changes)} files", "highlight"))
    return 0 if is_wanted or not changes else 1


@click.command()
@click.argument("name", type=click.Choice(["resident", "skill"]))
@LANGUAGE
@spec_command
def text(run: SpecRun, name: str, language: str) -> None:
    """Print a standing text for agents.

    resident: for the memory file of a client that `init` does not know; skill: the whole SKILL.md.

    \b
    Example:
      gatekeeper spec text skill --language zh > SKILL.md
    """
    from gatekeeper.spec.routing import resident_text, skill_text

    found = (resident_text if name == "resident" else skill_text)(language == "en")
    if run.as_json:
        run.output.json({"text": found})
    else:
        run.output.raw(found.rstrip("\n") + "\n")


def _show(run: SpecRun, changes: list[Change]) -> None:
    if not changes:
        run.output.line("nothing to change: all of it is there")
    for change in changes:
        for line in change.diff().splitlines():
            role = {"+": "highlight", "-": "error", "@": "debug"}.get(line[:1], "normal")
            run.output.line((line, role))


def _agreed(run: SpecRun) -> bool:
    """Ask on a terminal; elsewhere say what to pass."""
    if sys.stdin is None or not sys.stdin.isatty():
        run.output.message("warn", "not written: look at the diff, then pass --yes")
        return False
    run.output.flush()
    run.output.buffer.seek(0)
    run.output.buffer.truncate()
    return click.confirm("Write these files?", err=True)


@click.command()
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), default=".", show_default=True,
              help="The working folder, whose project's library is used.")  # fmt: skip
def mcp(cwd: str) -> None:
    """Serve the four tools over MCP on stdin and stdout.

    Coding agents start it: see `gatekeeper spec init`.

    \b
    Example:
      claude mcp add gatekeeper -- gatekeeper mcp
    """
    try:
        from gatekeeper.spec.mcp_server import run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("gatekeeper"):
            raise
        raise click.ClickException(f"the server needs {printable(error.name or '')}: "
                                   "pip install 'context-gatekeeper[mcp]'") from None  # fmt: skip
    try:
        run(os.path.abspath(cwd))
    except GatekeeperError as error:
        raise click.ClickException(printable(str(error))) from error
