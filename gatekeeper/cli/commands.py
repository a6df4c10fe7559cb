"""The commands: what each asks the library and prints."""

from __future__ import annotations

import sys
from typing import Any

import click

from gatekeeper import __version__
from gatekeeper.cli import demo as demonstration
from gatekeeper.cli import explanation, views
from gatekeeper.cli.batch import batch
from gatekeeper.cli.options import Run, command
from gatekeeper.cli.session import chat, session
from gatekeeper.cli.spec_commands import spec
from gatekeeper.cli.spec_setup import mcp
from gatekeeper.printable import printable

FILE = click.argument("file", type=click.Path())
QUERY = click.argument("query")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Pick the smallest set of past chat turns worth sending to an LLM.

    FILE is a chat: JSON lines, or one JSON list, of {"user", "assistant"} or {"role", "content"}; - is stdin.

    \b
    Exit codes: 0 done; 1 the file or the library refuses; 2 wrong usage.

    \b
    Example:
      gatekeeper select chat.jsonl "Git rebase/merge"
    """


@main.command()
@command
def demo(run: Run) -> None:
    """Ask the shipped conversation five questions, check the answers.

    It has 100 turns of four topics. Exit code 1 when a figure misses what it must reach.

    \b
    Example:
      gatekeeper demo --json
    """
    figures = demonstration.measure(run.gatekeeper())
    claims = demonstration.claims(figures)
    if run.as_json:
        run.output.json(figures)
    else:
        views.print_demo(run.output, figures, claims)
    if not all(holds for *_, holds in claims):
        raise click.exceptions.Exit(1)


def chosen_blocks(explained: dict[str, Any]) -> list[dict[str, Any]]:
    """What `ContextGatekeeper.select` returns, read off the explanation: one query is decided once."""
    candidates = {candidate["turn_id"]: candidate for candidate in explained["candidates"]}
    return [
        {key: candidates[step["turn_id"]][key] for key in ("turn_id", "user", "assistant", "score")}
        | {"covered_ids": step["covered_ids"]}
        for step in explained["steps"]
    ]


@main.command()
@FILE
@QUERY
@command
def select(run: Run, file: str, query: str) -> None:
    """Print the turns chosen for QUERY, best gain first.

    \b
    Example:
      gatekeeper select chat.jsonl "Redis惰性删除区别"
      tail -n 500 chat.jsonl | gatekeeper select - "asyncio.Task cancel" --json
    """
    gate, _ = run.load(file)
    explained = gate.explain(query)
    blocks = chosen_blocks(explained)
    if run.as_json:
        covered = [[gate.anchor_text(i) for i in block["covered_ids"]] for block in blocks]
        turns = [{**block, "covered": texts} for block, texts in zip(blocks, covered, strict=True)]
        run.output.json({"query": query, "reason": explained["reason"], "tokens": explained["tokens"], "turns": turns})
    else:
        views.print_selection(run.output, gate, blocks, explained)


@main.command()
@FILE
@QUERY
@command
def prompt(run: Run, file: str, query: str) -> None:
    """Print the prompt for QUERY.

    The chosen turns in time order, the query last.

    \b
    Example:
      gatekeeper prompt chat.jsonl "EXPLAIN ANALYZE怎么看" --budget 2000
    """
    gate, _ = run.load(file)
    explained = gate.explain(query)
    text = explained["prompt"]
    if run.as_json:
        run.output.json({"query": query, "prompt": text, "tokens": explained["tokens"]})
    else:
        # to a program as it is, to a terminal without what could steer it
        run.output.raw((printable(text) if sys.stdout and sys.stdout.isatty() else text) + "\n")


@main.command()
@FILE
@QUERY
@click.option("--all", "show_all", is_flag=True, help="List each turn that was left out.")
@click.option("--html", "page", type=click.Path(dir_okay=False), metavar="PAGE",
              help="Write it as one self-contained HTML page instead.")
@command
def explain(run: Run, file: str, query: str, *, show_all: bool, page: str | None) -> None:
    """Print why each turn was chosen or left out for QUERY.

    With --html the page is written to PAGE and only --json prints too.

    \b
    Example:
      gatekeeper explain chat.jsonl "Git reset/revert场景" --all
      gatekeeper explain chat.jsonl "Git reset/revert场景" --html report.html
    """
    gate, _ = run.load(file)
    explained = gate.explain(query)
    if page:
        explanation.write_page(run.output, explained, page, file)
    if run.as_json:
        run.output.json(explained)
    elif not page:
        explanation.print_explanation(run.output, explained, show_all=show_all)


@main.command()
@FILE
@command
def stats(run: Run, file: str) -> None:
    """Print what FILE holds.

    Turns, characters, tokens, distinct anchors, topics, and what was skipped.

    \b
    Example:
      gatekeeper stats chat.jsonl
    """
    gate, reader = run.load(file)
    figures = views.statistics(gate, reader)
    if run.as_json:
        run.output.json(figures)
    else:
        views.print_statistics(run.output, figures)


main.add_command(session)
main.add_command(chat)
main.add_command(batch)
main.add_command(spec)
main.add_command(mcp)
