"""Sessions on disk: conversations that survive the process, in one SQLite file.

`open` is the door; `gatekeeper.store.files` has what concerns whole files: list, export, import, forget, recover.
"""

from __future__ import annotations

from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from gatekeeper.settings import Settings
    from gatekeeper.store.gate import SessionGatekeeper


def open(path: str | os.PathLike[str], *, session: str = "default", user: str = "default",
         token_budget: int | None = None, settings: Settings | None = None,
         count_tokens: Callable[[str], int] = estimate_tokens) -> SessionGatekeeper:
    """A `ContextGatekeeper` whose turns, messages, constraints, settings and topic live in the SQLite file `path`.

    A file or session that does not exist is made. What is added is on disk when `add_turn` or `add_messages` returns.
    Any number of threads and processes may have one file, and one session, open at a time; each sees what the others
    wrote at its next call.

    session, user: both together name the session; no other user's session is ever read. token_budget, settings: for
    a new session the ones it is made with, 4000 and `Settings.minimal()` by default; for one that exists None takes
    its own. A given budget, and settings that only a query needs, then hold for this gatekeeper alone. count_tokens
    is not stored.

    Raises ArgumentTypeError or ArgumentValueError for arguments that do not fit, StoreCorruptError for a damaged
    file, StoreSettingsError for settings that would index the turns otherwise, and other kinds of StoreError.
    """
    from gatekeeper.store.gate import open_session

    return open_session(path, session, user, token_budget, settings, count_tokens)
