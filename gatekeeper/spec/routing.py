"""The one routing table: what each verdict means, and every standing text that says so.

The resident text, the skill, the per-turn note and the routing block of a recall are all rendered from `ROUTES` and
`RULES`; nothing else states the contract.
"""

from __future__ import annotations

from typing import NamedTuple

from gatekeeper.spec.asking import (
    CONSERVATIVE_DEFAULTS,
    GAPS,
    WHICH,
    Text,
    ask_for_gap,
    candidates_of,
    open_dimensions,
)
from gatekeeper.spec.decision import (
    ASKED,
    CHAT,
    CONFIRM,
    DEFAULTS,
    FAST,
    GAP,
    IMPLEMENT,
    L3,
    MISSING,
    NONE,
    PARTIAL,
    TRIAGE,
    UNACTIONABLE,
    NextStep,
)
from gatekeeper.spec.request import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.spec.decision import Classification, Decision


class Route(NamedTuple):
    """One row: the next step of a reason, its tool round trips, and whether it may ask.

    when: the condition; do: the order as the resident text and the skill give it; block: as a recall gives it.
    """

    step: str
    n_round_trips: int
    may_ask: bool
    when: Text
    do: Text
    block: Text

    def next_step(self, reason: str) -> NextStep:
        return NextStep(self.step, reason, self.may_ask, self.n_round_trips)


ROUTES: dict[str, Route] = {
    L3: Route(
        TRIAGE,
        4,
        True,
        Text("L3：架构、重构、迁移、建表、跨模块", "L3: architecture, refactoring, migration, tables, across modules"),
        Text(
            "用同一段原文调 spec_triage；动手前一次问清全部问题；答后 spec_distill，收尾 spec_retro。",
            "call spec_triage with the same text; ask everything at once before any file tool; then spec_distill, "
            "implement, spec_retro.",
        ),
        Text(
            "L3：用同一段原文调 spec_triage，先一次问清，再动手。",
            "L3: call spec_triage with the same text; ask first, all at once, then act.",
        ),
    ),
    FAST: Route(
        IMPLEMENT,
        1,
        False,
        Text("L1：单点小改，或用户说了直接做", "L1: one small edit, or the user said to just do it"),
        Text("直接实现，不提问，不走体检和蒸馏。", "do it now; ask nothing; no triage, no distill."),
        Text(
            "L1 一步直达：现在就实现，不提问，不走 triage/distill。照目标文件附近约 50 行的写法来。",
            "L1, one step: implement now, ask nothing, no triage/distill. Imitate the nearest ~50 lines of the file.",
        ),
    ),
    GAP: Route(
        CONFIRM,
        1,
        True,
        Text(
            "新增物缺身份或用途，或不知删哪一个", "a new thing lacks identity or purpose, or it is open which to remove"
        ),
        Text(
            "只问 content_gap 所列这一次，给 2~3 个候选和一个推荐，然后直接实现，不走体检。",
            "ask once, for exactly what content_gap names, with 2-3 candidates and a recommended one; then implement, "
            "no triage.",
        ),
        Text(
            "动手前只问一次，只问{ask}。候选：{candidates}，荐第一个。答后直接实现，不 triage。",
            "Before acting ask once, only for: {ask}. Candidates: {candidates} (first recommended). Then implement, "
            "no triage.",
        ),
    ),
    UNACTIONABLE: Route(
        CONFIRM,
        1,
        True,
        Text(
            "过短且缺两维以上，又没有文件、字段、组件可依",
            "too short, two or more dimensions missing, nothing to start from",
        ),
        Text("一次问清核心几维，然后直接实现。", "ask once for the core dimensions, then implement."),
        Text(
            "信息太少：动手前一次问清：{ask}。每问给 2~3 个候选和推荐。答后直接实现，不走 triage。",
            "Too little to act on: ask once for: {ask}. Give 2-3 candidates and a recommended one each. Then "
            "implement, no triage.",
        ),
    ),
    ASKED: Route(
        CONFIRM,
        1,
        True,
        Text("用户要求先问", "the user wishes to be asked first"),
        Text("先问一次，再实现。", "ask once, then implement."),
        Text(
            "用户要求先问：动手前一次问清：{ask}。答后直接实现，不走 triage。",
            "The user wishes to be asked first: ask once for: {ask}. Then implement, no triage.",
        ),
    ),
    DEFAULTS: Route(
        IMPLEMENT,
        1,
        False,
        Text("其余 L2", "any other L2"),
        Text("按默认值直接实现，不提问。", "implement with the defaults; ask nothing."),
        Text("直接实现，不提问、不 triage。{defaults}", "Implement now, ask nothing, no triage. {defaults}"),
    ),
    CHAT: Route(
        NONE,
        0,
        False,
        Text("不是编程需求", "no coding request"),
        Text("正常回答，不调 spec 工具。", "answer as usual; no spec tool."),
        Text("不是编程需求，正常回答。", "No coding request: answer as usual."),
    ),
}


