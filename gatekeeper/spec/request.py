"""A requirement as the grader reads it: without paths, with quotes set apart, cut into tagged words and clauses."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

from gatekeeper.lexicon import traditional_pairs
from gatekeeper.spec.lexicon import WordList, word_list
from gatekeeper.spec.paths import FILE, PATH, Span, find_spans

MAX_READ = 4000  # a longer text is read at its head and its tail: the task stands there, not in what was pasted

LONGEST = 32  # characters of the longest word of the lists

_HALF_WIDTH = {**{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}, 0x3000: 32}
_LOWER = {**{code: code + 32 for code in range(65, 91)}, 0x2019: 39}
_QUOTED = re.compile(
    r"「[^」\n]{1,200}」|『[^』\n]{1,200}』|“[^”\n]{1,200}”|‘[^’\n]{1,200}’|\"[^\"\n]{1,200}\""
    r"|(?<![A-Za-z0-9])'[^'\n]{1,200}'(?![A-Za-z0-9])"
)
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:['’\-][A-Za-z0-9_]+)*")
_BLANKS = re.compile(r"\s+")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_CLAUSE_ENDS = frozenset(",;!?。\n…")
HIDDEN = "\u25a1"  # stands for each quoted character


class Token(NamedTuple):
    """A known word, or a Latin one, with its tags; clause counts from 0."""

    start: int
    end: int
    word: str
    tags: frozenset[str]
    clause: int


def fold(text: str) -> str:
    """Full-width letters, digits and marks to half width, traditional characters to simplified, place by place."""
    return text if text.isascii() else text.translate(_folding())


@lru_cache(maxsize=1)
def _folding() -> dict[int, int]:
    traditional, simplified = traditional_pairs()
    table = dict(zip(map(ord, traditional), map(ord, simplified), strict=True))
    return _HALF_WIDTH | {ord(pair[0]): ord(pair[1]) for pair in word_list("stops").sections["folded"]} | table


class Request:
    """What the rules of grading look at.

    text: folded, paths and mentions replaced by a blank, blanks collapsed. hidden: the same with quoted characters
    replaced; rules read this one. written: `text` before traditional characters were folded, to show; a place of one
    is the same place of the others. tokens: words of `hidden`, in order. quotes: quoted texts of 1 to 24 characters.
    spans: what names files and places.
    """

    __slots__ = ("clause_bounds", "hidden", "is_english", "quotes", "spans", "tags", "text", "tokens", "written")

    def __init__(self, raw: str, words: WordList | None = None) -> None:
        if len(raw) > MAX_READ:
            raw = raw[: MAX_READ // 2] + "\n" + raw[-MAX_READ // 2 :]
        half_width = raw.translate(_HALF_WIDTH)
        self.spans = find_spans(half_width)
        self.written = _BLANKS.sub(_one_blank, _without(half_width, self.spans)).strip()
        self.text = fold(self.written)
        quoted = [match for match in _QUOTED.finditer(self.text) if match[0][1:-1].strip()]
        self.quotes = tuple(self.written[m.start() + 1 : m.end() - 1] for m in quoted if len(m[0]) <= 26)
        self.hidden = _hide(self.text, quoted) if quoted else self.text
        self.is_english = not _CJK.search(self.text)
        self.tokens, self.clause_bounds = _cut(self.hidden, _lexer(words or word_list("grading")))
        self.tags = frozenset().union(*[token.tags for token in self.tokens])

    @property
    def length(self) -> int:
        """Characters without paths and mentions."""
        return len(self.text)

    @property
    def file(self) -> str | None:
        """The first file that is named, a path with a folder first."""
        for kind in (PATH, FILE):
            for span in self.spans:
                if span.kind == kind:
                    return span.path
        return None

    @property
    def has_path(self) -> bool:
        return any(span.kind in (PATH, FILE) for span in self.spans)

    def with_tag(self, *tags: str) -> list[Token]:
        """The tokens that have one of the tags."""
        if self.tags.isdisjoint(tags):
            return []
        return [token for token in self.tokens if not token.tags.isdisjoint(tags)]

    def has(self, *tags: str) -> bool:
        return not self.tags.isdisjoint(tags)

    def clause_of(self, token: Token) -> tuple[int, int]:
        """Where the clause of a token starts and ends."""
        return self.clause_bounds[token.clause]

    def within(self, start: int, end: int) -> list[Token]:
        """The tokens that lie between two places, in order."""
        first, last = bisect_left(self.tokens, (start,)), bisect_left(self.tokens, (end,))
        return [token for token in self.tokens[first:last] if token.end <= end]

    def is_negated(self, token: Token, reach: int = 4) -> bool:
        """Whether a negating word stands in the same clause, at most `reach` characters (four English words) before."""
        reach = 30 if self.is_english else reach
        return any(
            "negation" in other.tags and other.clause == token.clause and token.start - other.end <= reach
            for other in self.within(token.start - reach - LONGEST, token.start)
        )


def _one_blank(match: re.Match[str]) -> str:
    return "\n" if "\n" in match[0] else " "


def _without(text: str, spans: list[Span]) -> str:
    """The text with a blank for each file, folder, address and mention."""
    parts, last = [], 0
    for span in spans:
        parts += [text[last : span.start], " "]
        last = span.end
    return "".join([*parts, text[last:]])


def _hide(text: str, quoted: list[re.Match[str]]) -> str:
    parts, last = [], 0
    for match in quoted:
        parts += [text[last : match.start() + 1], HIDDEN * (len(match[0]) - 2), match[0][-1]]
        last = match.end()
    return "".join([*parts, text[last:]])


class _Lexer(NamedTuple):
    tags: dict[str, frozenset[str]]
    lengths: dict[str, tuple[int, ...]]  # of Chinese words by their first character, longest first
    phrases: dict[str, tuple[str, ...]]  # Latin ones of several words, by their first letter, longest first


@lru_cache(maxsize=8)
def _lexer(words: WordList) -> _Lexer:
    lengths: dict[str, set[int]] = {}
    phrases: dict[str, list[str]] = {}
    for word in words.tags:
        if not word.isascii():
            lengths.setdefault(word[0], set()).add(len(word))
        elif " " in word or "-" in word:
            phrases.setdefault(word[0], []).append(word)
    return _Lexer(
        words.tags,
        {first: tuple(sorted(found, reverse=True)) for first, found in lengths.items()},
        {first: tuple(sorted(found, key=len, reverse=True)) for first, found in phrases.items()},
    )


_DDL = frozenset({"ddl", "ddl-column"})
TABLE_TAIL = frozenset("单格头尾示现明演决情面率白达盘针带记稿述扬层哥姐弟妹彰征态")  # what makes of 表 no table


def _is_ui(low: str, start: int, place: int, word: str, lexer: _Lexer) -> bool:
    """Whether a word of tables speaks of a screen: its last character begins another word (加列宽, 新增表单), or the
    clause that starts at `start` names a screen before it (表格加列)."""
    last = place + len(word) - 1
    if word[-1] == "表" and low[last + 1 : last + 2] in TABLE_TAIL:
        return True
    longer = (low[last : last + size] for size in lexer.lengths.get(low[last], ()))
    if any(len(other) > 1 and other in lexer.tags for other in longer):
        return True
    before = low[start:place]
    return word[-1] == "列" and ("表格" in before or "列表" in before or "页" in before)


_LATIN: frozenset[str] = frozenset({"latin"})


def _cut(text: str, lexer: _Lexer) -> tuple[list[Token], list[tuple[int, int]]]:
    """The words of a text, longest first at each place, and the bounds of its clauses."""
    low = text.translate(_LOWER)
    tokens: list[Token] = []
    bounds: list[tuple[int, int]] = []
    tags_of, lengths, _ = lexer
    i = start = 0
    n = len(text)
    while i < n:
        character = low[i]
        if "a" <= character <= "z" or character == "_" or character == "$":
            i = _latin(text, low, i, lexer, tokens, len(bounds))
            continue
        if character in lengths:
            for size in lengths[character]:
                word = low[i : i + size]
                tags = tags_of.get(word)
                if tags and not (tags & _DDL and _is_ui(low, start, i, word, lexer)):
                    tokens.append(Token(i, i + len(word), word, tags, len(bounds)))
                    i += len(word) - 1
                    break
        elif character in _CLAUSE_ENDS or (character == "." and (i + 1 == n or low[i + 1] in " \n")):
            bounds.append((start, i))
            start = i + 1
        i += 1
    bounds.append((start, n))
    return tokens, bounds


def _latin(text: str, low: str, i: int, lexer: _Lexer, tokens: list[Token], clause: int) -> int:
    """Add the phrase or the word that starts here; return where it ends."""
    match = _WORD.match(text, i)
    end = match.end() if match else i + 1
    for phrase in lexer.phrases.get(low[i], ()):
        if low.startswith(phrase, i):
            after = i + len(phrase)
            if after >= end and (after == len(low) or not ("a" <= low[after] <= "z" or low[after].isdigit())):
                tokens.append(Token(i, after, phrase, lexer.tags[phrase] | _LATIN, clause))
                return after
    word = low[i:end]
    tokens.append(Token(i, end, text[i:end], lexer.tags.get(word, _LATIN) | _LATIN, clause))
    return end
