"""Template and profile files: Markdown with front matter, written one way, read in every way met so far.

What is written reads back the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gatekeeper.spec.front_matter import read_front_matter, scalar_lines, whole_text, whole_value
from gatekeeper.spec.model import PROJECT, Fingerprint, Profile, Template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

TRIGGER, CLARIFY, APPROACH = "触发场景", "需求澄清清单", "标准改法"
REDLINES, PROMPT, ACCEPTANCE = "禁区", "提示词模板", "验收标准"
DIGEST = "会话摘要"
PLACEHOLDER = "（暂无）"

_LINE_END = re.compile("\r\n?")
_RULE = r"(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
_FRONT_MATTER = re.compile(rf"\ufeff?\s*---[ \t]*\n((?:(?!{_RULE})[^\n]*\n)*){_RULE}")
_HEADING_OR_FENCE = re.compile(r"^ {0,3}(?:##[ \t]+(?P<title>\S.*)|(?:`{3,}|~{3,}).*)$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BULLET = re.compile(r"\s*[-*+•](?:\s+|\Z)")
_NUMBER = re.compile(r"\s*\d{1,3}(?:[.)](?:\s+|\Z)|、\s*)")
_CHECK_BOX = re.compile(r"(?:\[[ xX]\](?:\s+|\Z))+")
_ESCAPED = re.compile(r"( {0,3})\\([\\#`~])")
_TO_ESCAPE = re.compile(r"( {0,3})([\\#]|`{3}|~{3})")


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """A template as its file holds it. hits, last_used: uses counted in the file by an older writer.

    digest: what happened in the session it was written in; problems: what is wrong with it, though it could be read.
    """

    template: Template
    hits: int = 0
    last_used: str = ""
    digest: str = ""
    problems: tuple[str, ...] = ()


# --- templates


def render_template(template: Template, *, hits: int = 0, last_used: str = "", digest: str = "") -> str:
    """The file of a template. `read_template` gives the same template back, each item on one line."""
    lines = ["---"]
    lines += scalar_lines({"id": template.id, "name": template.name, "category": template.category,
                            "scope": template.scope, "tags": list(template.tags),
                            "fingerprint": template.fingerprint.lines(), "fp_version": template.fp_version,
                            "repo": template.repo})  # fmt: skip
    if hits or last_used:
        lines += scalar_lines({"hitCount": hits, "lastUsed": last_used})
    lines += scalar_lines({"created": template.created, "updated": template.updated})
    lines += ["---", "", f"# {_one_line(template.name)}", ""]
    tags = "、".join(map(_one_line, template.tags))
    lines += [f"> 分类：{_one_line(template.category)}" + (f" · 标签：{tags}" if tags else "")]
    lines += _section(TRIGGER, _free_text(template.trigger))
    lines += _section(CLARIFY, [f"- {item}" for item in clean_items(template.clarify)])
    steps = clean_items(template.approach, numbered=True)
    lines += _section(APPROACH, [f"{n}. {item}" for n, item in enumerate(steps, 1)])
    lines += _section(REDLINES, [f"- {item}" for item in clean_items(template.redlines)])
    lines += _section(PROMPT, _fenced(template.prompt))
    lines += _section(ACCEPTANCE, [f"- [ ] {item}" for item in clean_items(template.acceptance)])
    if digest.strip():
        lines += _section(DIGEST, _free_text(digest))
    return whole_text("\n".join(lines) + "\n")


def read_template(text: str, *, id: str = "") -> TemplateFile:
    """A template from the text of its file; id: the one its file name gives, which counts.

    Raises ValueError when there is no front matter, or no name in it.
    """
    problems: list[str] = []
    values, body = _split(text, problems)
    name = _text(values.get("name")).strip()
    if not name:
        raise ValueError("no name in the front matter")
    fingerprint, broken = read_fingerprint(_list(values.get("fingerprint")))
    if broken:
        problems.append(f"{broken} broken fingerprint entries")
    own_id = _text(values.get("id"))
    if id and own_id != id:
        problems.append(f"the id inside is {own_id!r:.40}, not that of the file")
    sections = read_sections(body)
    template = Template(
        id=id or own_id, name=name, category=_text(values.get("category")) or "uncategorized",
        scope=_text(values.get("scope")) or PROJECT, tags=tuple(_list(values.get("tags"))),
        trigger=_read_free_text(sections.get(TRIGGER, "")),
        clarify=tuple(list_items(sections.get(CLARIFY, ""))),
        approach=tuple(list_items(sections.get(APPROACH, ""), numbered=True)),
        redlines=tuple(list_items(sections.get(REDLINES, ""))),
        prompt=_read_fenced(sections.get(PROMPT, "")),
        acceptance=tuple(list_items(sections.get(ACCEPTANCE, ""))),
        fingerprint=Fingerprint({}) if broken else fingerprint, fp_version=_whole(values.get("fp_version")),
        repo=_text(values.get("repo")), created=_text(values.get("created")), updated=_text(values.get("updated")),
    )  # fmt: skip
    digest = _read_free_text(sections.get(DIGEST, ""))
    hits, last_used = _whole(values.get("hitCount")), _text(values.get("lastUsed"))
    return TemplateFile(template, hits, last_used, digest, tuple(problems))


def normal_template(template: Template) -> Template:
    """The template as it reads back from its file: items cleaned, texts whole."""
    return read_template(render_template(template), id=template.id).template


# --- profiles


def render_profile(profile: Profile) -> str:
    """The file of a project profile."""
    lines = ["---", *scalar_lines({"repoName": profile.repo_name, "updated": profile.updated}), "---", ""]
    lines += [f"# {_one_line(profile.repo_name) or '项目档案'}"]
    lines += _section(REDLINES, [f"- {item}" for item in clean_items(profile.redlines)])
    return whole_text("\n".join(lines) + "\n")


def read_profile(text: str) -> Profile:
    """A profile from the text of its file, with or without front matter. Near-duplicates are the reader's to merge."""
    text = _LINE_END.sub("\n", text)
    values, body = _split(text) if _FRONT_MATTER.match(text) else ({}, text)
    redlines = tuple(list_items(read_sections(body).get(REDLINES, "")))
    return Profile(_text(values.get("repoName")), redlines, _text(values.get("updated")))


