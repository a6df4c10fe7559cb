"""Small edits: which family a requirement belongs to, and what it lacks."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from gatekeeper.spec.content import essence, has_quote, says_what, says_which
from gatekeeper.spec.decision import Inferred
from gatekeeper.spec.request import HIDDEN, LONGEST, Request, Token

VALUE, CONTAINER, ATTRIBUTE = "value", "container", "attribute"
ATOMIC_CONTAINERS = ("button", "column", "route")  # with content: one step, level 1
_EDITS = ("change", "become", "adjust", "add", "register", "remove", "rename-verb", "tiny", "button")
_THINGS = frozenset({"button", "column", "route", "dialog", "card", "tab", "component", "field", "api"})
OTHER_CONTAINERS = ("dialog", "card", "tab", "component", "field", "api")  # with content: level 2
_BEHIND = 4  # characters between a noun and the verb that closes its clause
_WINDOW = 8  # characters between verb and noun of a value edit
_CONTAINER_WINDOW = 12
_ENGLISH_WINDOW = 40


class Found(NamedTuple):
    """A family that fired. kind: a value of an old thing, an attribute of one, or a container: a thing to add or
    to remove. has_content: whether the text says what or which."""

    family: str
    kind: str
    deleting: bool = False
    has_content: bool = True
    words: str = ""


def find_family(request: Request) -> Found | None:
    """The first family that fires, in a fixed order."""
    if not request.has(*_EDITS) and not request.quotes:
        return None
    for find in (_copy, _style, _button, _button_attribute, _column, _route, _constant, _rename, _tiny):
        found = find(request)
        if found:
            return found
    return None


def find_other_container(request: Request) -> Found | None:
    """A dialog, card, tab, component, field or interface to add or to remove."""
    for key in OTHER_CONTAINERS:
        found = _container(request, key, key)
        if found:
            return found
    return None


# --- value edits


def _window(request: Request, size: int) -> int:
    return _ENGLISH_WINDOW if request.is_english else size


def _is_value_edit(request: Request, noun_tag: str, *after: str) -> bool:
    """A changing verb at most 8 characters before the noun, or one of the tags `after` behind it."""
    window = _window(request, _WINDOW)
    verbs = request.with_tag("change", *after)
    for noun in request.with_tag(noun_tag) if verbs else ():
        for verb in verbs:
            if verb.clause == noun.clause + 1 and _opens_clause(request, verb) and not request.is_english:
                return True  # 标题有错字，改一下
            if verb.clause != noun.clause or verb is noun:
                continue
            if "change" in verb.tags and noun.start - verb.end >= 0 and _distance(request, verb, noun) <= window:
                return True
            if verb.start - noun.end >= 0 and _distance(request, noun, verb) <= window:
                return True
    return False


def _distance(request: Request, first: Token, second: Token) -> int:
    """Characters between two words; in Chinese an identifier between them counts for nothing."""
    between = second.start - first.end
    if request.is_english or between <= _WINDOW:
        return between
    inner = (token for token in request.tokens if first.end <= token.start and token.end <= second.start)
    return between - sum(len(token.word) for token in inner if "latin" in token.tags)


def _opens_clause(request: Request, verb: Token) -> bool:
    """Whether a change is the first thing that its clause says, and the clause changes nothing else."""
    start, end = request.clause_of(verb)
    is_plain = verb.tags & {"become", "adjust"} or not essence(request, verb.end, end)
    return bool(is_plain) and not essence(request, start, verb.start)


def _copy(request: Request) -> Found | None:
    if _is_value_edit(request, "copy", "become"):
        return Found("copy", VALUE)
    is_reworded = len(request.quotes) > 1 and re.search(_REWORDS, request.hidden)
    return Found("copy", VALUE) if is_reworded else None


# one quoted text becomes another: 「保存」改成「提交」
_REWORDS = (
    rf"(?i){HIDDEN}.\s?(?:改成|改为|换成|换为|改|换|替换成|替换为|变成|to|with|into|→|->)\s?[^\s{HIDDEN}]{HIDDEN}"
)


def _style(request: Request) -> Found | None:
    if _is_value_edit(request, "style", "become", "adjust"):
        return Found("style", VALUE)
    return None


def _constant(request: Request) -> Found | None:
    return Found("constant", VALUE) if _is_value_edit(request, "constant", "become") else None


def _rename(request: Request) -> Found | None:
    for verb in request.with_tag("rename-verb"):
        if request.is_english or request.spans or _has_name(request, verb) or has_quote(request):
            return Found("rename", VALUE)
    verbs = request.with_tag("rename")
    for noun in request.with_tag("rename-noun") if verbs else ():
        for verb in verbs:
            if (
                verb.clause == noun.clause
                and 0 <= verb.start - noun.end <= 40
                and _is_only_a_name(request, noun.end, verb.start)
            ):
                return Found("rename", VALUE)
    return None


def _has_name(request: Request, verb: Token) -> bool:
    return any(
        token.tags & {"rename-noun"} or token.tags == {"latin"}
        for token in request.within(*request.clause_of(verb))
    )


def _is_only_a_name(request: Request, start: int, end: int) -> bool:
    """Whether a piece of text holds Latin words, marks and 名, 的, 由, 从 alone."""
    left = request.text[start:end]
    for token in request.tokens:
        if start <= token.start and token.end <= end and "latin" in token.tags:
            left = left.replace(token.word, "")
    return not left.strip(" 名的由从统一都也全「」\"'`\u25a1")


def _tiny(request: Request) -> Found | None:
    return Found("tiny", VALUE) if request.has("tiny") else None


# --- containers


def _button(request: Request) -> Found | None:
    return _container(request, "button", "button")


def _button_attribute(request: Request) -> Found | None:
    for i, noun in enumerate(request.tokens):
        if "button" in noun.tags and (
            _follows_change(request, i) or _has_attribute(request, noun) or _precedes_change(request, noun)
        ):
            return Found("button-attr", ATTRIBUTE)
    return None


def _column(request: Request) -> Found | None:
    changed = _changed(request, "column") or _extended(request)
    if (
        changed is None
        and any(token.word == "列宽" for token in request.with_tag("add", "column"))
        and request.has("add")
    ):
        return Found("column", ATTRIBUTE)  # 加列宽: wider, not one more
    return changed or _container(request, "column", "column")


def _extended(request: Request) -> Found | None:
    """搜索项加上手机号: one more of a kind that stands before the verb, with its content behind it."""
    for noun in request.with_tag("column"):
        if "column-bare" in noun.tags or "attribute-column" in noun.tags or request.is_english:
            continue
        for verb in request.with_tag("add"):
            between = request.text[noun.end : verb.start] if noun.end <= verb.start else None
            if between not in ("", "里", "中", "里面", "上", "区") or verb.clause != noun.clause:
                continue
            _, end = request.clause_of(verb)
            is_other = any(verb.end <= token.start < end and token.tags & _THINGS for token in request.tokens)
            if not is_other and essence(request, verb.end, end):
                return Found("column", CONTAINER)
    return None


def _route(request: Request) -> Found | None:
    changed = _changed(request, "route")
    return changed or _container(request, "route", "route", "register")


def _changed(request: Request, key: str) -> Found | None:
    """An old column or menu that changes: its value is ours to decide."""
    for i, noun in enumerate(request.tokens):
        if key not in noun.tags:
            continue
        is_changed = _precedes_change(request, noun) or _its_attribute_changes(request, noun)
        if is_changed and "column-bare" not in noun.tags:
            return Found(key, ATTRIBUTE)
        if not _has_change_before(request, i, key):
            continue
        if "attribute-column" in noun.tags or _has_attribute(request, noun) or _ends_phrase(request, i):
            return Found(key, ATTRIBUTE)
    return None


def _has_change_before(request: Request, i: int, key: str) -> bool:
    if _follows_change(request, i):
        return True
    noun = request.tokens[i]
    return ("attribute-column" in noun.tags or key == "route") and any(
        "change" in verb.tags
        and verb.clause == noun.clause
        and 0 <= noun.start - verb.end <= _window(request, _CONTAINER_WINDOW)
        for verb in request.tokens
    )


def _follows_change(request: Request, i: int) -> bool:
    """Whether a changing verb stands directly before, with nothing but 一下, 个, 这, the between."""
    noun = request.tokens[i]
    end = noun.start
    for token in reversed(request.tokens[:i]):
        if token.clause != noun.clause or request.text[token.end : end].strip():
            return False
        if "change" in token.tags:
            return True
        if not token.tags & {"quantity", "courtesy"}:
            return False
        end = token.start
    return False


def _precedes_change(request: Request, noun: Token) -> bool:
    """排序改成倒序, 图标换一下: a change directly behind the noun."""
    return (
        any(
            token.start == noun.end and token.clause == noun.clause and token.tags & {"become", "change", "adjust"}
            for token in request.tokens
        )
        and not request.is_english
    )


def _its_attribute_changes(request: Request, noun: Token) -> bool:
    """菜单顺序调整一下: an attribute directly behind the noun, and a change directly behind that."""
    return any(
        token.start >= noun.end
        and request.text[noun.end : token.start] in ("", "的")
        and token.clause == noun.clause
        and _precedes_change(request, token)
        for token in request.with_tag("attribute")
    )


def _has_attribute(request: Request, noun: Token) -> bool:
    """Whether an attribute follows the noun, with 的 or nothing between, or in English stands beside it."""
    for token in request.with_tag("attribute"):
        if token.clause == noun.clause and token is not noun:
            between = request.text[noun.end : token.start]
            if token.start >= noun.end and between.strip() in ("", "的", "们的"):
                return True
            if request.is_english and 0 <= noun.start - token.end <= 12:
                return True
    return False


def _ends_phrase(request: Request, i: int) -> bool:
    """Whether nothing of weight follows the noun in its clause but a change and its value."""
    noun = request.tokens[i]
    _, end = request.clause_of(noun)
    following = request.tokens[i + 1] if i + 1 < len(request.tokens) else None
    if following and following.start == noun.end and following.tags & {"become", "rename", "adjust"}:
        return True
    return not essence(request, noun.end, end)


def _container(request: Request, family: str, noun_tag: str, *verb_tags: str) -> Found | None:
    """A thing to add or to remove: the earliest such verb of the clause that reaches the noun."""
    if noun_tag not in request.tags:
        return None
    best: Found | None = None
    for noun in request.with_tag(noun_tag):
        verb = _verb_before(request, noun, verb_tags) or _verb_behind(request, noun)
        if verb is None or request.is_negated(verb):
            continue
        found = _as_found(request, family, verb, noun)
        if found.has_content:
            return found
        best = best or found
    return best


def _as_found(request: Request, family: str, verb: Token, noun: Token) -> Found:
    deleting = "remove" in verb.tags
    words = request.written[min(verb.start, noun.start) : max(verb.end, noun.end)]
    if deleting:
        return Found(family, CONTAINER, True, says_which(request, verb, noun), words)
    if verb.start >= noun.end:  # 导出按钮加一个
        start, _ = request.clause_of(noun)
        named = has_quote(request) or bool(essence(request, max(start, noun.start - 8), noun.start))
        return Found(family, CONTAINER, False, named, words)
    return Found(family, CONTAINER, False, says_what(request, family, verb, noun), words)


def _verb_before(request: Request, noun: Token, verb_tags: tuple[str, ...]) -> Token | None:
    tags = {"add", "remove", *verb_tags}
    window = _window(request, _CONTAINER_WINDOW)
    for verb in request.within(noun.start - window - LONGEST, noun.start):
        if (
            verb.clause == noun.clause
            and verb.tags & tags
            and noun.start - verb.end <= window
            and not (_is_temporal(request, verb) or _is_label(request, verb))
        ):
            return verb
    return None


def _is_temporal(request: Request, verb: Token) -> bool:
    """删除后, 新增时: no order to remove or to add."""
    following = request.text[verb.end : verb.end + 2]
    return following[:1] in ("后", "时", "前", "之") and following not in _NOUNS_OF_TIME


_NOUNS_OF_TIME = frozenset({"时间", "时长", "时段", "时区", "时刻", "后台", "后端", "后续", "前端", "前台", "前置"})


def _is_label(request: Request, verb: Token) -> bool:
    """Whether a verb is part of a noun phrase: the 批量 or 的 before it shows that it names a thing."""
    before = request.text[max(0, verb.start - 2) : verb.start]
    return before == "批量" or (before[-1:] == "的" and "remove" in verb.tags)


def _verb_behind(request: Request, noun: Token) -> Token | None:
    """导出按钮去掉: a verb that closes the clause behind the noun."""
    if request.is_english:
        return None
    following = bisect_left(request.tokens, (noun.end,))
    for verb in request.tokens[following : following + _BEHIND]:
        if verb.clause != noun.clause or verb.start - noun.end > _BEHIND:
            return None
        if verb.tags & {"add", "remove"}:
            between = essence(request, noun.end, verb.start)
            rest = essence(request, verb.end, request.clause_of(verb)[1])
            return verb if not between and not rest else None
    return None


# --- create, read, update, delete of a field


def crud_signals(request: Request, inferred: Inferred) -> tuple[str, ...]:
    """The signals of a field edit that is complete: shape, field, and a component or a default value; () if not."""
    if not request.has("crud-noun") or inferred.field is None or not (inferred.component or inferred.default):
        return ()
    signals = ["L1:crud-shape"]
    if inferred.component:
        signals.append(f"L1:component:{inferred.component}")
    if inferred.default:
        signals.append("L1:default-value")
    return tuple(signals)
