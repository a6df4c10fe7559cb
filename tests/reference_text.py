"""What docs/algorithm.md says of characters, anchors and sentences, in plain and slow Python."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from gatekeeper import lexicon

# --- characters

FULL_WIDTH = {"\u3000": " ", **{chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)}}
SIMPLIFIED = dict(zip(*lexicon.traditional_pairs(), strict=True))
CJK_RANGES = (
    (0x1100, 0x11FF), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029), (0x3041, 0x3096), (0x309D, 0x309F),
    (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3131, 0x318E), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB), (0xF900, 0xFAFF), (0xFF66, 0xFFDC),
)  # fmt: skip
MARKS = frozenset(chr(c) for first, last in lexicon.mark_ranges() for c in range(first, last + 1))
CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "《": "》"}
WORD = "lud_m"  # letter, upper, digit, underscore, mark


@cache
def fold_character(character: str) -> str:
    character = FULL_WIDTH.get(character, character).lower()[0]
    return SIMPLIFIED.get(character, character)


@cache
def class_of(character: str) -> str:
    """One letter: l(etter), u(pper), d(igit), _, m(ark), c(jk), s(pace), q(uote), o(ther)."""
    folded, point = fold_character(character), ord(character)
    if folded == "_":
        return "_"
    if folded in CLOSERS:
        return "q"
    if character in MARKS:
        return "m"
    if 0x20000 <= point <= 0x3FFFF:
        return "c"
    if character.isspace():
        return "s"
    if not character.isalnum():
        return "o"
    if character.isupper():
        return "u"
    if character.isdecimal():
        return "d"
    return "c" if any(first <= point <= last for first, last in CJK_RANGES) else "l"


@lru_cache(maxsize=4096)
def fold(text: str) -> str:
    return "".join(map(fold_character, text))


def classes_of(text: str) -> str:
    return "".join(map(class_of, text))


def collapse(text: str) -> str:
    return " ".join(fold(text).split())


def is_ngram(anchor: str) -> bool:
    return len(anchor) <= 3 and set(classes_of(anchor)) == {"c"}


# --- words

QUESTIONS = lexicon.question_words()
STOP_WORDS = {*lexicon.english_words(), *(word for word in QUESTIONS if word.isascii())}
RUN = "[lud_][lud_m]*"
TOKEN = re.compile(f"(?P<word>{RUN}(?:[.-]{RUN})*)|(?P<cjk>c+)|(?P<quote>q)")
CUT = re.compile("_|(?<=[ld])(?=u)|(?<=u)(?=ul)")  # between the parts of an identifier


class Text:
    """A text with its folded form and the classes of its characters; . and - stand for themselves in `classes`."""

    def __init__(self, text: str) -> None:
        self.folded = fold(text)
        self.classes = "".join(fold(c) if fold(c) in (".", "-") else class_of(c) for c in text)

    def is_word(self, position: int) -> bool:
        return 0 <= position < len(self.classes) and self.classes[position] in WORD

    def is_letter(self, position: int) -> bool:
        """A word character that is no digit."""
        return self.is_word(position) and self.classes[position] != "d"

    def cut(self, pattern: str, start: int, end: int) -> list[tuple[int, int]]:
        """The spans that are left of [start, end) when it is cut where a pattern matches the classes."""
        cuts = [m.span() for m in re.finditer(pattern, self.classes[start:end])]
        starts = [start, *(start + last for _, last in cuts)]
        ends = [*(start + first for first, _ in cuts), end]
        return list(zip(starts, ends, strict=True))

    def emit(self, start: int, end: int) -> list[tuple[str, int]]:
        word = self.folded[start:end]
        return [(word, start)] if 2 <= len(word) <= 255 and word not in STOP_WORDS else []

    def run(self, start: int, end: int) -> list[tuple[str, int]]:
        """Rules 1 and 2: the run, then its parts if there are several."""
        parts = self.cut(CUT.pattern, start, end)
        found = self.emit(start, end)
        for part in parts if len(parts) > 1 else []:
            found += self.emit(*part)
        return found

    def path(self, start: int, end: int) -> list[tuple[str, int]]:
        """Rule 3."""
        runs = self.cut(r"\.", start, end)
        if len(runs) == 1:
            return self.run(start, end)
        found = self.emit(start, end)
        if re.fullmatch(r"v?[0-9.]+", self.folded[start:end]) and not self.folded.startswith("v.", start):
            return found + (self.emit(*runs[0]) if self.folded[start] == "v" else [])
        for run in runs:
            found += self.run(*run)
        return found

    def word(self, start: int, end: int) -> list[tuple[str, int]]:
        """Rules 1 to 5."""
        if end - start == 1:
            return self.name(start)
        stretches = self.cut("-", start, end)
        found = self.emit(start, end) if len(stretches) > 1 else []
        for stretch in stretches:
            found += self.path(*stretch)
        return found

    def name(self, at: int) -> list[tuple[str, int]]:
        """Rule 5: a run of one character."""
        letter = self.folded[at]
        sign = re.match(r"[a-z]#|[cg]\+\+", self.folded[at : at + 3])
        if sign and not self.is_letter(at + sign.end()):
            return [(sign[0], at)]
        joined_before = self.folded[max(at - 1, 0) : at] in ("'", "’") and self.is_word(at - 2)
        joined_behind = self.folded[at + 1 : at + 2] in ("'", "’") and self.is_word(at + 2)
        is_name = self.classes[at] == "u" and letter in "bcdefghjklmnopqrstuvwxyz"
        return [(letter, at)] if is_name and not joined_before and not joined_behind else []

    def is_dot_net(self, at: int) -> bool:
        return self.folded[at : at + 4] == ".net" and not self.is_word(at - 1) and not self.is_letter(at + 4)


# --- CJK n-grams

FUNCTION_CHARACTERS = frozenset(lexicon.chinese_function_characters())
PROTECTED = frozenset(lexicon.protected_words())
BREAKING = frozenset([*lexicon.empty_words(), *(word for word in QUESTIONS if not word.isascii())])


def segments_of_run(folded: str, start: int, end: int) -> list[tuple[int, int]]:
    """The segments of the CJK run [start, end), as spans."""
    is_content = []
    at = start
    while at < end:
        words = [folded[at : at + length] for length in (4, 3, 2) if at + length <= end]
        entry = next((word for word in words if word in PROTECTED or word in BREAKING), folded[at])
        breaks = entry not in PROTECTED and (entry in BREAKING or entry in FUNCTION_CHARACTERS)
        is_content += [not breaks] * len(entry)
        at += len(entry)
    content = "".join("x" if content else " " for content in is_content)
    return [(start + m.start(), start + m.end()) for m in re.finditer("x+", content)]


def segments(text: str) -> list[str]:
    folded = fold(text)
    runs = re.finditer("c+", classes_of(text))
    return [folded[a:b] for run in runs for a, b in segments_of_run(folded, *run.span())]


def ngrams(folded: str, start: int, end: int) -> list[tuple[str, int]]:
    if end - start == 1:
        return [(folded[start], start)]
    grams = [(last - n, last) for last in range(start + 2, end + 1) for n in (3, 2) if last - n >= start]
    return [(folded[first:last], first) for first, last in grams]


# --- quoted phrases


def phrase_at(text: Text, at: int, closed: dict[str, int]) -> list[tuple[str, int]]:
    """The phrase that the quote at `at` opens. closed: where the last phrase of each symmetric quote was closed."""
    opener = text.folded[at]
    closer = CLOSERS[opener]
    if opener == closer and (text.is_word(at - 1) or at <= closed.get(opener, -1)):
        return []
    line = text.folded[at + 1 : at + 66].partition("\n")[0]
    ends = [at + 1 + i for i, c in enumerate(line) if c == closer]
    if closer in "'’":
        ends = [end for end in ends if not text.is_word(end + 1)]
    if not ends:
        return []
    closed[opener] = ends[0]
    content = text.folded[at + 1 : ends[0]]
    has_content = any(c in WORD or c == "c" for c in text.classes[at + 1 : ends[0]])
    phrase = " ".join(content.split())
    return [(phrase, at)] if len(phrase) >= 2 and has_content else []


# --- all of it


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[tuple[str, int, bool], ...]:
    """(anchor, where it begins, whether a quotation gave it), in order of emission."""
    whole = Text(text)
    found: list[tuple[str, int, bool]] = []
    closed: dict[str, int] = {}
    at = 0
    while at < len(text):
        match = TOKEN.match(whole.classes, at)
        if whole.is_dot_net(at):
            found.append((".net", at, False))
            at += 4
        elif match is None:
            at += 1
        elif match.lastgroup == "quote":
            found += [(phrase, start, True) for phrase, start in phrase_at(whole, at, closed)]
            at += 1
        else:
            if match.lastgroup == "word":
                anchors = whole.word(*match.span())
            else:
                spans = segments_of_run(whole.folded, *match.span())
                anchors = [gram for span in spans for gram in ngrams(whole.folded, *span)]
            found += [(anchor, start, False) for anchor, start in anchors]
            at = match.end()
    return tuple(found)


def anchors(text: str) -> list[tuple[str, int]]:
    return [(anchor, start) for anchor, start, _ in tokens(text)]


# --- sentences

BLANKS = r"[ \t\r]*"
BREAK = re.compile(rf"{BLANKS}(?:\n(?:{BLANKS}\n)*)?")  # what stays with the sentence before it
MARKERS = r"(?:[ \t\r>]|(?:[-*+]|[0-9]+[.)])(?=[ \t]))*"  # of list items and quotations
OPENING_FENCE = re.compile(rf"{MARKERS}(?:(?P<ticks>`{{3,}})[^`\n]*|(?P<tildes>~{{3,}})[^\n]*)(?:\n|$)")
IN_URL = "!#-;=?-_a-~"  # visible ASCII without " < > `
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`{1,8})(?!`).*?(?<!`)(?P=ticks)(?!`))|`+"
    rf"|(?P<url>(?<=[A-Za-z])://(?:[{IN_URL}]*(?![.,!?;:)'\]])[{IN_URL}])?)"
    r"|(?P<end>[。！？；!?][。！？；!?\"')\]”’」』）】》]*|\.(?=[ \t]))"
    r"|."
)


@lru_cache(maxsize=4096)
def sentence_ends(text: str) -> tuple[int, ...]:
    bounds = []
    at = 0
    while at < len(text):  # a line at a time
        line_end = text.find("\n", at) if "\n" in text[at:] else len(text)
        fence = OPENING_FENCE.match(text, at)
        if fence:
            mark = fence["ticks"] or fence["tildes"]
            closing = re.compile(rf"^[ \t\r>]*{mark}{mark[0]}*{BLANKS}(?:\n|\Z)", re.MULTILINE)
            closed = closing.search(text, fence.end())
            at = re.compile(rf"(?:{BLANKS}\n)*").match(text, closed.end()).end() if closed else len(text)
            bounds.append(at)
            continue
        for match in INLINE.finditer(text[at:line_end]):
            before = text[at : at + match.start()]
            is_list_number = match["end"] == "." and re.fullmatch(rf"{BLANKS}[0-9]+", before)
            if match["end"] and not is_list_number:
                bounds.append(BREAK.match(text, at + match.end()).end())
        at = BREAK.match(text, line_end).end()
        bounds.append(at)
    ends: list[int] = []
    for bound in sorted({*bounds, len(text)} - {0}):
        is_blank = not text[ends[-1] if ends else 0 : bound].strip(" \t\r\n")
        if is_blank and ends:
            ends[-1] = bound
        elif not is_blank or bound == len(text):
            ends.append(bound)
    return tuple(ends)


def sentences(text: str) -> list[str]:
    ends = sentence_ends(text)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
