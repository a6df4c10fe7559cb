"""Fingerprints: tokens with weights, of a requirement and of a template."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from gatekeeper.spec.lexicon import WordList, word_list
from gatekeeper.spec.model import Fingerprint, Query
from gatekeeper.spec.paths import FILE, PATH, ROUTE, Span, find_spans
from gatekeeper.spec.request import fold
from gatekeeper.spec.settings import MAX_FINGERPRINT_TOKENS, MAX_QUERY_GRAMS, MAX_TAGS, TIER_QUOTAS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gatekeeper.spec.model import Template

PATH_WEIGHT, TECHNICAL, IDENTIFIER, GRAM = 4, 3, 2, 1
FOLDER_WEIGHT = 3
GENERIC_BASE_WEIGHT = 1  # index.vue is in every project

_PIECE = re.compile(r"(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)|(?P<chinese>[\u3400-\u9fff\uf900-\ufaff]+)")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_WORD = 64
_QUOTED = re.compile(
    r"「([^「」\n]{1,200})」|『([^『』\n]{1,200})』|“([^“”\n]{1,200})”|\"([^\"\n]{1,200})\"|‘([^‘’\n]{1,200})’"
)
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")


class _Words(NamedTuple):
    technical: frozenset[str]
    by_first: dict[str, tuple[str, ...]]  # Chinese technical words, longest first
    stop_characters: frozenset[str]
    stop_words: frozenset[str]
    stop_latin: frozenset[str]
    protected: frozenset[str]
    content: frozenset[str]  # 2-grams that mean something for all their stop characters
    folders: frozenset[str]
    generic: frozenset[str]


@lru_cache(maxsize=8)
def _words(terms: WordList) -> _Words:
    stops = word_list("stops")
    by_first: dict[str, list[str]] = {}
    for word in terms.tags:
        if not word.isascii():
            by_first.setdefault(word[0], []).append(word)
    return _Words(
        frozenset(terms.tags),
        {first: tuple(sorted(found, key=lambda word: -len(word))) for first, found in by_first.items()},
        stops.of("stop-characters"), stops.of("stop-words"), stops.of("stop-latin"), stops.of("protected-grams"),
        stops.of("content-grams"),
        stops.of("standard-directories"), stops.of("generic-base-names"))  # fmt: skip


class _Collector:
    """Tokens in order of appearance; one that comes again keeps its larger weight and its first place."""

    __slots__ = ("paths", "weights")

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.paths: set[str] = set()

    def add(self, token: str, weight: float, *, is_path: bool = False) -> None:
        if weight > self.weights.get(token, 0):
            self.weights[token] = weight
        if is_path:
            self.paths.add(token)


def tokenize(text: str, terms: WordList | None = None) -> Fingerprint:
    """Every token of a text with its weight: path 4, technical word 3, identifier 2, Chinese 2-gram 1. Linear."""
    words = _words(terms or word_list("terms"))
    folded = fold(text)
    found = _Collector()
    last = 0
    for span in find_spans(folded):
        if span.kind in (PATH, FILE, ROUTE):
            _add_words(folded[last : span.start], words, found)
            _add_path(span, words, found)
            last = span.end
    _add_words(folded[last:], words, found)
    return Fingerprint(found.weights, frozenset(found.paths))


def _add_path(span: Span, words: _Words, found: _Collector) -> None:
    parts = [part for part in span.path.split("/") if part not in ("", ".", "..", "~")]
    if not parts:
        return
    base = parts[-1].lower()
    if len(parts) > 1:
        found.add("/".join(parts).lower(), PATH_WEIGHT, is_path=True)
    is_folder = span.path.endswith("/")
    for part in parts if is_folder else parts[:-1]:
        if part.lower() not in words.folders:
            found.add(part.lower(), FOLDER_WEIGHT, is_path=True)
    if is_folder:
        return
    if base in words.generic:
        found.add(base, GENERIC_BASE_WEIGHT, is_path=True)
        return
    found.add(base, PATH_WEIGHT, is_path=True)
    stem = parts[-1].rpartition(".")[0] or parts[-1]
    for part in split_identifier(stem):
        found.add(part, TECHNICAL if part in words.technical else IDENTIFIER)


def split_identifier(name: str) -> list[str]:
    """The lower-case parts of a camelCase, snake_case or kebab-case name; single characters fall."""
    return [part.lower() for part in _PART.findall(name) if len(part) > 1 and not part.isdigit()]


def _add_words(text: str, words: _Words, found: _Collector) -> None:
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "word":
            _add_latin(piece[0], words, found)
        else:
            _add_chinese(piece[0], words, found)


def _add_latin(word: str, words: _Words, found: _Collector) -> None:
    """The word whole, then its parts."""
    if len(word) > _MAX_WORD:
        word = word[:_MAX_WORD]
    whole = word.lower()
    if whole in words.stop_latin:
        return
    found.add(whole, TECHNICAL if whole in words.technical else IDENTIFIER)
    parts = split_identifier(word) if "_" in word or "-" in word or _CAMEL.search(word) else ()
    for part in parts:
        if part != whole:
            found.add(part, TECHNICAL if part in words.technical else IDENTIFIER)


def _add_chinese(run: str, words: _Words, found: _Collector) -> None:
    """Technical words, the longest first; what is left between them as 2-grams."""
    i = rest = 0
    while i < len(run):
        for word in words.by_first.get(run[i], ()):
            if run.startswith(word, i):
                _add_grams(run[rest:i], words, found)
                found.add(word, TECHNICAL)
                i += len(word)
                rest = i
                break
        else:
            i += 1
    _add_grams(run[rest:], words, found)


def _add_grams(run: str, words: _Words, found: _Collector) -> None:
    for i in range(len(run) - 1):
        gram = run[i : i + 2]
        if gram in words.protected:
            found.add(gram, TECHNICAL)
        elif gram in words.content or not (
            gram[0] in words.stop_characters or gram[1] in words.stop_characters or gram in words.stop_words
        ):
            found.add(gram, GRAM)


def is_gram(token: str, weight: float) -> bool:
    """Whether a token is a Chinese 2-gram that no list knows."""
    return weight == GRAM and len(token) == 2 and not token.isascii()


# --- the two sides


def query_fingerprint(text: str, terms: WordList | None = None) -> Query:
    """The fingerprint of a prepared requirement: all strong tokens, the first 16 2-grams in order of appearance."""
    tokens = tokenize(text, terms)
    kept: dict[str, float] = {}
    n_grams = 0
    for token, weight in tokens.weights.items():
        if is_gram(token, weight):
            n_grams += 1
            if n_grams > MAX_QUERY_GRAMS:
                continue
        kept[token] = weight
    return Query(kept, tokens.paths & kept.keys(), infer_tags(text, terms), infer_category(text))


def template_fingerprint(
    template: Template, *, topic_only: bool = False, cap: int = MAX_FINGERPRINT_TOKENS, terms: WordList | None = None
) -> Fingerprint:
    """The fingerprint of a template: quoted wording, name, tags, trigger, approach, in this order, `cap` tokens.

    Each tier has its quota; unused places roll on. topic_only: name and tags alone, for project templates.
    """
    quoted = quoted_phrases(template.trigger)
    tiers = [(TIER_QUOTAS[1], [template.name]), (TIER_QUOTAS[2], [" ".join(template.tags)])]
    if not topic_only:
        tiers = [
            (TIER_QUOTAS[0], quoted),
            *tiers,
            (TIER_QUOTAS[3], [_QUOTED.sub(" ", template.trigger)]),
            (cap, list(template.approach)),
        ]
    weights: dict[str, float] = {}
    paths: set[str] = set()
    room = 0
    for quota, texts in tiers:
        room += quota
        for token, weight, is_path in _tokens_of(texts, terms):
            if token in weights:
                weights[token] = max(weight, weights[token])
            elif room and len(weights) < cap:
                room -= 1
                weights[token] = weight
                if is_path:
                    paths.add(token)
    return Fingerprint(weights, frozenset(paths))


def quoted_phrases(text: str) -> list[str]:
    """The phrases that a text quotes: in a trigger, the user's own wording."""
    return ["".join(groups) for groups in _QUOTED.findall(text)]


