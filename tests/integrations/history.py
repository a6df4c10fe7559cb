"""One history of several subjects that every framework is given, and what the plain interface chooses from it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gatekeeper import fit_messages

SYSTEM = "You answer questions about servers."
TURNS = [
    ("How does Redis expire keys?", "Redis deletes a key lazily when it is read. It also samples some keys. Ask more."),
    ("What does git rebase do?", "It rewrites commits onto another base. Be careful with shared branches."),
    ("惰性删除够用吗？", "惰性删除只在读取时触发。冷数据会一直占用内存。"),
    ("Show me the plan of a query in PostgreSQL.", "EXPLAIN ANALYZE runs the query. It shows real times."),
] * 3
QUERY = "Is lazy deletion of keys in Redis enough?"
BUDGET = 400


def pairs() -> list[tuple[str, str]]:
    """(role, text) of the history, without the system prompt."""
    return [pair for user, assistant in TURNS for pair in (("user", user), ("assistant", assistant))]


def chosen(query: str = QUERY, *, system: str | None = SYSTEM, **options: Any) -> list[tuple[str, str]]:
    """What `fit_messages` chooses from the history, as (role, text), the system prompt included."""
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": role, "content": text} for role, text in [*pairs(), ("user", query)]]
    fitted = fit_messages(messages, BUDGET, **options)
    assert not fitted.over_budget
    assert len(fitted) < len(messages)
    return [(message["role"], message["content"]) for message in fitted]


def slow_counter(threads: list[int]) -> Callable[[str], int]:
    """Counts characters and notes in which thread."""

    def count(text: str) -> int:
        threads.append(threading.get_ident())
        return len(text)

    return count
