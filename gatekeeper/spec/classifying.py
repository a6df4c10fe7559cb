"""The grade of a raw requirement: 1 one step, 2 a module, 3 a rebuild; first rule that fires."""

from __future__ import annotations

from gatekeeper.spec.content import essence
from gatekeeper.spec.decision import Classification, Gap, Inferred
from gatekeeper.spec.families import (
    ATOMIC_CONTAINERS,
    CONTAINER,
    Found,
    crud_signals,
    find_family,
    find_other_container,
)
from gatekeeper.spec.inference import infer
from gatekeeper.spec.request import Request, Token
from gatekeeper.spec.scope import find_large_scope, has_broad_word, has_connective
from gatekeeper.spec.settings import MAX_ATOMIC_LENGTH, MAX_ATOMIC_LENGTH_ENGLISH, MAX_ATOMIC_WORDS_ENGLISH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.spec.lexicon import WordList

_NOUN_AFTER_FAST = frozenset("卷号题答候诊世成")
_EDITS = (
    "add",
    "remove",
    "change",
    "become",
    "create",
    "edit",
    "tiny",
    "rename-verb",
    "rebuild",
    "migrate",
    "upgrade",
    "ddl",
    "adjust",
    "reference",
    "register",
)


def classify(text: str, words: WordList | None = None) -> Classification:
    """Grade a raw requirement, in any language; Chinese and English are understood. Never fails, linear in the text."""
    return classify_request(Request(text, words))


def classify_request(request: Request) -> Classification:
    """Grade a requirement that has been read."""
    inferred = infer(request)
    fast, negated = _fast_word(request)
    if fast:
        return _grade(request, 1, "skip", (f"skip-trigger:{fast}",), inferred, skip_trigger=fast)
    signals = ("skip-trigger-negated",) if negated else ()
    scope = find_large_scope(request)
    if scope:
        return _grade(request, 3, scope, (*signals, f"L3:{scope}"), inferred, wants_asking=negated)
    level, family, found_signals, gap = _small_scope(request, inferred)
    if negated and level == 1:
        level = 2
    return _grade(request, level, family, (*signals, *found_signals), inferred, gap=gap, wants_asking=negated)


def _grade(
    request: Request,
    level: int,
    family: str,
    signals: tuple[str, ...],
    inferred: Inferred,
    *,
    gap: Gap | None = None,
    skip_trigger: str | None = None,
    wants_asking: bool = False,
) -> Classification:
    return Classification(
        level,
        level == 1,
        family,
        signals,
        gap,
        inferred,
        skip_trigger,
        wants_asking,
        is_coding=level != 2 or wants_asking or gap is not None or not is_chat(request),
        is_english=request.is_english,
    )


def _small_scope(request: Request, inferred: Inferred) -> tuple[int, str, tuple[str, ...], Gap | None]:
    """Level, family, signals and gap of what reaches no further than a module."""
    if _is_self_contained(request):
        return 1, "self-contained", ("L1:self-contained", "L1:has-reference"), None
    crud = crud_signals(request, inferred)
    if crud:
        return 1, "crud", crud, None
    blockers = _blockers(request)
    found = None if blockers else find_family(request)
    if found is None:
        other = None if blockers else find_other_container(request)
        if other and not other.has_content:
            return _gap(request, other)
        if other and other.deleting and request.length <= _length_limit(request):
            return 1, other.family, ("L1:atomic-edit", f"L1:atomic-edit:{other.family}"), None
        return 2, "default", (*blockers, "L2:default"), None
    if found.kind == CONTAINER and not found.has_content:
        return _gap(request, found)
    if _is_long(request):
        return 2, "default", ("L2:long", "L2:default"), None
    other = find_other_container(request) if found.family not in ATOMIC_CONTAINERS and found.kind != CONTAINER else None
    if other and not other.has_content and not other.deleting:
        return _gap(request, other)  # an attribute of a new thing whose purpose is missing
    return 1, found.family, ("L1:atomic-edit", f"L1:atomic-edit:{found.family}"), None


def _gap(request: Request, found: Found) -> tuple[int, str, tuple[str, ...], Gap]:
    signals = ("L2:content-missing", f"L2:content-missing:{found.family}")
    return 2, found.family, signals, Gap(found.family, found.deleting, found.words)


def _blockers(request: Request) -> tuple[str, ...]:
    """Why a small edit cannot go in one step: several tasks, or a broad reach."""
    signals = []
    if has_connective(request):
        signals.append("L2:several-tasks")
    if has_broad_word(request):
        signals.append("L2:broad")
    return tuple(signals)


def _length_limit(request: Request) -> int:
    return MAX_ATOMIC_LENGTH_ENGLISH if request.is_english else MAX_ATOMIC_LENGTH


def _is_long(request: Request) -> bool:
    """Longer than one goal is: 48 characters; in English 120, and over 20 words."""
    if request.is_english:
        return request.length > MAX_ATOMIC_LENGTH_ENGLISH and len(request.tokens) > MAX_ATOMIC_WORDS_ENGLISH
    return request.length > MAX_ATOMIC_LENGTH


def _fast_word(request: Request) -> tuple[str | None, bool]:
    """The fast-track word that counts, and whether a negated one wishes to be asked."""
    negated = False
    for token in request.with_tag("fast"):
        if request.hidden[token.end : token.end + 1] in _NOUN_AFTER_FAST and request.hidden[token.end : token.end + 1]:
            continue
        if _is_directly_negated(request, token):
            negated = True
            continue
        return token.word, False
    return None, negated


def _is_directly_negated(request: Request, token: Token) -> bool:
    """别直接做, 不要用极速模式: a negation with at most one other word between."""
    if any("question-form" in t.tags and t.end == token.start for t in request.tokens):
        return True
    return request.is_negated(token, reach=2)


def _is_self_contained(request: Request) -> bool:
    """A new page or component, and something to follow."""
    if not request.has("reference") or not request.has("page-noun", "page"):
        return False
    if not any(not request.is_negated(token) for token in request.with_tag("reference")):
        return False
    window = 40 if request.is_english else 12
    return any(
        verb.clause == noun.clause and 0 <= noun.start - verb.end <= window
        for noun in request.with_tag("page-noun", "page")
        for verb in request.with_tag("create")
    )


def is_chat(request: Request) -> bool:
    """Greeting, thanks, small talk, a bare "go on", or a question without an edit verb."""
    if not request.text.strip():
        return True
    if request.spans:
        return False
    edits = request.with_tag(*_EDITS)
    if request.has("ask-meaning"):
        edits = [token for token in edits if "defect" not in token.tags]  # what an error means is a question
    if edits:
        return False
    if request.has("smalltalk", "ask", "ask-meaning"):
        return True
    if request.has("greeting", "thanks", "continuation"):
        left = request.hidden
        for token in sorted(request.with_tag("greeting", "thanks", "continuation"), key=lambda t: -t.start):
            start, end = request.clause_of(token)
            if token.start > start or "thanks" not in token.tags:  # "thanks" and what for
                start, end = token.start, token.end
            left = left[:start] + left[end:]
        return not essence(Request(left), 0, len(Request(left).text))
    return False
