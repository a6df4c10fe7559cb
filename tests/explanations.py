"""Explanations whose pages are looked at: every section full, every section empty, and texts that try to break out."""

from __future__ import annotations

from collections.abc import Callable

from command_line import DEMO_FILE
from conversations import gate_of

from gatekeeper import Settings
from gatekeeper.chat_file import read_chat_file
from gatekeeper.report import Explanation

DEMO = read_chat_file(DEMO_FILE)
HOSTILE = (
    "<script>alert(1)</script> redis", "</style><b>redis</b>", "</title></textarea></pre> redis", "<!-- redis ]]>",
    "&lt;b&gt; redis &amp;", "{{ 7 * 7 }} {% raw %} redis", "'\" onload=alert(1) redis", "\u202eredis\u202c",
    "redis \ud800\udfff \ud800", "\x00\x07\x1b[31m redis \x85", "مرحبا redis שלום", "redis " + "x" * 3000,
    "\n\nredis\n```py\ndef f():\n\treturn 1\n```\n", "👩\u200d💻 ｒｅｄｉｓ 緩存 \ufeff", "a\r\nredis\rb",
)  # fmt: skip


def demo() -> Explanation:
    return gate_of(DEMO).explain("锁的 TTL 设置多少合适？")


def thorough() -> Explanation:
    return gate_of(DEMO, 6000, settings=Settings.thorough()).explain("那 PostgreSQL 的 EXPLAIN ANALYZE 怎么看")


def hostile() -> Explanation:
    gate = gate_of([(text, text) for text in HOSTILE], 30_000, settings=Settings.thorough())
    gate.constraints.forbid("<i>\u202e</i>")
    return gate.explain("</title><script>redis</script> \u202e\ud800 <img src=x onerror=alert(1)>")


def empty() -> Explanation:
    return gate_of([]).explain("")


def nothing() -> Explanation:
    """A query without anchors that no turn holds."""
    return gate_of([("redis", "")]).explain("？！")


def over_budget() -> Explanation:
    return gate_of(DEMO, 50).explain("Redis 惰性删除 " * 60)


def many_turns() -> Explanation:
    gate = gate_of(DEMO * 10)
    gate.forget(17)
    return gate.explain("Redis 的惰性删除和定期删除有什么区别，和 TTL 有什么关系？")


EXPLANATIONS: dict[str, Callable[[], Explanation]] = {
    function.__name__: function for function in (demo, thorough, hostile, empty, nothing, over_budget, many_turns)
}
