"""python -m benchmarks.peers: gatekeeper and its peers on the same work, in turn, on one CPU."""

from __future__ import annotations

import argparse
import sys
from time import monotonic

from benchmarks import plots
from benchmarks.peers import batch, extraction, growth, process, report, search, selection
from benchmarks.peers.clock import Scale, pin
from benchmarks.peers.results import MET, MISSED, Results

GROUPS = {
    "imports": process.imports,
    "extraction": extraction.extraction,
    "length": extraction.length,
    "query": search.query,
    "append": search.append,
    "million": process.million,
    "worst": growth.worst,
    "selection": selection.selection,
    "whole": growth.whole,
    "batch": batch.batch,
    "idle": process.idle,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds, under three minutes")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=GROUPS, help=f"some of: {', '.join(GROUPS)}")
    parser.add_argument("--write", action=argparse.BooleanOptionalAction,
                        help="put the numbers into docs/performance.md; by default after a full run of all groups")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    names = [name for name in GROUPS if not asked.only or name in asked.only]
    writes = asked.write if asked.write is not None else not (asked.quick or asked.only)
    pin()
    done: dict[str, Results] = {}
    for name in names:
        start = monotonic()
        done[name] = GROUPS[name](Scale(asked.quick))
        print(f"{name}: {monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    rows = [row for results in done.values() for row in results.rows]
    print(report.table(rows))
    for results in done.values():
        for note in results.notes:
            print(note)
    verdicts = [row.verdict for row in rows]
    print(f"\n{verdicts.count(MET)} goals met, {verdicts.count(MISSED)} missed. {report.facts(quick=asked.quick)}")
    if writes:
        sections = {name: report.section(results) for name, results in done.items()}
        report.write(sections | {"machine": report.facts(quick=asked.quick)})
        plots.draw_all([chart for results in done.values() for chart in results.charts], report.IMAGES)


if __name__ == "__main__":
    main()
