"""Answers as text: the context of a recall, and the report of a triage."""

from __future__ import annotations

from typing import NamedTuple

from gatekeeper.spec.asking import (
    CONSERVATIVE_DEFAULTS,
    DIMENSIONS,
    GAPS,
    Text,
    ask_for_gap,
    candidates_of,
    open_dimensions,
)
from gatekeeper.spec.decision import COVERED, GAP, MISSING, PARTIAL, UNACTIONABLE
from gatekeeper.spec.routing import render_block, render_inferred
from gatekeeper.spec.settings import MAX_SHOWN_REDLINES, SHORT_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gatekeeper.spec.decision import Classification, Decision, Triage
    from gatekeeper.spec.model import Match, Template

FAST_TRACK_MODE, CLARIFY_MODE, READY_MODE = "fast-track", "clarify", "ready"


# --- recall


def render_context(
    decision: Decision,
    matches: Sequence[Match] = (),
    redlines: Iterable[str] = (),
    *,
    text: str = "",
    max_templates: int = 2,
    max_chars: int = 4000,
) -> str:
    """The answer of a recall: routing block, project redlines, hit templates, and that the user's words win.

    Clipped to `max_chars` at a line end, with a marker; what is clipped is a template, a redline only where the
    redlines alone are too long.
    """
    is_english = decision.classification.is_english
    hits = [match for match in matches if match.hit][:max_templates]
    head = [render_block(decision, text), *_redline_lines(redlines, is_english)]
    if not hits:
        head.append(_NO_HIT.of(is_english))
        return _clip("\n".join(head), "", max_chars, is_english)
    body = [line for match in hits for line in _template_lines(match, decision)]
    body.append(_WORDS_WIN.of(is_english))
    return _clip("\n".join(head), "\n".join(body), max_chars, is_english)


_NO_HIT = Text("无匹配模板。", "No template matches.")
_WORDS_WIN = Text("模板只是起点，以用户原话为准。", "Templates are a starting point; the user's words win.")
_CLIPPED = Text("…（已截断）", "… (clipped)")


def _redline_lines(redlines: Iterable[str], is_english: bool) -> list[str]:
    kept = [line for redline in redlines if (line := " ".join(redline.split()))]
    if not kept:
        return []
    lines = [Text("项目禁区（硬约束）：", "Project redlines (hard):").of(is_english)]
    lines += [f"- {redline}" for redline in kept[:MAX_SHOWN_REDLINES]]
    if len(kept) > MAX_SHOWN_REDLINES:
        n_left = len(kept) - MAX_SHOWN_REDLINES
        lines.append(
            Text(f"（另有 {n_left} 条，见项目档案）", f"({n_left} more in the project profile)").of(is_english)
        )
    return lines


def _template_lines(match: Match, decision: Decision) -> list[str]:
    """One hit; redlines first, so that clipping leaves them."""
    is_english = decision.classification.is_english
    template = match.template
    name = " ".join(template.name.split())
    lines = [f"## {name} ({match.score.lexical:.2f}, {template.id})"]
    parts, left_out = _template_parts(template, decision)
    for heading, items, mark in parts:
        if items:
            lines.append(heading.of(is_english))
            lines += [f"{mark or f'{n}.'} {' '.join(item.split())}" for n, item in enumerate(items, 1)]
    if left_out:
        lines.append(
            Text(
                "（已省略澄清清单和流程行：本轮不提问。）",
                "(Questions and process lines left out: this turn asks nothing.)",
            ).of(is_english)
        )
    return lines


def _template_parts(template: Template, decision: Decision) -> tuple[list[tuple[Text, tuple[str, ...], str]], bool]:
    """Heading, items and mark of each part, and whether anything was left out because nothing may be asked."""
    clarify, approach = template.clarify, template.approach
    if decision.classification.fast_track:
        clarify = ()
        approach = tuple(line for line in approach if "spec_" not in line)
    parts = [
        (Text("澄清：", "Questions:"), clarify, "-"),
        (Text("改法：", "Approach:"), approach, ""),
        (Text("禁区：", "Redlines:"), template.redlines, "-"),
        (Text("验收：", "Acceptance:"), template.acceptance, "- [ ]"),
    ]
    return parts, (clarify, approach) != (template.clarify, template.approach)


