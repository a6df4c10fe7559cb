"""python -m benchmarks.quality: what gatekeeper chooses on real conversations with gold labels, beside its peers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.quality import report
from benchmarks.quality.data import OWN_SETS, SETS, read_set
from benchmarks.quality.peers import PEERS
from benchmarks.quality.run import Tally, run
from benchmarks.quality.selectors import SETTINGS, Gatekeeper, Selector
from gatekeeper.errors import GatekeeperError


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of SET.HALF.jsonl.gz files")
    parser.add_argument("--half", default="dev", help="which half (default: dev)")
    parser.add_argument("--settings", choices=SETTINGS, help="one of the two; both by default")
    parser.add_argument("--change", nargs="+", type=change_of, metavar="NAME=VALUE", default=[],
                        help="settings to change in both, each value as in JSON")
    parser.add_argument("--sets", nargs="+", metavar="SET", choices=SETS + OWN_SETS, default=SETS,
                        help=f"{', '.join(SETS)} (the default); our own: {', '.join(OWN_SETS)}")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--embedding", action=argparse.BooleanOptionalAction, default=True,
                        help="MiniLM, if installed; it takes longer than all else")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/quality.md")
    return parser


def change_of(text: str) -> tuple[str, Any]:
    """The name and the value of NAME=VALUE."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"NAME=VALUE is expected, the value as in JSON, got {text!r}") from None


def selectors_of(asked: argparse.Namespace) -> list[Selector]:
    """Whom to ask: gatekeeper, and the peers that are installed. GatekeeperError for settings that do not fit."""
    changes = dict(asked.change)
    selectors: list[Selector] = [Gatekeeper(name, **changes) for name in SETTINGS if asked.settings in (None, name)]
    if asked.peers:
        for kind in PEERS:
            if not kind.is_installed():
                print(f"{kind.name}: not installed", file=sys.stderr)
            elif asked.embedding or kind.name != "MiniLM":
                selectors.append(kind())
    return selectors


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argument_parser()
    asked = parser.parse_args(arguments)
    start = monotonic()
    if asked.change and asked.write:
        parser.error("--write is for the settings as they are, not for --change")
    try:
        selectors = selectors_of(asked)
        sets = {set_name: read_set(asked.data, set_name, asked.half) for set_name in asked.sets}
    except (GatekeeperError, OSError, ValueError) as error:
        parser.error(str(error))
    tally = Tally()
    for set_name, conversations in sets.items():
        language = conversations[0].language
        for selector in selectors:
            if language in selector.languages:
                began = monotonic()
                run(tally, set_name, conversations, selector)
                print(f"{set_name}, {selector.name}: {monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    facts = report.facts(asked.sets, asked.half, monotonic() - start)
    found = report.sections(tally, [selector.name for selector in selectors], asked.sets, facts)
    for name, body in found.items():
        print(f"\n## {name}\n\n{body}")
    if asked.write:
        report.write(found)


if __name__ == "__main__":
    main()
