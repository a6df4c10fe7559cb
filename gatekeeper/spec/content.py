"""Whether a requirement says what a new thing is, or which old one it means."""

from __future__ import annotations

import re
from functools import lru_cache

from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.paths import ROUTE
from gatekeeper.spec.request import Request, Token

_NOISE = frozenset({"quantity", "adjective", "place", "courtesy", "locative", "negation", "question-form"})
_IDENTIFYING = frozenset({"adjective", "place"})  # which of the old things: enough to find the one to remove
_MEANING = frozenset(
    {
        "purpose",
        "click",
        "component",
        "button",
        "operation",
        "feature-follows",
        "field",
        "column",
        "copy",
        "style",
        "constant",
        "target",
        "card",
        "tab",
        "dialog",
        "api",
        "route",
    }
)
_LOCATIVE = frozenset({"locative"})
_BLANK = re.compile(r"[\s\d:,;!?。…()\[\]{}<>\"'`「」『』“”‘’、.~*#+=_/\\|-]+")
_LEFTOVER = frozenset("面页个的了在给把将对为由和跟与成后前时请再先就想要它被")


@lru_cache(maxsize=1)
def _endings() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How the names of fields end, and those of pages."""
    sections = word_list("grading").sections
    return sections["field-ending"], sections["page-ending"]


def essence(request: Request, start: int, end: int, *, is_removal: bool = False, pages_count: bool = False) -> str:
    """What is left of a piece of text without classifiers, bare adjectives, places, particles and marks."""
    parts, last = [], start
    tokens = request.within(start, end)
    for i, token in enumerate(tokens):
        parts.append(request.text[last : token.start])
        last = token.end
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        if not _is_noise(token, following, end, is_removal=is_removal, pages_count=pages_count):
            parts.append(token.word)
    parts.append(request.text[last:end])
    left = _BLANK.sub("", "".join(parts))
    return left if any(character not in _LEFTOVER for character in left) else ""


def _is_noise(token: Token, following: Token | None, end: int, *, is_removal: bool, pages_count: bool) -> bool:
    tags = token.tags
    if is_removal and tags & _IDENTIFYING and len(token.word) > 1 and not tags & {"quantity", "courtesy"}:
        return False
    if "page" in tags:
        # "a button of the list" says where; "a list button" says what
        is_place = token.end == end or (
            following is not None and following.start == token.end and bool(following.tags & _LOCATIVE)
        )
        return is_place and not pages_count
    if tags & _NOISE:
        return not tags & _MEANING
    return bool(tags & {"behaviour", "add", "edit", "to", "become"}) and not tags & _MEANING


_SAME_THING = frozenset({"按钮", "图标", "icon", "button"})


def modifier(request: Request, verb: Token, noun: Token, **options: bool) -> str:
    """What stands between the verb and its noun, if it says anything."""
    text = essence(request, verb.end, noun.start, **options)
    if text in _SAME_THING and "button" in noun.tags:
        return ""  # an icon button is a button
    if not text and not options.get("pages_count"):
        # a page directly before the noun names the thing: a list button
        before = [token for token in request.tokens if verb.end <= token.start and token.end == noun.start]
        if before and "page" in before[0].tags and not request.is_english:
            return before[0].word
    return text


def has_quote(request: Request) -> bool:
    """Whether something is quoted that is no path: paths are gone by now."""
    return any(_BLANK.sub("", quote) for quote in request.quotes)


def says_what(request: Request, key: str, verb: Token, noun: Token) -> bool:
    """Whether the text tells the identity or the purpose of the new thing `noun`. A path never does."""
    if has_quote(request) or modifier(request, verb, noun, pages_count=key == "route"):
        return True
    if key == "route":
        return _has_target(request, noun) or _is_named_behind(request, noun)
    if _has_click(request, noun) or _has_behaviour(request, noun):
        return True
    if key in ("column", "field"):
        return _is_named_behind(request, noun) or _is_named_in_later_clause(request, noun) or _is_by(request, verb)
    return key in ("component", "api") and (_is_named_behind(request, noun) or _is_for_field(request, verb))


def says_which(request: Request, verb: Token, noun: Token) -> bool:
    """Whether the text tells which thing is to go."""
    if has_quote(request):
        return True
    if noun.start >= verb.end:
        return bool(
            modifier(request, verb, noun, is_removal=True)
            or ("column-bare" in noun.tags and _is_named_behind(request, noun))
        )
    start, _ = request.clause_of(noun)
    return bool(essence(request, max(start, noun.start - 12), noun.start, is_removal=True))


def _tail_clauses(request: Request, noun: Token) -> list[tuple[int, int]]:
    """The rest of the noun's clause, and the clauses behind it."""
    _, end = request.clause_of(noun)
    return [(noun.end, end), *request.clause_bounds[noun.clause + 1 :]]


