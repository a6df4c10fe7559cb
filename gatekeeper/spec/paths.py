"""Where a text names files, folders, web addresses and people: found in one pass, judged run by run."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from gatekeeper.spec.lexicon import word_list

FILE = "file"  # a name with a known suffix, no folder
PATH = "path"
ROUTE = "route"  # /users/list: from the root, without a suffix
URL = "url"
MENTION = "mention"
EMAIL = "email"

# whole runs, so that no character is looked at twice
_RUN = re.compile(r"[A-Za-z0-9_.@~+\-/\\:#?&=%\[\]$]{2,}")
_LINE_TAIL = re.compile(r"(?::\d+){1,2}$")
_LETTER = re.compile(r"[A-Za-z]")


class Span(NamedTuple):
    """A place in a text. path: what it names, with forward slashes and without line numbers."""

    start: int
    end: int
    kind: str
    path: str


@lru_cache(maxsize=1)
def _names() -> tuple[frozenset[str], ...]:
    stops = word_list("stops")
    return stops.of("suffixes"), stops.of("tech-names"), stops.of("standard-directories"), stops.of("common-folders")


def find_spans(text: str) -> list[Span]:
    """Every path, file name, address and mention, in order. Linear in the text."""
    if not ("/" in text or "." in text or "\\" in text or "@" in text):
        return []
    spans = []
    for match in _RUN.finditer(text):
        run = match[0]
        if "/" in run or "." in run or "\\" in run or "@" in run:
            span = _judge(run, match.start())
            if span is not None:
                spans.append(span)
    return spans


def _judge(run: str, start: int) -> Span | None:
    """What a run names, None if nothing."""
    address = run.find("://")
    if address > 0:
        return Span(start, start + len(run), URL, run)
    body = run.lstrip("-:=#?&%+[]")
    start += len(run) - len(body)
    body = body.rstrip(".:=#?&-+~$[" if "[" in body else ".:=#?&-+~$[]")
    end = start + len(body)
    named = _LINE_TAIL.sub("", body).replace("\\", "/")
    mentioned = named.startswith("@")
    named = named[mentioned:]
    if "@" in named:
        is_address = "/" not in named and "." in named.rpartition("@")[2]
        return Span(start, end, EMAIL, named) if is_address else _path_or_none(start, end, named, mentioned)
    if not named:
        return None
    if "/" in named:
        return _path_or_none(start, end, named, mentioned)
    if has_suffix(named) and named.lower() not in _names()[1]:
        return Span(start, end, FILE, named)
    return Span(start, end, MENTION, named) if mentioned else None


def _path_or_none(start: int, end: int, named: str, mentioned: bool) -> Span | None:
    parts = [part for part in named.split("/") if part]
    if not parts or not _LETTER.search(named):
        return None
    if has_suffix(parts[-1]):
        return Span(start, end, PATH, named)
    if named.startswith("/"):
        return Span(start, end, ROUTE, named)
    is_folder = (
        parts[0] in _names()[2] or parts[0] in _names()[3] or parts[0] in (".", "..", "~") or named.endswith("/")
    )
    worded = [part for part in parts if _LETTER.match(part[0])]
    if (is_folder and len(parts) > 1) or named.endswith("/") or len(worded) > 2:
        return Span(start, end, PATH, named)
    return Span(start, end, MENTION, named) if mentioned else None


def has_suffix(name: str) -> bool:
    """Whether a name ends in the suffix of a known kind of file."""
    stem, dot, suffix = name.rpartition(".")
    return bool(dot and stem and suffix.lower() in _names()[0])


def names_a_file(text: str) -> bool:
    """Whether a text names a file or a folder."""
    return any(span.kind in (FILE, PATH) for span in find_spans(text))
