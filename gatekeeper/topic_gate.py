"""The topic gate: does a query go on with the active topic or leave it?"""

from __future__ import annotations

from gatekeeper.anchor import fold
from gatekeeper.block import CONTINUE, SWITCH, GateDecision
from gatekeeper.errors import require_text
from gatekeeper.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Container, Mapping, Sequence

# The eight Chinese patterns are those of the design. Matched at the head of the folded text, white space skipped; a
# word ends where no letter of it follows, whatever the script behind it.
DEICTIC_PATTERNS = (
    r"^这个", r"^那个", r"^它", r"^这", r"^那",
    r"^继续", r"^然后呢", r"^还有呢",
    r"^(?:th(?:is|at|ese|ose|ey|em)|its?)(?![a-z0-9_])",
    r"^(?:continue|go on|keep going|carry on|and then|then what|what about|how about|what else|same (?:here|for))"
    r"(?![a-z0-9_])",
    r"^(?:위 (?:내용|글|질문|방법)|그거|그것|그럼|그러면|그리고|이거|이것|계속)",
    r"^(?:それ|これ|その|この|続け|では)",
)  # fmt: skip

LONGEST_DEICTIC = 32  # characters; no pattern looks further
FIRST_CHARACTERS = frozenset("这那它继然还ticgkawhs위그이계そこ続で")  # of all patterns

# Third-person pronouns and demonstratives anywhere in the head of a message.
PRONOUNS = r"(?<![a-z0-9_])(?:its?|th(?:is|at|ese|ose|ey|em|eir)|he|she|him|her|his)(?![a-z0-9_])|[这那它他她]"
PRONOUN_CHARACTERS = 400  # a long message says what it is about
MAX_PRONOUNS = 2
TAIL = 12  # characters at the end of a turn where its question mark stands


# What a question without any anchor asks with: it means the turn before it. "ok" and a bare "introduction" do not.
INTERROGATIVES = (
    r"什么|为何|为啥|怎|如何|咋|哪|谁|吗|呢|几|[?？]|(?<![a-z])(?:how|why|what|when|where|which|who)(?![a-z])")


class _Expression:
    """A regular expression that is compiled when it is first asked: importing `re` costs milliseconds."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.compiled: re.Pattern[str] | None = None

    def __call__(self) -> re.Pattern[str]:
        if self.compiled is None:
            import re

            self.compiled = re.compile(self.pattern)
        return self.compiled


_deictic = _Expression("|".join(DEICTIC_PATTERNS))
_pronouns = _Expression(PRONOUNS)
_interrogatives = _Expression(INTERROGATIVES)


def is_deictic(text: str) -> bool:
    """Whether a text points back at its head."""
    head = text.lstrip()[:LONGEST_DEICTIC]
    if fold(head[:1]) not in FIRST_CHARACTERS:  # most messages
        return False
    folded = fold(head)
    if folded.startswith("it") and head[:2].isupper():  # the department, not the pronoun
        return False
    return _deictic().match(folded) is not None


def n_pronouns(text: str) -> int:
    """Pronouns in the head of a text, at most two."""
    return min(MAX_PRONOUNS, len(_pronouns().findall(fold(text[:PRONOUN_CHARACTERS]))))


def asks_or_is_blank(fallback: str) -> bool:
    """Whether a query without anchors asks something, or says nothing at all in words."""
    return not any(map(str.isalnum, fallback)) or _interrogatives().search(fallback) is not None


def topic_masses(masses: Sequence[float], window: int) -> tuple[float, float]:
    """(idf mass that the topic holds, mass that it lacks), from the mass by age of the last turn that held a term.

    masses[a]: terms last seen a turns ago, a = 1 ...; masses[0]: all others. window: turns of the topic that count.
    """
    held = 0.0
    for age in range(1, window + 1):
        held += masses[age]
    lacking = masses[0]
    for age in range(window + 1, len(masses)):
        lacking += masses[age]
    return held, lacking


def ratios(held: float, lacking: float, implied: float = 0.0) -> tuple[float, float]:
    """(overlap, new_ratio) of the two masses, what is implied counted as held; both 0 for a query without anchors."""
    if held + lacking <= 0.0:
        return 0.0, 0.0
    held += implied
    total = held + lacking
    return held / total, lacking / total


def implied_mass(text: str, last_turn: tuple[str, str] | None, settings: Settings) -> float:
    """The idf mass with which a message speaks for the topic of the turn before it without naming anything of it.

    A pronoun stands for something named before, and so does an answer: a message without a question behind a turn
    that ends with one.
    """
    mass = settings.pronoun_mass * n_pronouns(text)
    if last_turn is not None and not asks(text) and asks((last_turn[1] or last_turn[0])[-TAIL:]):
        mass += settings.answer_mass
    return mass


def says_nothing(fallback: str) -> bool:
    """Whether a query without anchors is made of listed words, not of signs or single letters."""
    neighbours = zip(fallback, fallback[1:] + " ", strict=True)
    return any(a.isalnum() and (b.isalnum() or not a.isascii()) for a, b in neighbours)


def asks(text: str) -> bool:
    return "?" in text or "？" in text


def gate_action(overlap: float, new_ratio: float, deictic: bool, settings: Settings, held: float = 0.0) -> str:
    """"continue" or "switch". A query without anchors says nothing of a new topic and continues.

    held: the idf mass that the topic holds; a whole word of it makes a query go on, however much of it is new.
    """
    if deictic or overlap > settings.overlap_continue or held >= settings.shared_mass:
        return CONTINUE
    if overlap < settings.overlap_switch and new_ratio > settings.new_ratio_switch:
        return SWITCH
    return CONTINUE


def gate_topic(
    query: str, query_anchors: Mapping[str, float], topic_anchors: Container[str], *, settings: Settings | None = None
) -> GateDecision:
    """Decide whether `query` goes on with a topic.

    query_anchors: the query's anchors with their idf, as `extract_anchors` gives them; topic_anchors: what the
    topic's turns hold. Formulas: overlap and new_ratio of docs/algorithm.md.
    """
    require_text("query", query)
    held = lacking = 0.0
    new_anchors = []
    for anchor, idf in query_anchors.items():
        if anchor in topic_anchors:
            held += idf
        else:
            lacking += idf
            new_anchors.append(anchor)
    overlap, new_ratio = ratios(held, lacking)
    deictic = is_deictic(query)
    action = gate_action(overlap, new_ratio, deictic, settings or Settings(), held)
    return GateDecision(action, overlap, new_ratio, deictic, tuple(new_anchors))
