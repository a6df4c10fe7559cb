"""The command that answers a file of conversations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from gatekeeper.cli.options import SETTINGS, Run, command


@click.command()
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Workers.")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@command
def batch(run: Run, source: str, target: str, threads: int, *, resume: bool) -> None:
    """Answer a file of conversations.

    IN and OUT are both JSON lines (*.jsonl, *.ndjson) or both Parquet (*.parquet). A row has "turns", a list of
    {"user", "assistant"}, or "messages", a list of chat messages, and "query"; whatever else it has goes through. OUT
    has the same rows without the conversation, with "selected", "prompt" and "tokens". A bad row goes to OUT.bad.jsonl
    with its number and a reason.

    \b
    Example:
      gatekeeper batch chats.jsonl prompts.jsonl --threads 4
      gatekeeper batch chats.parquet prompts.parquet --resume
    """
    from gatekeeper.batch.files import select_file

    start = time.monotonic()
    with progress(run) as on_progress:
        totals = select_file(source, target, token_budget=run.budget, settings=SETTINGS[run.settings](),
                             threads=threads, resume=resume, strict=run.strict, on_progress=on_progress)  # fmt: skip
    seconds = time.monotonic() - start
    if totals.n_bad:
        run.output.message("warn", f"warning: {totals.n_bad} bad rows: {totals.bad_file}")
    if run.as_json:
        run.output.json({"rows": totals.n_rows, "bad": totals.n_bad, "bad_file": totals.bad_file or None})
    else:
        run.output.line(f"{totals.n_rows} rows", (f"  {totals.n_bad} bad  {seconds:.1f} s", "debug"))


@contextmanager
def progress(run: Run) -> Iterator[Callable[[int, float], None]]:
    """A bar on stderr where it is a terminal: the share of the input that is done, and its rows."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda *_: None
        return
    console = Console(stderr=True, no_color=not run.output.is_coloured(sys.stderr))
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[n_rows]} rows"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0, n_rows=0)
        yield lambda n_rows, share: bar.update(task, completed=share, n_rows=n_rows)
