"""The prompt: constraints, blocks in time order under short labels, the query last."""

from __future__ import annotations

from gatekeeper.block import Candidate

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

# A line of recalled text that reads as one of our labels: [12 user], [12 assistant], [constraints], [query]. Full-width
# forms and characters that cannot be seen do not hide it, nor does an unusual line break. A match begins where such
# characters begin, never inside a run of them, so that the search takes time linear in the text.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_UNSEEN = (  # blanks, control and format characters, fillers, variation selectors, tags
    r" \t\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\u2800\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_GAP = rf"[{_UNSEEN}{_BREAKS}]*"


def _spelled(word: str) -> str:
    return rf"[{_UNSEEN}]*".join([f"[{letter}{chr(ord(letter) + 0xFEE0)}]" for letter in word])


LABEL = (
    rf"(?<![{_UNSEEN}{_BREAKS}])(^{_GAP}|[{_UNSEEN}]*[{_BREAKS}]{_GAP})"
    rf"(?=[\[［]{_GAP}(?:(?:\d{_GAP})+(?:{_spelled('user')}|{_spelled('assistant')})"
    rf"|{_spelled('query')}|{_spelled('constraints')}){_GAP}[\]］])"
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
        return self.label.sub(r"\1\\", text)


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
