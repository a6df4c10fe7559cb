"""What may be written: no redline of one task, project rules to the profile, near-duplicates once, no secrets."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.model import PROJECT, CheckedTemplate
from gatekeeper.spec.paths import names_a_file
from gatekeeper.spec.request import fold
from gatekeeper.spec.secrets import mask_secrets
from gatekeeper.spec.settings import MAX_KEPT_ITEMS, NEAR_DUPLICATE_LENGTH, NEAR_DUPLICATE_RATIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatekeeper.spec.model import Template

TASK, PROJECT_LEVEL, TOPIC = "task", "project", "topic"


@lru_cache(maxsize=1)
def _words() -> dict[str, tuple[str, ...]]:
    return word_list("hygiene").sections


def _holds(text: str, tag: str) -> bool:
    """Whether a text holds a word of a list: Chinese anywhere, Latin as a word of its own."""
    low = fold(text).lower()
    return any(
        re.search(rf"(?<![a-z0-9_]){re.escape(word)}(?![a-z0-9_])", low) if word.isascii() else word in low
        for word in _words()[tag]
    )


# --- redlines


def is_task_scoped(redline: str) -> bool:
    """Whether a redline bounds one task: a word of scope and a concrete file. Later it would block what is wanted."""
    return _holds(redline, "scope") and _names_a_file(redline)


_BARE_FILE = (
    r"(?i)(?<![a-z])(?:dockerfile|makefile|jenkinsfile)(?![a-z])"
    r"|(?<![\w.])\.(?:env|gitignore|eslintrc)\b|[\u4e00-\u9fff]\.[a-z]{2,6}\b"
)


def _names_a_file(redline: str) -> bool:
    return names_a_file(fold(redline)) or bool(re.search(_BARE_FILE, fold(redline)))


def classify_redline(redline: str) -> str:
    """task, project or topic: by its words, never by how many templates repeat it."""
    if is_task_scoped(redline):
        return TASK
    return PROJECT_LEVEL if _holds(redline, "project") else TOPIC


def bigram_containment(a: str, b: str) -> float:
    """The share of the smaller set of character 2-grams that the larger one holds, after normalising both."""
    grams_a, grams_b = _grams(normalize(a)), _grams(normalize(b))
    smaller = min(len(grams_a), len(grams_b))
    return len(grams_a & grams_b) / smaller if smaller else 0.0


_BRACKETED = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】")
_NO_WORD = re.compile(r"[^\w]|_")


def normalize(text: str) -> str:
    """A redline without bracketed remarks, blanks, punctuation and case."""
    return _NO_WORD.sub("", _BRACKETED.sub("", fold(text)).lower())


def _grams(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


def is_near_duplicate(a: str, b: str) -> bool:
    """Whether two rules say the same: equal when normalised, or 2-gram containment of 0.7 and more.

    Two guards: containment needs 6 normalised characters on both sides, or a short rule would swallow longer ones;
    and rules of opposite polarity, or for different names, are never the same.
    """
    plain_a, plain_b = normalize(a), normalize(b)
    if plain_a == plain_b:
        return bool(plain_a) or a.strip() == b.strip()
    if min(len(plain_a), len(plain_b)) < NEAR_DUPLICATE_LENGTH or (polarity(a) < 0) != (polarity(b) < 0):
        return False
    if _names(a) != _names(b) and _names(a) and _names(b) and not (_names(a) <= _names(b) or _names(b) <= _names(a)):
        return False
    return bigram_containment(a, b) >= NEAR_DUPLICATE_RATIO


def _names(text: str) -> frozenset[str]:
    """The identifiers, files and numbers of a rule: rules for different ones are different rules."""
    return frozenset(re.findall(r"[a-z0-9_][a-z0-9_.\-/]*", fold(text).lower()))


def polarity(text: str) -> int:
    """-1 for a rule that forbids, 1 for one that allows or demands, 0 for neither; 不得不 demands."""
    low = re.sub("|".join(_words()["neutral"]), "", _BRACKETED.sub("", fold(text)).lower())
    if re.search(_any_of(_words()["double"]), low):
        return 1
    if re.search(_any_of(_words()["forbidding"]), low):
        return -1
    return 1 if re.search(_any_of(_words()["allowing"]), low) else 0


@lru_cache(maxsize=8)
def _any_of(words: tuple[str, ...]) -> str:
    """A pattern of all words, the longest first, Latin ones with borders."""
    return "|".join(
        rf"(?<![a-z0-9_]){re.escape(word)}(?![a-z0-9_])" if word.isascii() else re.escape(word)
        for word in sorted(words, key=len, reverse=True)
    )


def merge_near_duplicates(items: Iterable[str]) -> list[str]:
    """The items without near-duplicates; of a pair the longer wording stays, in the place of the first."""
    kept: list[str] = []
    for item in items:
        item = item.strip()
        if not item:
            continue
        place = next((i for i, other in enumerate(kept) if is_near_duplicate(item, other)), None)
        if place is None:
            kept.append(item)
        elif len(item) > len(kept[place]):
            kept[place] = item
    return kept


# --- a template on its way to disk


def check_template(template: Template) -> CheckedTemplate:
    """The template as it may be written; see CheckedTemplate for what was taken out.

    Secrets are masked in every text. Redlines of one task fall; those of the whole project move to the profile if
    the template belongs to the project. Near-duplicates are merged; 12 questions and 12 acceptance items stay.
    """
    masked: dict[str, int] = {}

    def clean(text: str) -> str:
        text, counts = mask_secrets(text)
        for kind, count in counts.items():
            masked[kind] = masked.get(kind, 0) + count
        return text

    redlines = merge_near_duplicates(map(clean, template.redlines))
    dropped = [redline for redline in redlines if is_task_scoped(redline)]
    hoisted = (
        [redline for redline in redlines if classify_redline(redline) == PROJECT_LEVEL]
        if (template.scope == PROJECT)
        else []
    )
    checked = replace(
        template,
        name=clean(template.name),
        tags=tuple(map(clean, template.tags)),
        trigger=clean(template.trigger),
        clarify=tuple(merge_near_duplicates(map(clean, template.clarify))[:MAX_KEPT_ITEMS]),
        approach=tuple(map(clean, template.approach)),
        redlines=tuple(redline for redline in redlines if redline not in dropped and redline not in hoisted),
        prompt=clean(template.prompt),
        acceptance=tuple(merge_near_duplicates(map(clean, template.acceptance))[:MAX_KEPT_ITEMS]),
    )
    return CheckedTemplate(checked, tuple(dropped), tuple(hoisted), masked)
