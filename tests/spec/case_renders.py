"""The cases of the stage "render", by their operation."""

from __future__ import annotations

from case_checks import Given, check_words, expect, known, made_template, same

from gatekeeper.spec import rendering, routing
from gatekeeper.spec.decision import Decision
from gatekeeper.spec.distilling import distill
from gatekeeper.spec.model import HIT, Match, Priors, Score
from gatekeeper.spec.tokens import estimate_tokens
from gatekeeper.spec.triaging import decide


def decision_for(given: Given) -> Decision:
    """A decision with this next step, from a text that has it."""
    texts = {
        "triage": "把库存模块重构拆分成独立服务",
        "implement": "改 order.vue 的查询",
        "confirm": "注册页加个按钮",
        "none": "你好",
    }
    is_fast = given.get("fast_track", False)
    decision = decide(given.get("text") or ("直接做" if is_fast else texts[given.get("next_step", "implement")]))
    gap = given.get("content_gap")
    if isinstance(gap, list):
        gap = gap[0] if gap else None
    if gap:
        nouns = {"button": "按钮", "column": "列", "route": "路由"}
        decision = decide(f"加个{nouns.get(gap, gap)}" if gap != "column" else "右边加一列")
    return decision


def run_injection(given: Given, wanted: Given) -> None:
    n_hits = given.get("hits", 1 if "template" in given else 0)
    template = made_template(given.get("template", {"name": "x"}))
    match = Match(template, Score(0.5, 0.5, 0.5, ("x",), ("x",)), Priors(), 0.5, HIT)
    text = rendering.render_context(
        decision_for(given),
        [match] * n_hits,
        given.get("redlines", ()),
        max_chars=given.get("max_chars", 4000),
        max_templates=5,
    )
    check_text(text, wanted)


def check_text(text: str, wanted: Given) -> None:
    known(wanted, "max_tokens_est", "max_chars", "order", "mentions", "max_redlines")
    n_redlines = sum(line.startswith("- ") and not line.startswith("- [") for line in text.splitlines())
    expect(n_redlines <= wanted.get("max_redlines", n_redlines), f"{n_redlines} redlines")
    check_words("the text", text, {"contains": wanted.get("mentions", ())})
    check_words("the text", text, wanted)
    if "max_tokens_est" in wanted:
        expect(estimate_tokens(text) <= wanted["max_tokens_est"], f"{estimate_tokens(text)} tokens")
    if "max_chars" in wanted:
        expect(len(text) <= wanted["max_chars"], f"{len(text)} characters")
    places = [text.find(word) for word in wanted.get("order", ())]
    expect(places == sorted(places) and -1 not in places, f"order {wanted.get('order')} at {places}")


def run_triage(given: Given, wanted: Given) -> None:
    found = decide(given["text"]).triage
    for key, value in wanted.items():
        if key == "dimensions":
            for name, status in value.items():
                same(name, found.dimensions[name], status)
        else:
            same(key, getattr(found, key), value)


def run_triage_report(given: Given, wanted: Given) -> None:
    found = rendering.render_triage(decide(given["text"]), given["text"])
    check_words("the report", found.report, wanted)
    for key, value in wanted.items():
        if key == "asks":
            same("asks", bool(found.questions), value)
        elif key == "forbids_file_tools_before_asking":
            same(key, all(tool in found.report for tool in ("read", "grep", "glob", "bash", "ls")), value)
        elif key == "must_ask":
            check_words("the report", found.report, {"contains": value})
        elif key in ("level", "mode", "needs_clarify", "ready"):
            same(key, getattr(found, key), value)
        elif key not in ("contains", "not_contains", "contains_any"):
            raise AssertionError(f"unknown assertion {key!r}")


def run_distill(given: Given, wanted: Given) -> None:
    found = distill(
        given.get("requirement", "重构订单模块"),
        constraints=given.get("constraints", ()),
        clarifications=given.get("clarifications", ()),
        files=given.get("files", ()),
        stack=given.get("stack", ""),
        acceptance=given.get("acceptance", ()),
        strict=given.get("strict", True),
    )
    check_words("the prompt", found.text, wanted)
    if "missing_constraints" in wanted:
        same("missing", found.missing_constraints, wanted["missing_constraints"])
    if "warning_visible" in wanted:
        same("warning", "⚠" in found.text, wanted["warning_visible"])


def run_markdown(given: Given, wanted: Given) -> None:
    from gatekeeper.spec import markdown

    template = made_template(given["template"])
    text = markdown.render_template(template)
    for _ in range(given.get("times", 0)):
        text = markdown.render_template(markdown.read_template(text).template)
    check_words("the file", text, wanted)
    read = markdown.read_template(text).template
    for section in wanted.get("placeholder_sections", ()):
        body = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
        expect("（" in body, f"{section} has no placeholder: {body!r}")
        expect(not (read.clarify or read.approach or read.acceptance), "a placeholder reads back as an item")


def run_bullets(given: Given, wanted: Given) -> None:
    from gatekeeper.spec import markdown

    same("items", list(markdown.list_items(given["md"])), wanted["items"])


def run_block(given: Given, wanted: Given) -> None:
    check_text(routing.render_block(decision_for(given), given.get("text", "")), wanted)


RENDERERS = {
    "injection": run_injection,
    "triage": run_triage,
    "triage_report": run_triage_report,
    "distill": run_distill,
    "template_markdown": run_markdown,
    "template_roundtrip": run_markdown,
    "bullet_lines": run_bullets,
    "routing_block": run_block
}  # fmt: skip


def run_render(given: Given, wanted: Given) -> None:
    RENDERERS[given["op"]](given, wanted)
