"""Texts for people: what could steer a terminal, reorder a line or break a page, as escapes."""

from __future__ import annotations

import re

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A text for people: control and direction characters and lone surrogates as escapes; \\r\\n is a line break."""
    return UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """A printable text on one line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}"