# --- fingerprints


def read_fingerprint(lines: Iterable[str]) -> tuple[Fingerprint, int]:
    """A stored fingerprint, `token|weight` each, and how many entries are broken. A token may hold the separator.

    Which tokens are paths is not stored: only those of a query matter.
    """
    weights: dict[str, float] = {}
    n_broken = 0
    for line in lines:
        token, _, weight = line.rpartition("|")
        value = _WEIGHTS.get(weight) or _weight(weight)
        if not token or not 0.0 < value < 100.0:
            n_broken += 1
            continue
        if value > weights.get(token, 0.0):
            weights[token] = value
    return Fingerprint(weights), n_broken


_WEIGHTS = {str(weight): float(weight) for weight in range(1, 5)}


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


# --- sections and lists


def read_sections(body: str) -> dict[str, str]:
    """The text below each `##` heading, by its title; a heading within a fence is none. Twice named: joined."""
    sections: dict[str, str] = {}
    title, start, fence = "", 0, ""
    for found in _HEADING_OR_FENCE.finditer(body):
        if found["title"] is None:
            fence = _fence_after(fence, found[0])
        elif not fence:
            _add_section(sections, title, body[start : found.start()])
            title, start = found["title"].rstrip(" \t#"), found.end() + 1
    _add_section(sections, title, body[start:])
    del sections[""]
    return {title: text.strip("\n") for title, text in sections.items()}


def _add_section(sections: dict[str, str], title: str, text: str) -> None:
    sections[title] = sections[title] + text if title in sections else text


