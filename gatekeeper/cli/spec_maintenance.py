"""`gatekeeper spec doctor`, `rebuild`, `rebuild-project-scope`, `seed`, `bench`, `calibrate`, `audit`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatekeeper.cli.spec_options import SpecRun, spec_command
from gatekeeper.cli.spec_views import print_calibration, print_findings, print_rebuilt, print_rows

if TYPE_CHECKING:
    from gatekeeper.spec.bench import Row
    from gatekeeper.spec.maintenance import Rebuilt

DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")


@click.command()
@spec_command
def doctor(run: SpecRun) -> int:
    """Print what is wrong with the library.

    Reads only. Exit code 1 when it finds something.

    \b
    Example:
      gatekeeper spec doctor
    """
    from gatekeeper.spec.maintenance import examine

    library = run.tools.library
    findings = examine(library)
    n_templates = len(library.load().templates)
    if run.as_json:
        found = [{**asdict(finding), "remedy": finding.remedy} for finding in findings]
        run.output.json({"root": library.root, "project": library.project.id, "templates": n_templates,
                         "findings": found})  # fmt: skip
    else:
        print_findings(run.output, library.root, n_templates, findings)
    return 1 if findings else 0


@click.command()
@DRY_RUN
@spec_command
def rebuild(run: SpecRun, *, dry_run: bool) -> None:
    """Make every stored fingerprint anew.

    For after an update that makes them in another way; until then they are made anew at each reading.

    \b
    Example:
      gatekeeper spec rebuild --dry-run
    """
    from gatekeeper.spec.maintenance import rebuild

    _show_rebuilt(run, rebuild(run.tools.library, dry_run=dry_run), dry_run=dry_run)


@click.command("rebuild-project-scope")
@click.option("--hoist", is_flag=True, help="Move project-level redlines into the project's profile.")
@DRY_RUN
@spec_command
def rebuild_project_scope(run: SpecRun, *, hoist: bool, dry_run: bool) -> None:
    """Make those of the project's templates anew.

    From name and tags only, as a project's templates have them.

    \b
    Example:
      gatekeeper spec rebuild-project-scope --hoist --dry-run
    """
    from gatekeeper.spec.maintenance import rebuild_project_scope

    rebuilt = rebuild_project_scope(run.tools.library, hoist=hoist, dry_run=dry_run)
    _show_rebuilt(run, rebuilt, dry_run=dry_run)


def _show_rebuilt(run: SpecRun, rebuilt: list[Rebuilt], *, dry_run: bool) -> None:
    if run.as_json:
        run.output.json({"dry_run": dry_run, "templates": [asdict(one) for one in rebuilt]})
    else:
        print_rebuilt(run.output, rebuilt, dry_run=dry_run)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--scope", type=click.Choice(["project", "global"]), default="project", show_default=True,
              help="Where they hold.")  # fmt: skip
@spec_command
def seed(run: SpecRun, files: tuple[str, ...], scope: str) -> int:
    """Load templates from FILES, with the checks of retro.

    A file is JSON lines, or one JSON list, of arguments of the tool spec_retro; or a template in Markdown. Exit code 1
    when one was not written.

    \b
    Example:
      gatekeeper spec seed templates.jsonl
    """
    from gatekeeper.spec.seeding import read_seeds

    answers = [run.tools.call("spec_retro", arguments | {"scope": scope})
               for file in files for arguments in read_seeds(Path(file))]  # fmt: skip
    if run.as_json:
        run.output.json({"templates": answers})
    else:
        for answer in answers:
            run.output.line((answer["message"], "normal" if answer["saved"] else "error"))
    return 0 if all(answer["saved"] for answer in answers) else 1


@click.command()
@spec_command
def bench(run: SpecRun) -> int:
    """Measure recall on the benches that come with it.

    Hits and false hits, and times on this machine. Exit code 1 when a figure misses what it must reach.

    \b
    Example:
      gatekeeper spec bench
    """
    from gatekeeper.spec.bench import bench_rows
    from gatekeeper.spec.disk_bench import disk_rows

    disk = disk_rows()  # first: a process that has measured 10,000 templates is no fresh one
    return _show_rows(run, [*bench_rows(), *disk])


@click.command()
@spec_command
def audit(run: SpecRun) -> int:
    """Print what every text costs in tokens.

    Estimated: CJK characters 1.0, others 0.25. Exit code 1 when one is over its limit.

    \b
    Example:
      gatekeeper spec audit
    """
    from gatekeeper.spec.auditing import audit

    return _show_rows(run, audit())


def _show_rows(run: SpecRun, rows: list[Row]) -> int:
    if run.as_json:
        run.output.json({"figures": [row._asdict() for row in rows]})
    else:
        print_rows(run.output, rows)
    return 0 if all(row.holds for row in rows) else 1


@click.command()
@spec_command
def calibrate(run: SpecRun) -> None:
    """Propose a threshold for the library.

    Each template is asked for in its own words; how near it and all others are to them.

    \b
    Example:
      gatekeeper spec calibrate
    """
    from gatekeeper.spec.calibrating import calibrate

    library = run.tools.library
    found = calibrate(library.load().templates, library.settings)
    document = {
        "templates": len(library.load().templates), "pairs": len(found.pairs), "least_own": found.least_own,
        "most_other": found.most_other, "threshold": library.settings.match_threshold, "proposed": found.proposed,
        "missed": found.n_missed, "false": found.n_false, "own": found.histogram(own=True),
        "other": found.histogram(own=False)}  # fmt: skip
    if run.as_json:
        run.output.json(document)
    else:
        print_calibration(run.output, document)


def add_maintenance(group: click.Group) -> None:
    """Add the commands of this module."""
    for command in (doctor, rebuild, rebuild_project_scope, seed, bench, calibrate, audit):
        group.add_command(command)
