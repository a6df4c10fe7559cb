"""A requirement without pasted noise: code, stack traces, JSON, dependency paths and hashes go; the words stay."""

from __future__ import annotations

import re
from functools import lru_cache

from gatekeeper.errors import require_text
from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.model import Prepared
from gatekeeper.spec.paths import find_spans
from gatekeeper.spec.request import fold
from gatekeeper.spec.settings import (
    MAX_BACKFILLED_FIELDS,
    MAX_PREPARED_LENGTH,
    MIN_EFFECTIVE_LENGTH,
    MIN_EFFECTIVE_LENGTH_WITH_IMAGE,
    MIN_HEX_LENGTH,
    MIN_JSON_LENGTH,
)

_FENCE = re.compile(r"`{3,}|^~{3,}", re.MULTILINE)
_CODE_LINE = re.compile(r"[;{}()=<>\[\]]|^\s*(?:import|from|return|def|class|const|let|var|if|for|#|//|\$)\b")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")

_FRAME = re.compile(
    r"\s*at\s.*(?::\d+\)?|:line \d+|\((?:native(?: code)?|index \d+|<anonymous>|Unknown Source|Native Method)\))\s*$"
)
_MORE = re.compile(r"\s*\.\.\. \d+ (?:more|common frames omitted)\s*$")
_PYTHON_FRAME = re.compile(r"\s*File \"[^\"\n]*\", line \d+")
_TRACEBACK = re.compile(
    r"\s*(?:Traceback \(most recent call last\):|During handling of the above exception.*"
    r"|The above exception was the direct cause.*)\s*$"
)
_PYTHON_FRAME_WITHIN = re.compile(r"\bFile \"[^\"\n]{1,300}\", line \d+(?:, in [\w<>.]+)?")
_MARKS = re.compile(r"\s*[~^]+\s*$")
_FRAME_WITHIN = re.compile(r"(?<!\s)\s+at\s[\w.$<>\[\] ]{1,80}\([^()\s]{1,300}:\d+\)")

_RUN = re.compile(r"[A-Za-z0-9_.@~+\-/\\:#?&=%$]{2,}")
_EMPTY = re.compile(r"\([ \t]*\)|``(?!`)")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])")
_HEX = re.compile(rf"(?<![0-9A-Za-z_#])[0-9a-fA-F]{{{MIN_HEX_LENGTH},}}(?![0-9A-Za-z_])")
_DIGIT = re.compile(r"[0-9]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$-]{0,63}", re.ASCII)
_NAME = re.compile(r"[\w$.-]{1,64}")
_CUT = " … "

