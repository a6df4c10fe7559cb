"""python -m gatekeeper: the command of the same name."""

from gatekeeper.cli import run

run()