def _clip(head: str, body: str, max_chars: int, is_english: bool) -> str:
    """Head and body within max_chars, cut at a line end; within the head only if it is too long by itself."""
    text = head + "\n" + body if body else head
    if len(text) <= max_chars:
        return text
    marker = "\n" + _CLIPPED.of(is_english)
    room = max_chars - len(marker)
    if len(head) > room:
        return head[:room] + marker
    end = text.rfind("\n", 0, room + 1)
    return text[: max(end, len(head))] + marker


# --- triage


class TriageReport(NamedTuple):
    """The answer of a triage. mode: fast-track, clarify or ready; questions: only when something is to be asked."""

    mode: str
    level: int
    needs_clarify: bool
    ready: bool
    report: str
    questions: tuple[str, ...]


def render_triage(decision: Decision, text: str) -> TriageReport:
    """The report for any level. L3 asks; L2 only for a gap or when there is nothing to start from; L1 never."""
    classification, triage, _ = decision
    is_english = classification.is_english
    asks = triage.needs_clarify and not classification.fast_track
    questions = tuple(questions_for(decision)) if asks else ()
    lines = [Text("# 需求体检", "# Triage").of(is_english), _badge(decision), *_facts(triage, text, is_english)]
    if classification.level == 3:
        lines += _l3_lines(decision)
    elif asks:
        lines += _clarify_lines(decision)
    elif classification.fast_track:
        lines += _l1_lines(classification, text)
    else:
        lines += _ready_lines(decision, text)
    lines += [f"{n}. {question}" for n, question in enumerate(questions, 1)]
    mode = CLARIFY_MODE if asks else FAST_TRACK_MODE if classification.fast_track else READY_MODE
    return TriageReport(mode, classification.level, asks, not asks, "\n".join(lines), questions)


def questions_for(decision: Decision) -> list[str]:
    """What to ask, everything in one go, each with candidates and a recommended default."""
    classification, triage, step = decision
    is_english = classification.is_english
    if classification.gap and step.reason == GAP:
        ask, candidates = ask_for_gap(classification.gap, is_english), candidates_of(classification.gap, is_english)
        return [
            Text(f"{ask}？候选：{candidates}（推荐第一个）", f"{ask}? Candidates: {candidates} (first recommended)").of(
                is_english
            )
        ]
    keys = [*triage.having(MISSING), *triage.having(PARTIAL)] or ["boundary", "acceptance"]
    return [_QUESTIONS[key].of(is_english) for key in keys]


_QUESTIONS = {
    "goal": Text(
        "做到什么算完成？候选：现有测试通过 / 给出新的验收点 / 人工看效果（推荐现有测试通过）",
        "What counts as done? Candidates: existing tests pass / new acceptance points / a look (first recommended)",
    ),
    "approach": Text(
        "改到哪一层、用什么做法？候选：照现有相似实现 / 新写一套 / 先出方案再定（推荐照现有实现）",
        "Which layer, which way? Candidates: as a similar part does / a new one / a plan first (first recommended)",
    ),
    "boundary": Text(
        "哪些不能动？候选：对外接口和表结构不动 / 只动点名的模块 / 没有限制（推荐第一个）",
        "What must not change? Candidates: public interfaces and tables / all but the named module / nothing (first "
        "recommended)",
    ),
    "context": Text(
        "在哪个仓库、技术栈、哪些文件？候选：当前仓库 / 指定目录 / 多个仓库（推荐当前仓库）",
        "Which repository, stack, files? Candidates: this repository / a folder / several (first recommended)",
    ),
    "acceptance": Text(
        "出问题怎么回退？候选：整体回滚提交 / 开关控制 / 分批上线（推荐第一个）",
        "How to roll back? Candidates: revert the commit / a switch / in stages (first recommended)",
    ),
}


def _badge(decision: Decision) -> str:
    """The level with the reason from the real signals."""
    classification = decision.classification
    signals = ", ".join(classification.signals)
    return f"L{classification.level} ({signals}) → {decision.next_step.step}"


