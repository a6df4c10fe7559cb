"""Word lists of spec recall: data files with a tag for each word; a project may add its own."""

from __future__ import annotations

from functools import cache, lru_cache
from os import path
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FOLDER = path.dirname(path.abspath(__file__))


def read_sections(text: str, name: str) -> dict[str, tuple[str, ...]]:
    """The words of each `[section]` of a list, in order; a "+" in a word stands for a blank.

    ValueError names the file and the line of a fault.
    """
    sections: dict[str, list[str]] = {}
    words: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            if line[-1] != "]":
                raise ValueError(f"{name}, line {number}: expected [section], got {line!r:.60}")
            words = sections.setdefault(line[1:-1], [])
        elif words is None:
            raise ValueError(f"{name}, line {number}: word outside a section: {line!r:.60}")
        else:
            words += [word.replace("+", " ") for word in line.split()]
    return {tag: tuple(dict.fromkeys(found)) for tag, found in sections.items()}


def _read(name: str) -> dict[str, tuple[str, ...]]:
    with open(path.join(_FOLDER, name), "rb") as file:
        return read_sections(file.read().decode(), name)


class WordList:
    """The words of one data file by tag and the tags by word, with those that a project adds."""

    __slots__ = ("sections", "tags")

    def __init__(self, sections: Mapping[str, Iterable[str]]) -> None:
        self.sections = {tag: tuple(words) for tag, words in sections.items()}
        tags: dict[str, set[str]] = {}
        for tag, words in self.sections.items():
            for word in words:
                tags.setdefault(word.lower(), set()).add(tag)
        self.tags = {word: frozenset(found) for word, found in tags.items()}

    def of(self, *tags: str) -> frozenset[str]:
        """The words that have one of the tags."""
        return frozenset(word for tag in tags for word in self.sections.get(tag, ()))

    def with_words(self, added: Mapping[str, Iterable[str]]) -> WordList:
        """A list with more words. ValueError for a tag that this list does not have."""
        unknown = sorted(set(added) - set(self.sections))
        if unknown:
            raise ValueError(f"unknown tag {unknown[0]!r}; there are {', '.join(self.sections)}")
        return WordList({tag: (*words, *added.get(tag, ())) for tag, words in self.sections.items()})


@cache
def word_list(name: str) -> WordList:
    """The list of one data file: grading, terms, stops."""
    return WordList(_read(name + ".txt"))


class Aliases(NamedTuple):
    """Tags that mean the same: spelling to key, and the prefixes that fall before a known component."""

    keys: dict[str, str]
    prefixes: tuple[str, ...]
    components: frozenset[str]


@lru_cache(maxsize=1)
def tag_aliases() -> Aliases:
    """The tables of aliases.txt. A key that is the spelling of another key comes down to that one."""
    with open(path.join(_FOLDER, "aliases.txt"), "rb") as file:
        text = file.read().decode()
    head, _, table = text.partition("[aliases]\n")
    sections = read_sections(head, "aliases.txt")
    keys: dict[str, str] = {}
    for line in table.splitlines():
        key, *spellings = line.split()
        key = keys.setdefault(key, key)
        for spelling in spellings:
            keys.setdefault(spelling, key)
    return Aliases(keys, sections["prefixes"], frozenset(sections["components"]))