def _has_click(request: Request, noun: Token) -> bool:
    """A click with something behind it, outside the noun phrase: 点击打开帮助页, but not 可点击的按钮."""
    for token in request.with_tag("click"):
        _, end = request.clause_of(token)
        if token.end <= noun.start and token.clause == noun.clause:
            continue
        if essence(request, token.end, end) or (
            token.clause + 1 < len(request.clause_bounds) and _clause_has_purpose(request, token.clause + 1)
        ):
            return True
    return False


def _clause_has_purpose(request: Request, clause: int) -> bool:
    return any("purpose" in token.tags and token.clause == clause for token in request.tokens)


def _has_behaviour(request: Request, noun: Token) -> bool:
    """What the thing does or is called, behind the noun or in a later clause."""
    if request.is_english:
        return _has_english_behaviour(request, noun)
    for start, end in _tail_clauses(request, noun):
        for token in request.tokens:
            if not start <= token.start < end:
                continue
            if "courtesy" in token.tags and "purpose" not in token.tags and token.word in _PUTTING_OFF:
                break
            if "purpose" in token.tags and not request.is_negated(token):
                return True
            if "behaviour" in token.tags and essence(request, token.end, end):
                return True
    return False


_PUTTING_OFF = frozenset(
    {"到时候", "到时候再说", "你看着办", "你定", "你决定", "看着办", "之后再说", "以后再说", "回头", "稍后"}
)


def _has_english_behaviour(request: Request, noun: Token) -> bool:
    """ "to export the list", "that opens help", "for the phone number"; "to the login page" is a place."""
    tokens = [token for token in request.tokens if token.start >= noun.end]
    for i, token in enumerate(tokens):
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        if following is None:
            return False
        if token.word.lower() == "to" and not following.tags & {"quantity", "page", "place"}:
            return True
        if "behaviour" in token.tags and essence(request, token.end, request.clause_of(token)[1]):
            return not (token.word.lower() == "for" and _is_place_phrase(tokens[i + 1 :]))
        if "click" in token.tags:
            return True
    return False


def _is_place_phrase(tokens: list[Token]) -> bool:
    """Whether a phrase ends in a page or a place within a few words."""
    return any(token.tags & {"page", "place"} for token in tokens[:4])


def _is_named_behind(request: Request, noun: Token) -> bool:
    """A name directly behind the noun: 加一列备注, a filter by status."""
    if request.is_english:
        following = [token for token in request.tokens if token.start >= noun.end and token.clause == noun.clause]
        is_by = len(following) > 1 and following[0].word.lower() == "by"
        return is_by and not _is_place_phrase(following[1:])
    _, end = request.clause_of(noun)
    return bool(essence(request, noun.end, end))


def _is_named_in_later_clause(request: Request, noun: Token) -> bool:
    for start, end in request.clause_bounds[noun.clause + 1 :]:
        text = essence(request, start, end)
        latin = [token for token in request.tokens if start <= token.start < end and token.tags == {"latin"}]
        if (text and len(text) <= 8 and text.endswith(_endings()[0])) or (latin and not request.is_english):
            return True
    return False


def _is_by(request: Request, verb: Token) -> bool:
    """按手机号加个搜索项: the field stands before the verb."""
    start, _ = request.clause_of(verb)
    prefix = request.text[start : verb.start]
    by = max(prefix.rfind(word) for word in ("按照", "根据", "按"))
    return by >= 0 and bool(essence(request, start + by + 1, verb.start))


def _is_for_field(request: Request, verb: Token) -> bool:
    """给状态字段加个下拉, 给 status 加个下拉: a field that stands before the verb."""
    start, _ = request.clause_of(verb)
    given = max(request.text.rfind(word, start, verb.start) for word in ("给", "为", "对"))
    if given >= 0:
        name = essence(request, given + 1, verb.start)
        if name and (name.isascii() or name.endswith(_endings()[0])):
            return True
    return any(
        "field" in token.tags
        and token.clause == verb.clause
        and token.end <= verb.start
        and essence(request, max(request.clause_of(verb)[0], token.start - 8), token.start)
        for token in request.tokens
    )


def _has_target(request: Request, noun: Token) -> bool:
    """A page or an address to go to: 指向考勤页, /users; not 到时候再说."""
    if any(span.kind == ROUTE for span in request.spans):
        return True
    for token in request.with_tag("target", "to", "behaviour", "click"):
        if token.start < noun.end or token.word in _PUTTING_OFF:
            continue
        _, end = request.clause_of(token)
        goal = essence(request, token.end, end, pages_count=True)
        has_latin = any(
            "latin" in t.tags and not t.tags & {"quantity", "courtesy", "page", "place"}
            for t in request.tokens
            if token.end <= t.start < end
        )
        has_page = any("page" in t.tags for t in request.tokens if token.end <= t.start < end)
        if goal and (
            goal.rstrip("去上里中").endswith(_endings()[1]) or has_page or has_latin or "behaviour" in token.tags
        ):
            return True
    return False
