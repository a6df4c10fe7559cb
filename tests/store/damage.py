"""Session files to be damaged, and what of them is left."""

from __future__ import annotations

import random
from pathlib import Path

import gatekeeper
from gatekeeper import StoreError
from gatekeeper.store import files

SESSIONS = (("u1", "redis"), ("u1", "git"), ("u2", "redis"))
LONG = "惰性删除 redis ttl " * 900  # goes on in overflow pages


def text_of(user: str, session: str, turn_id: int) -> tuple[str, str]:
    return f"{user} {session} question {turn_id} " + "x" * (turn_id * 37 % 400), LONG if turn_id % 17 == 5 else "ok"


def make(path: Path, n_turns: int = 60) -> None:
    """A file of three sessions whose turns came in by turns."""
    gates = {pair: gatekeeper.open(path, user=pair[0], session=pair[1], token_budget=10**6) for pair in SESSIONS}
    for turn_id in range(n_turns):
        for (user, session), gate in gates.items():
            gate.add_turn(*text_of(user, session, turn_id))
    for gate in gates.values():
        gate.constraints.language = "zh"
        gate.close()


def contents(path: Path) -> dict[tuple[str, str], list[str]]:
    """All that a file says: each session's export. A session that is not there is an error here."""
    return {(user, session): list(files.export_session(path, user=user, session=session)) for user, session in SESSIONS}


def outcome(path: Path) -> dict[tuple[str, str], list[str]] | StoreError:
    """What a file says, or the error that it gives; opening a session is part of it."""
    try:
        for user, session in SESSIONS:
            with gatekeeper.open(path, user=user, session=session) as gate:
                gate.select("redis ttl")
        listed = [(item["user"], item["session"]) for item in files.list_sessions(path, user=None)]
        assert listed == sorted(SESSIONS)
        return contents(path)
    except StoreError as error:
        return error


def flip(data: bytes, seed: int, n_bytes: int) -> bytes:
    """Some bytes of data changed, at places and to values that the seed decides."""
    chance, damaged = random.Random(seed), bytearray(data)
    at = chance.randrange(len(data))
    for i in range(at, min(at + n_bytes, len(data))):
        damaged[i] ^= chance.randrange(1, 256)
    return bytes(damaged)
