"""Word lists that decide which words of a text are noise, read anew at each call."""

from __future__ import annotations

from os import path

_FOLDER = path.dirname(path.abspath(__file__))


def _lines(name: str) -> list[tuple[int, str]]:
    """Return the numbered data lines of a file, without comments and blanks."""
    with open(path.join(_FOLDER, name), "rb") as file:
        numbered = enumerate(file.read().decode().splitlines(), 1)
    return [(n, line) for n, line in numbered if line and line[0] != "#"]


def _words(name: str) -> tuple[str, ...]:
    """Return the words of a file that holds one a line."""
    words: list[str] = []
    for number, line in _lines(name):
        if line.split() != [line]:
            raise ValueError(f"{name}, line {number}: expected one word")
        words.append(line)
    return tuple(words)


def _section(wanted: str) -> tuple[str, ...]:
    """Return the words of one section of chinese.txt."""
    name = "chinese.txt"
    section = ""
    words: list[str] = []
    for number, line in _lines(name):
        if line.startswith("["):
            section = line
            if section not in ("[function]", "[protected]", "[empty]"):
                raise ValueError(f"{name}, line {number}: unknown section {line}")
        elif not section:
            raise ValueError(f"{name}, line {number}: word outside a section")
        elif section == wanted:
            found = line.split()
            if any((len(x) == 1) != (wanted == "[function]") for x in found):
                raise ValueError(f"{name}, line {number}: word of a wrong length")
            words += found
    return tuple(words)


def traditional_pairs() -> tuple[str, str]:
    """Return traditional characters and, place by place, their simplified forms."""
    lines = _lines("traditional.txt")
    for number, line in lines:
        if len(line) != 3 or line[1] != " " or line[0] == line[2]:
            raise ValueError(f"traditional.txt, line {number}: expected a pair")
    text = "".join([line for _, line in lines])
    return text[::3], text[2::3]


def english_words() -> tuple[str, ...]:
    """Return the English function words, in lower case."""
    return _words("english.txt")


def question_words() -> tuple[str, ...]:
    """Return the English and Chinese question words and phrases."""
    return _words("questions.txt")


def chinese_function_characters() -> str:
    """Return the Chinese characters that n-grams do not cross."""
    return "".join(_section("[function]"))


def protected_words() -> tuple[str, ...]:
    """Return the Chinese content words that hold a function character."""
    return _section("[protected]")


def empty_words() -> tuple[str, ...]:
    """Return the Chinese function words of two to four characters."""
    return _section("[empty]")


def mark_ranges() -> tuple[tuple[int, int], ...]:
    """Return the ranges (first, last) of code points that are combining marks."""
    return tuple((int(line[:4], 16), int(line[5:], 16)) for _, line in _lines("marks.txt"))