def _tokens_of(texts: Iterable[str], terms: WordList | None) -> Iterator[tuple[str, float, bool]]:
    for text in texts:
        found = tokenize(text, terms)
        for token, weight in found.weights.items():
            yield token, weight, token in found.paths


@lru_cache(maxsize=1)
def _generic_names() -> frozenset[str]:
    return word_list("stops").of("generic-base-names")


def damp_generic(fingerprint: Fingerprint) -> Fingerprint:
    """The fingerprint with weight 1 for generic base names, which older generators gave the weight of a path.

    The same object if there is nothing to damp; a copy otherwise.
    """
    generic = [
        name
        for name in _generic_names() & fingerprint.weights.keys()
        if fingerprint.weights[name] > GENERIC_BASE_WEIGHT
    ]
    if not generic:
        return fingerprint
    return Fingerprint({**fingerprint.weights, **dict.fromkeys(generic, GENERIC_BASE_WEIGHT)}, fingerprint.paths)


# --- tags and category


def infer_tags(text: str, terms: WordList | None = None) -> tuple[str, ...]:
    """The best 8 tags of a text, by priority, then by name."""
    words = _words(terms or word_list("terms"))
    folded = fold(text)
    priorities: dict[str, int] = {}

    def add(tag: str, priority: int) -> None:
        if len(tag) > 1:
            priorities[tag] = max(priority, priorities.get(tag, 0))

    last, texts = 0, []
    for span in find_spans(folded):
        if span.kind not in (PATH, FILE, ROUTE):
            continue
        texts.append(folded[last : span.start])
        last = span.end
        _add_path_tags(span, words, add)
    texts.append(folded[last:])
    for piece in _PIECE.finditer(" ".join(texts)):
        if piece.lastgroup == "word":
            _add_word_tags(piece[0][:_MAX_WORD], words, add)
        else:
            found = _Collector()
            _add_chinese(piece[0], words, found)
            for token in found.weights:
                if token in words.technical:
                    add(token, 4)
    return tuple(sorted(priorities, key=lambda tag: (-priorities[tag], tag))[:MAX_TAGS])


