"""python -m gatekeeper.cli: the command `gatekeeper`."""

from gatekeeper.cli import run

run()