class Rule(NamedTuple):
    """A standing rule, with the name by which a test asks for it."""

    name: str
    text: Text


RULES = (
    Rule(
        "recall-first",
        Text(
            "编程需求第一步：原文照传调 spec_recall，只照它的 next_step 做。",
            "First step of every coding request: call spec_recall with the user's words unchanged, "
            "then do exactly what its next_step says.",
        ),
    ),
    Rule(
        "ask-whitelist",
        Text(
            "只有 confirm 和 L3 可提问；缺新增物的身份用途必问，缺已有物的取值自决。",
            "Only confirm and L3 may ask: a new thing without identity or purpose is asked for, a "
            "value of an old thing is decided.",
        ),
    ),
    Rule(
        "ask-before-tools",
        Text(
            "提问前不用任何文件工具（read/grep/glob/bash/ls/tree），一次问完。",
            "Before asking use no file tool (read, grep, glob, shell, ls, tree); ask all in one go.",
        ),
    ),
    Rule(
        "fast-words",
        Text(
            "用户说「直接做/别问」即不许再问；说「你定」就用默认并列出假设。",
            '"Just do it" takes the right to ask; "you decide" means defaults, with the assumptions listed.',
        ),
    ),
    Rule(
        "todo",
        Text("拿不准的写 // TODO: [待确认]，最后汇总。", "Doubts become // TODO: [待确认] and are listed at the end."),
    ),
    Rule(
        "large-files",
        Text(
            "超过 20K 字符的文件先 grep 再读片段；必须整读就先写摘要。",
            "Files over 20K characters: grep, then read sections; if all must be read, write a summary first.",
        ),
    ),
    Rule(
        "write-back",
        Text(
            "收尾自问：还会这么做吗、换项目成立吗、还会被问吗；都是才 spec_retro。",
            "At the end: would I do it this way again, does it hold elsewhere, will it be asked again? "
            "Only if so call spec_retro.",
        ),
    ),
    Rule(
        "redlines",
        Text(
            "禁区是硬约束；模板只是起点，以用户原话为准。",
            "Redlines are hard; templates are a start, the user's words win.",
        ),
    ),
)

# --- what one decision says


def render_block(decision: Decision, text: str = "") -> str:
    """The routing block of a recall: the one next step. text: the requirement, whose words switch defaults."""
    classification, _, step = decision
    is_english = classification.is_english
    block = ROUTES[step.reason].block.of(is_english)
    if "{defaults}" in block:
        block = block.replace("{defaults}", render_defaults(classification, text))
    if classification.gap and "{candidates}" in block:
        block = block.replace("{candidates}", candidates_of(classification.gap, is_english))
    if "{ask}" in block:
        block = block.replace("{ask}", _ask_of(decision))
    if step.reason == FAST:
        inferred = render_inferred(classification)
        todo = Text("疑虑写 // TODO: [待确认]。", " Doubts: // TODO: [待确认].").of(is_english)
        block = "\n".join([line for line in (block + todo, inferred) if line])
    return f"[next_step: {step.step}] {block}"


def _ask_of(decision: Decision) -> str:
    """What a confirm asks for."""
    classification, triage, _ = decision
    is_english = classification.is_english
    if classification.gap:
        return ask_for_gap(classification.gap, is_english)
    asked = open_dimensions(triage, is_english, MISSING) or open_dimensions(triage, is_english, PARTIAL)
    return asked or Text("用户想先确认的点", "what the user wants to settle first").of(is_english)


def render_defaults(classification: Classification, text: str) -> str:
    """The conservative defaults that no word of the text switches, and what the text itself gives. One or two lines."""
    is_english = classification.is_english
    low = fold(text).lower()
    kept = [
        default.of(is_english) for default, words in CONSERVATIVE_DEFAULTS if not any(word in low for word in words)
    ]
    switched = [
        default.of(is_english) for default, words in CONSERVATIVE_DEFAULTS if any(word in low for word in words)
    ]
    line = Text("默认：", "Defaults: ").of(is_english) + ("; " if is_english else "；").join(kept) if kept else ""
    if switched:
        line += Text("；原话已涉及：", "; said otherwise: ").of(is_english).lstrip("" if kept else "；; ")
        line += "、".join(switched) + Text("，以原话为准", ", the words win").of(is_english)
    end = Text("。疑虑写 TODO: [待确认]。", ". Doubts: TODO: [待确认].").of(is_english)
    inferred = render_inferred(classification)
    return line + end + ("\n" + inferred if inferred else "")


def render_inferred(classification: Classification) -> str:
    """What was inferred: file, field, component, default value; "" for nothing."""
    is_english = classification.is_english
    names = {
        "file": Text("文件", "file"),
        "field": Text("字段", "field"),
        "component": Text("组件", "component"),
        "default": Text("默认值", "default"),
    }
    found = [
        f"{name.of(is_english)} {value}"
        for key, name in names.items()
        if (value := getattr(classification.inferred, key))
    ]
    return Text("已识别：", "Found: ").of(is_english) + ("; " if is_english else "；").join(found) if found else ""