_IMAGE = re.compile(
    r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|\[(?:image|图片|图像|截图|img)[^\]\n]{0,80}\]", re.IGNORECASE
)
_CALLED = re.compile(r"@[\u3400-\u9fff]{1,8}(?=[\s,;:!?。、]|$)")  # a person by a Chinese name
_EFFECTIVE = re.compile(r"[A-Za-z0-9\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def prepare(raw: str) -> Prepared:
    """Clean the complete text first, truncate last; plain text stays as it is. Idempotent, linear, never fails.

    Raises ArgumentTypeError for what is no str.
    """
    require_text("raw", raw)
    removed = dict.fromkeys(("code", "stack", "json", "hex", "path"), 0)
    fields: dict[str, None] = {}
    text = raw
    for _ in range(_MAX_PASSES):
        cleaned, found = _clean(text, removed)
        cleaned = _truncate(" ".join([cleaned, *found]).strip())
        if cleaned == text:
            break
        text = cleaned
        fields.update(dict.fromkeys(found))
    return Prepared(text, tuple(fields)[:MAX_BACKFILLED_FIELDS], removed)


_MAX_PASSES = 8  # what is taken out may leave a piece behind that a second look takes out; one is the rule


def _clean(text: str, removed: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    """One pass over the complete text: what is left, and the keys of the JSON that went."""
    before = removed["path"] + removed["json"]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _strip_code(text, removed)
    text = _strip_stack(text, removed)
    text = _strip_internal_paths(text, removed)
    text = _strip_hex(text, removed)
    text, fields = _strip_json(text, removed)
    if removed["path"] + removed["json"] > before:
        text = _EMPTY.sub(" ", text)
    return _collapse(text), fields


def should_skip_matching(raw: str, has_image: bool = False) -> bool:
    """Whether a text says too little to look for templates: under 6 effective characters, under 15 with an image.

    Effective are CJK characters, ASCII letters and digits outside image marks, mentions, addresses and paths.
    """
    n_effective, shows_image = effective_length(raw)
    least = MIN_EFFECTIVE_LENGTH_WITH_IMAGE if has_image or shows_image else MIN_EFFECTIVE_LENGTH
    return n_effective < least


def effective_length(raw: str) -> tuple[int, bool]:
    """How many effective characters a text has, and whether it shows an image."""
    require_text("raw", raw)
    text = fold(raw)
    without, n_images = _IMAGE.subn(" ", text)
    without = _CALLED.sub(" ", without)
    suffixes = tuple("." + suffix for suffix in word_list("stops").of("image-suffixes"))
    spans = find_spans(without)
    shows_image = n_images > 0 or "截图" in text or any(span.path.lower().endswith(suffixes) for span in spans)
    parts, last = [], 0
    for span in spans:
        parts.append(without[last : span.start])
        last = span.end
    return len(_EFFECTIVE.findall("".join([*parts, without[last:]]))), shows_image


def _collapse(text: str) -> str:
    """One blank for several, no blank lines, nothing at the ends."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join([line for line in lines if line])


def _truncate(text: str) -> str:
    """Head and tail: the task often comes last."""
    if len(text) <= MAX_PREPARED_LENGTH:
        return text
    room = MAX_PREPARED_LENGTH - len(_CUT)
    return text[: room // 2].rstrip() + _CUT + text[-(room - room // 2) :].lstrip()


# --- code and stack traces


def _strip_code(text: str, removed: dict[str, int]) -> str:
    """Fences and what stands between them; a fence that nothing closes only if code follows."""
    fences = list(_FENCE.finditer(text))
    kept, last, i = [], 0, 0
    while i < len(fences):
        opening = fences[i]
        closing = _closing_fence(fences, i)
        if closing is None and not _looks_like_code(text[opening.end() :]):
            break
        kept.append(text[last : opening.start()])
        last = len(text) if closing is None else fences[closing].end()
        i = len(fences) if closing is None else closing + 1
        removed["code"] += 1
    kept.append(text[last:])
    return "\n".join(kept)


def _closing_fence(fences: list[re.Match[str]], i: int) -> int | None:
    """The fence that closes fence i: the next of its character that is as long, or else the next of it at all."""
    opening = fences[i][0]
    shorter = None
    for j in range(i + 1, len(fences)):
        if fences[j][0][0] == opening[0]:
            if len(fences[j][0]) >= len(opening):
                return j
            shorter = shorter or j
    return shorter


def _looks_like_code(text: str) -> bool:
    """Whether most lines behind a fence are code: no Chinese sentence, and marks of code."""
    lines = [line for line in text.split("\n")[1:] if line.strip()]
    if not lines:
        return not _CJK.search(text)
    n_code = sum(1 for line in lines if _CODE_LINE.search(line) or not _CJK.search(line))
    return 2 * n_code > len(lines)


def _strip_stack(text: str, removed: dict[str, int]) -> str:
    """Frames go, the headline stays: it carries the topic."""
    kept: list[str] = []
    below_frame = False
    for line in text.split("\n"):
        if below_frame and (line[:1] in (" ", "\t") or _MARKS.match(line)) and not _PYTHON_FRAME.match(line):
            removed["stack"] += 1  # the source line below a Python frame, and its marks
            continue
        below_frame = bool(_PYTHON_FRAME.match(line))
        if below_frame or _FRAME.match(line) or _MORE.match(line) or _TRACEBACK.match(line):
            removed["stack"] += 1
            continue
        kept.append(line)
    text = "\n".join(kept)
    text, n_frames = _FRAME_WITHIN.subn(" ", text)
    text, n_python = _PYTHON_FRAME_WITHIN.subn(" ", text)
    removed["stack"] += n_frames + n_python
    return text


# --- paths and hashes


def _strip_internal_paths(text: str, removed: dict[str, int]) -> str:
    """Runtime and dependency locations go, with their lines and columns; project paths say what to change."""
    markers = word_list("stops").sections["internal-paths"]

    def judged(match: re.Match[str]) -> str:
        run = match[0].replace("\\", "/")
        if not any(marker in run for marker in markers):
            return match[0]
        removed["path"] += 1
        return " "

    return _RUN.sub(judged, text) if any(marker.strip("/") in text for marker in markers) else text


def _strip_hex(text: str, removed: dict[str, int]) -> str:
    def judged(match: re.Match[str]) -> str:
        if not _DIGIT.search(match[0]):
            return match[0]
        removed["hex"] += 1
        return " "

    return _HEX.sub(judged, _UUID.sub(judged, text))


# --- JSON


@lru_cache(maxsize=1)
def _generic_keys() -> frozenset[str]:
    return word_list("stops").of("generic-keys")


def _strip_json(text: str, removed: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    """Cut every block of brackets that holds a key, 16 characters at least; return the keys that are not generic."""
    if "{" not in text:
        return text, ()
    scan = _BracketScan(text)
    kept: list[str] = []
    fields: dict[str, None] = {}
    last = 0
    for start, end in scan.outermost():
        keys = scan.keys_between(start, end)
        if end - start < MIN_JSON_LENGTH or not keys:
            continue
        kept += [text[last:start], " "]
        last = end
        removed["json"] += 1
        fields.update(dict.fromkeys(key for key in keys if _is_name(key)))
    kept.append(text[last:])
    return "".join(kept), tuple(fields)[:MAX_BACKFILLED_FIELDS]


def _is_name(key: str) -> bool:
    """Whether a key names a field: one word, not generic."""
    return bool(_NAME.fullmatch(key)) and key.lower().replace("_", "") not in _generic_keys()


# a key or a value follows the bracket: a string, a name before a colon, a number, a constant, or a bracket
_OPENS_DATA = re.compile(
    r"(?:\{\s*(?:[\"'}/]|\.\.\.|[A-Za-z_$][\w$-]{0,63}\s*:)|\[\s*(?:[\"'{\[\]]|-?\d|(?:true|false|null)\b))", re.ASCII
)


class _BracketScan:
    """Brackets that pair up, and keys, of one pass over a text.

    Within brackets, those in quotes do not count. A bracket that nothing closes is no block.
    """

    __slots__ = ("_keys", "_pairs", "_text", "_unclosed_before")

    def __init__(self, text: str) -> None:
        self._text = text
        self._pairs: list[tuple[int, int]] = []
        self._keys: list[tuple[int, str]] = []
        self._unclosed_before = {'"': -1, "'": -1}  # quotes up to there are known to close nowhere on their line
        self._scan()

    def _scan(self) -> None:
        text = self._text
        open_brackets: list[int] = []
        i, before = 0, ""  # before: the last character that is no blank
        for_next = re.compile(r"[^\s]")
        while True:
            match = for_next.search(text, i)
            if match is None:
                return
            i = match.start()
            character = text[i]
            start = i
            i += 1
            if character in "{[":
                open_brackets.append(start)
            elif character in "}]":
                if open_brackets and text[open_brackets[-1]] == ("{" if character == "}" else "["):
                    self._pairs.append((open_brackets.pop(), i))
            elif open_brackets and character in "\"'":
                end = self._string_end(start, character)
                if end > 0:
                    i = end
                    if before in "{,":
                        self._add_key(start, text[start + 1 : end - 1], end)
            elif before in ("{", ",") and open_brackets:
                word = _IDENTIFIER.match(text, start)
                if word:
                    i = word.end()
                    self._add_key(start, word[0], i)
            before = character

    def _string_end(self, start: int, quote: str) -> int:
        """Where the string that opens here ends, -1 if it does not on its line."""
        if start < self._unclosed_before[quote]:
            return -1
        text, i = self._text, start + 1
        while i < len(text):
            character = text[i]
            if character == "\\":
                i += 2
                continue
            if character == quote:
                return i + 1
            if character == "\n":
                break
            i += 1
        self._unclosed_before[quote] = i
        return -1

    def _add_key(self, start: int, key: str, end: int) -> None:
        following = self._text[end : end + 16].lstrip()
        if following[:1] == ":" and 0 < len(key.strip()) <= 64 and "\n" not in key:
            self._keys.append((start, " ".join(key.split())))

    def outermost(self) -> list[tuple[int, int]]:
        """The pairs that open as data does and lie in no other such pair, by place; prose in brackets is none."""
        found: list[tuple[int, int]] = []
        for pair in sorted(self._pairs):
            if (not found or pair[0] >= found[-1][1]) and _OPENS_DATA.match(self._text, pair[0]):
                found.append(pair)
        return found

    def keys_between(self, start: int, end: int) -> list[str]:
        from bisect import bisect_left

        first = bisect_left(self._keys, (start, ""))
        last = bisect_left(self._keys, (end, ""))
        return [key for _, key in self._keys[first:last]]