def _add_path_tags(span: Span, words: _Words, add: _AddTag) -> None:
    parts = [part for part in span.path.lower().split("/") if part not in ("", ".", "..", "~")]
    for part in parts[:-1]:
        if part not in words.folders:
            add(part, 3)
    if parts and parts[-1] not in words.generic:
        add(parts[-1].rpartition(".")[0] or parts[-1], 4)


def _add_word_tags(word: str, words: _Words, add: _AddTag) -> None:
    whole = word.lower()
    if "-" in word:
        add(whole, 5)
        for part in split_identifier(word):
            add(part, 2)
    elif _CAMEL.search(word):
        add(whole, 3)
        for part in split_identifier(word):
            add(part, 2)
    if whole in words.technical:
        add(whole, 4)


_DEFECT = re.compile(
    r"报错|异常|崩溃|失败|警告|不生效|无法|不能|出错|堆栈|白屏|(?<![a-z])(?:error|exception|warning|bug|"
    r"stack trace|crash(?:es)?|fails?|broken)(?![a-z])",
    re.IGNORECASE,
)
_ADDING = re.compile(r"(?:加|新增|增加|添加|支持|优化|实现|add|support|show)[^,，。;；\n]{0,12}$", re.IGNORECASE)
_CATEGORIES = (
    ("refactor", re.compile(r"重构|重写|迁移|改造|拆分|抽离|(?<![a-z])(?:refactor|migrate)", re.IGNORECASE)),
    ("frontend", re.compile(r"小程序|页面|组件|表单|弹窗|列表|表格|样式|布局|路由|菜单|按钮|图标|"
                            r"\.(?:vue|tsx|jsx|css|scss|less|wxml|wxss)\b|"
                            r"(?<![a-z])(?:vue|react|angular|props|emit|button|page|component|css)(?![a-z])",
                            re.IGNORECASE | re.ASCII)),
    ("feature", re.compile(r"接口|新增|添加|创建|查询|分页|导出|导入|字段|controller|service|mapper|repository|"
                           r"(?<![a-z])(?:api|dao|entity|dto|add|create|export|import)(?![a-z])", re.IGNORECASE)),
)  # fmt: skip


def infer_category(text: str) -> str:
    """bugfix, refactor, frontend or feature; "" when unsure. A defect that is not the thing to add wins."""
    text = fold(text)
    for match in _DEFECT.finditer(text):
        if not _ADDING.search(text, max(0, match.start() - 20), match.start()):
            return "bugfix"
    return next((name for name, pattern in _CATEGORIES if pattern.search(text)), "")


if TYPE_CHECKING:
    from collections.abc import Callable

    _AddTag = Callable[[str, int], None]