def _facts(triage: Triage, text: str, is_english: bool) -> list[str]:
    short = Text("，偏短", ", short").of(is_english) if triage.length < SHORT_LENGTH else ""
    path = Text("是" if triage.has_path else "否", "yes" if triage.has_path else "no").of(is_english)
    return [
        Text(
            f"长度 {len(text.strip())}{short}；点名路径：{path}",
            f"Length {len(text.strip())}{short}; names a path: {path}",
        ).of(is_english)
    ]


def _dimension_lines(triage: Triage, is_english: bool) -> list[str]:
    marks = {COVERED: Text("有", "covered"), PARTIAL: Text("部分", "partial"), MISSING: Text("缺", "missing")}
    return [
        f"| {DIMENSIONS[key].of(is_english)} | {marks[status].of(is_english)} |"
        for key, status in triage.dimensions.items()
    ]


_ASK_FIRST = Text(
    "先问后查：提问前不用任何文件工具（read/grep/glob/bash/ls/tree），以下问题一次问完：",
    "Ask first: before asking use no file tool (read/grep/glob/bash/ls/tree); ask all of this at once:",
)
_TODO = Text("拿不准的写 // TODO: [待确认]，最后汇总。", "Doubts become // TODO: [待确认], listed at the end.")


def _l3_lines(decision: Decision) -> list[str]:
    is_english = decision.classification.is_english
    return [
        *_dimension_lines(decision.triage, is_english),
        Text("大范围改动：问清之前停在这里。", "A large change: stop here until it is clear.").of(is_english),
        _ASK_FIRST.of(is_english),
    ]


def _clarify_lines(decision: Decision) -> list[str]:
    """A gap names what is missing; the safety valve says that there is nothing to start from."""
    classification, triage, step = decision
    is_english = classification.is_english
    if classification.gap and step.reason == GAP:
        key, ask = classification.gap.key, ask_for_gap(classification.gap, is_english)
        thing = GAPS[key].thing.of(is_english)
        why = Text(
            f"只缺一点（{key}）：{thing}——{ask}。其余按默认值做。",
            f"One thing is missing ({key}): {ask}. The rest goes by defaults.",
        )
    elif step.reason == UNACTIONABLE:
        missing = open_dimensions(triage, is_english, MISSING)
        why = Text(
            f"没有任何可动手的锚点（文件、字段、组件、默认值都没有），还缺：{missing}。",
            f"Nothing to start from (no file, field, component or default); missing: {missing}.",
        )
    else:
        why = Text("用户要求先问。", "The user wishes to be asked first.")
    return [why.of(is_english), _ASK_FIRST.of(is_english)]


def _l1_lines(classification: Classification, text: str) -> list[str]:
    is_english = classification.is_english
    found = render_inferred(classification) or Text(
        "先找一处相似实现，照它改。", "Locate a similar implementation first and follow it."
    ).of(is_english)
    style = Text(
        "风格：看目标文件里最近的约 50 行相似代码，照着写。",
        "Style: look at the nearest ~50 lines of similar code in the file and imitate.",
    ).of(is_english)
    return [found, style, *_default_lines(text, is_english), _TODO.of(is_english)]


def _ready_lines(decision: Decision, text: str) -> list[str]:
    classification, triage, _ = decision
    is_english = classification.is_english
    found = render_inferred(classification)
    lines = [
        *_dimension_lines(triage, is_english),
        Text("按默认值执行，不提问：", "Executed with defaults, nothing asked:").of(is_english),
    ]
    return [*lines, *([found] if found else []), *_default_lines(text, is_english), _TODO.of(is_english)]


def _default_lines(text: str, is_english: bool) -> list[str]:
    """The one table of defaults, with those that the text itself switches marked."""
    low = text.lower()
    said = Text("（原话已提到，以原话为准）", " (said otherwise: the words win)").of(is_english)
    return [
        f"- {default.of(is_english)}{said if any(word in low for word in words) else ''}"
        for default, words in CONSERVATIVE_DEFAULTS
    ]
