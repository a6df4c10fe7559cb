"""The prompt: constraints, blocks in time order under short labels, the query last."""

from __future__ import annotations

from gatekeeper.block import Candidate

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

# A line of recalled text that reads as one of our labels: [12 user], [12 assistant], [constraints], [query].
# Full-width brackets and invisible characters before it do not hide it, nor does an unusual line break.
LABEL = (
    r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])([\s\u200b-\u200d\u2060\ufeff]*)"
    r"(?=[\[［]\s*(?:\d+\s*(?:user|assistant)|query|constraints)\s*[\]］])"
)


class _Escape:
    """The label expression, compiled when a text first holds a bracket: importing `re` costs milliseconds."""

    def __init__(self) -> None:
        self.label: re.Pattern[str] | None = None

    def __call__(self, text: str) -> str:
        if "[" not in text and "［" not in text:
            return text
        if self.label is None:
            import re

            self.label = re.compile(LABEL, re.IGNORECASE)
        return self.label.sub(r"\1\2\\", text)


escape = _Escape()


def render_block(candidate: Candidate) -> str:
    """A block as it stands in the prompt, its label and the line break behind it included."""
    lines = []
    if candidate.user:
        lines.append(f"[{candidate.turn_id} user] {escape(candidate.user)}\n")
    if candidate.assistant:
        lines.append(f"[{candidate.turn_id} assistant] {escape(candidate.assistant)}\n")
    return "".join(lines)


def render_prompt(constraints: str, candidates: Iterable[Candidate], query: str) -> str:
    """The whole prompt: the constraints' text as it is, then the blocks by turn, then the query, never cut."""
    blocks = [render_block(candidate) for candidate in sorted(candidates, key=lambda c: c.turn_id)]
    return f"{constraints}{''.join(blocks)}[query] {query}"