# --- the per-turn note

NOTE_MARK = "[spec-recall]"


def note_kind(decision: Decision) -> str | None:
    """implement or confirm: what the per-turn note says; None where there is none (defaults, L3, chat)."""
    step = decision.next_step
    return step.step if step.reason == FAST or step.step == CONFIRM else None


def render_note(decision: Decision) -> str:
    """The note of one turn; "" for nothing to say. It never takes the place of spec_recall: that comes first."""
    kind = note_kind(decision)
    if kind is None:
        return ""
    is_english = decision.classification.is_english
    if kind == IMPLEMENT:
        signals = ", ".join(decision.classification.signals[:2])
        return NOTE_MARK + Text(
            f" 本轮判定 L1（{signals}）。先原文照传调 spec_recall，再直接实现：不提问，不走 triage/distill；"
            "拿不准写 // TODO: [待确认]，最后列出。",
            f" This turn is L1 ({signals}). First call spec_recall with the user's words, then implement: ask nothing, "
            "no triage/distill; doubts become // TODO: [待确认], listed at the end.",
        ).of(is_english)
    return NOTE_MARK + Text(
        f" 本轮判定先问一次：{_ask_of(decision)}。先原文照传调 spec_recall；动手前只问这一次，给 2~3 个候选和一个推荐；"
        "提问前不用文件工具；答后直接实现，不走 triage。",
        f" This turn asks once, for: {_ask_of(decision)}. First call spec_recall with the user's words; ask this once, "
        "with 2-3 candidates and a recommended one, before any file tool; then implement, no triage.",
    ).of(is_english)


# --- standing texts


def render_routes(is_english: bool) -> list[str]:
    """One line a row of the table."""
    arrow, colon = (" -> ", ": ") if is_english else (" → ", "：")
    return [
        f"{route.when.of(is_english)}{arrow}{route.step}{colon}{route.do.of(is_english)}" for route in ROUTES.values()
    ]


def resident_text(is_english: bool = True) -> str:
    """The block that stands in every prompt: the rules and the routes."""
    rules = [f"{n}. {rule.text.of(is_english)}" for n, rule in enumerate(RULES, 1)]
    head = Text("# 需求召回与分诊", "# Spec recall").of(is_english)
    table = Text("next_step：", "next_step:").of(is_english)
    return "\n".join([head, *rules, table, *(f"- {line}" for line in render_routes(is_english))])


def skill_text(is_english: bool = True) -> str:
    """The long document, SKILL.md: the same rules and routes, with the defaults and the gaps."""
    description = Text(
        "编程需求的召回、分级与沉淀：先 spec_recall，照 next_step 做。",
        "Recall, grade and write back coding requests: spec_recall first, then do what next_step says.",
    )
    title, rules = Text("需求召回与分诊", "Spec recall and triage"), Text("规则", "Rules")
    lines = ["---", "name: spec-recall", f"description: {description.of(is_english)}", "---", ""]
    lines += [f"# {title.of(is_english)}", "", f"## {rules.of(is_english)}", ""]
    lines += [f"{n}. {rule.text.of(is_english)}" for n, rule in enumerate(RULES, 1)]
    lines += ["", "## next_step", "", *_route_table(is_english), "", *_skill_defaults(is_english), ""]
    return "\n".join([*lines, *_skill_gaps(is_english), ""])


def _route_table(is_english: bool) -> list[str]:
    head = Text("| 条件 | next_step | 往返 | 可提问 | 做法 |", "| when | next_step | round trips | may ask | do |")
    answers = {True: Text("是", "yes"), False: Text("否", "no")}
    rows = [
        f"| {route.when.of(is_english)} | {route.step} | {route.n_round_trips} | "
        f"{answers[route.may_ask].of(is_english)} | {route.do.of(is_english)} |"
        for route in ROUTES.values()
    ]
    return [head.of(is_english), "| --- | --- | --- | --- | --- |", *rows]


def _skill_defaults(is_english: bool) -> list[str]:
    title = Text("保守默认", "Conservative defaults").of(is_english)
    unless, end = Text("（提到 ", " (unless said: ").of(is_english), Text(" 时以原话为准）", ")").of(is_english)
    lines = [
        f"- {default.of(is_english)}{unless}{', '.join(words[:4])}{end}" for default, words in CONSERVATIVE_DEFAULTS
    ]
    return [f"## {title}", "", *lines]


def _skill_gaps(is_english: bool) -> list[str]:
    mark = Text("；候选：", "; candidates: ").of(is_english)
    lines = [f"- `{key}`: {gap.ask.of(is_english)}{mark}{gap.candidates.of(is_english)}" for key, gap in GAPS.items()]
    removing = Text("删除时问：", "when removing: ").of(is_english) + WHICH.of(is_english).format(thing="…")
    return ["## content_gap", "", *lines, f"- {removing}"]
