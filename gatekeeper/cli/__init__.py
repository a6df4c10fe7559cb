"""The command `gatekeeper`. click and rich are imported by its modules only, when it runs."""

from __future__ import annotations

import sys


def run() -> None:
    """The entry point. Without click or rich: one line that says how to get them, exit code 1."""
    try:
        from gatekeeper.cli.commands import main
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich"):
            raise
        sys.stderr.write(f"error: the command needs {missing}: pip install 'context-gatekeeper[cli]'\n")
        raise SystemExit(1) from None
    main(prog_name="gatekeeper")