def list_items(text: str, *, numbered: bool = False) -> list[str]:
    """The items of a Markdown list: check boxes stripped, placeholders dropped, numbered lines only on request.

    An indented line that is no item goes on with the item above it.
    """
    items: list[str] = []
    for line in text.split("\n"):
        found = _BULLET.match(line) or (_NUMBER.match(line) if numbered else None)
        if found:
            items.append(_without(_CHECK_BOX, line[found.end():].strip()))
        elif items and line[:1] in (" ", "\t") and line.strip() and not _NUMBER.match(line):
            items[-1] += " " + line.strip()
    return [item for item in items if item and not item.startswith("（")]


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text behind what the pattern finds at its beginning."""
    found = pattern.match(text)
    return text[found.end():] if found else text


def clean_items(items: Iterable[str], *, numbered: bool = False) -> list[str]:
    """Items as they can be written: on one line, without list marks, none empty, none that reads as a placeholder."""
    cleaned = [_clean_item(item, numbered=numbered) for item in items]
    return [item for item in cleaned if item]


def _clean_item(item: str, *, numbered: bool) -> str:
    item = _one_line(item)
    while True:
        found = _BULLET.match(item) or (_NUMBER.match(item) if numbered else None) or _CHECK_BOX.match(item)
        if not found:
            break
        item = item[found.end():]
    return _no_placeholder(item)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _no_placeholder(text: str) -> str:
    """What begins with a full-width bracket would be dropped on reading: it gets plain ones."""
    if not text.startswith("（"):
        return text
    inner, closing, rest = text[1:].partition("）")
    return f"({inner}){rest}" if closing else "(" + inner


def _is_placeholder(text: str) -> bool:
    return text.startswith("（") and text.endswith("）") and "\n" not in text


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(lines or [PLACEHOLDER])]


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after a line, "" for none."""
    found = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if not found:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in line[found.end():] else found[1]
    closes = found[1][0] == fence[0] and len(found[1]) >= len(fence) and not line[found.end():].strip()
    return "" if closes else fence


def _free_text(text: str) -> list[str]:
    """Lines that no reader takes for a heading or a fence."""
    text = _no_placeholder(_LINE_END.sub("\n", text).strip())
    return [_TO_ESCAPE.sub(r"\1\\\2", line, count=1) if _TO_ESCAPE.match(line) else line
            for line in text.split("\n")] if text else []  # fmt: skip


def _read_free_text(text: str) -> str:
    text = text.strip()
    if _is_placeholder(text):
        return ""
    lines = [_ESCAPED.sub(r"\1\2", line, count=1) if _ESCAPED.match(line) else line for line in text.split("\n")]
    return "\n".join(lines)


def _fenced(text: str) -> list[str]:
    """A text in a fence longer than any it holds."""
    text = _LINE_END.sub("\n", text).strip("\n")
    if not text.strip():
        return []
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}text", *text.split("\n"), fence]


def _read_fenced(text: str) -> str:
    """What the first fence holds; without one the text itself, unless it is a placeholder."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        fence = _fence_after("", line)
        if fence:
            end = next((n for n in range(start + 1, len(lines)) if not _fence_after(fence, lines[n])), len(lines))
            return "\n".join(lines[start + 1 : end]).strip("\n")
    return "" if _is_placeholder(text.strip()) else text.strip()


# --- values of the front matter


def _split(text: str, problems: list[str] | None = None) -> tuple[dict[str, Any], str]:
    """Front matter and body; problems takes what is wrong with the former. Raises ValueError without front matter."""
    text = _LINE_END.sub("\n", text)
    found = _FRONT_MATTER.match(text)
    if not found:
        raise ValueError("no front matter")
    values = read_front_matter(found[1], problems)
    if "\\" in found[1]:  # an escape may stand for half a character
        values = {key: whole_value(value) for key, value in values.items()}
    return values, text[found.end():]


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _list(value: object) -> list[str]:
    """The texts of a list; of a single text its parts between commas."""
    if isinstance(value, list):
        texts = [item if isinstance(item, str) else _text(item) for item in value if not isinstance(item, (list, dict))]
        return [text for text in texts if text and not text.isspace()]
    return [part.strip() for part in _text(value).split(",") if part.strip()]


def _whole(value: object) -> int:
    try:
        return max(0, int(_text(value)))
    except ValueError:
        return 0
