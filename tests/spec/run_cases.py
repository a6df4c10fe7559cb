"""Run a file of spec-recall cases: one JSON object a line, as `docs/spec.md` describes them.

`python tests/spec/run_cases.py FILE` prints each failing case and, last, `N passed, M failed`; "must" and "stretch"
cases are counted apart on the line before.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gatekeeper.spec import hygiene, matching, rendering, routing
from gatekeeper.spec.decision import Decision
from gatekeeper.spec.distilling import distill
from gatekeeper.spec.explaining import explain_scalars
from gatekeeper.spec.index import TemplateIndex
from gatekeeper.spec.model import HIT, Match, Priors, Query, Score, Template
from gatekeeper.spec.preparing import prepare, should_skip_matching
from gatekeeper.spec.secrets import mask_secrets
from gatekeeper.spec.tokenizing import (
    infer_category,
    infer_tags,
    is_gram,
    query_fingerprint,
    template_fingerprint,
    tokenize,
)
from gatekeeper.spec.tokens import estimate_tokens
from gatekeeper.spec.triaging import decide

THRESHOLD = 0.15
Given = dict[str, Any]
LIBRARIES: dict[str, list[Given]] = {}


def expect(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def same(name: str, got: Any, wanted: Any) -> None:
    is_near = isinstance(wanted, float) and isinstance(got, (int, float)) and abs(got - wanted) <= 0.001
    expect(is_near or got == wanted, f"{name}: got {got!r}, expected {wanted!r}")


def known(wanted: Given, *words: str) -> None:
    """An assertion that this runner does not know is a failure, never a pass."""
    unknown = sorted(set(wanted) - set(words) - WORDS)
    expect(not unknown, f"unknown assertions {unknown}")


WORDS = {"contains", "not_contains", "contains_any", "absent"}


def check_words(name: str, text: Any, wanted: Given) -> None:
    """The assertions that hold for a text and for a set of tokens."""
    for word in wanted.get("contains", ()):
        expect(word in text, f"{name} lacks {word!r}: {text!r:.300}")
    for word in (*wanted.get("not_contains", ()), *wanted.get("absent", ())):
        expect(word not in text, f"{name} has {word!r}: {text!r:.300}")
    if "contains_any" in wanted:
        expect(any(word in text for word in wanted["contains_any"]), f"{name} has none of {wanted['contains_any']}")


# --- classify, nextStep, skip, prepare


def run_classify(given: Given, wanted: Given) -> None:
    for text in given.get("texts", [given.get("text")]):
        found = decide(text).classification
        plain = {
            "level": found.level,
            "fast_track": found.fast_track,
            "content_gap": found.content_gap,
            "family": found.family,
            "skip_trigger": found.skip_trigger,
        }
        for key, value in wanted.items():
            if key == "inferred":
                for part, expected in value.items():
                    same(f"{text}: {part}", getattr(found.inferred, part), expected)
            elif key == "content_gap_present":
                same(f"{text}: gap", found.gap is not None, value)
            elif key.endswith("_not"):
                expect(plain[key[:-4]] != value, f"{text}: {key[:-4]} is {value!r}")
            elif key.endswith("_in"):
                expect(plain[key[:-3]] in value, f"{text}: {key[:-3]} {plain[key[:-3]]!r} not in {value}")
            elif key == "signals":
                check_words("signals", found.signals, {"contains": value})
            else:
                same(f"{text}: {key}", plain[key], value)


def run_next_step(given: Given, wanted: Given) -> None:
    for text in given.get("texts", [given.get("text")]):
        decision = decide(text)
        note = routing.render_note(decision)
        found = {
            "next_step": decision.next_step.step,
            "reason": decision.next_step.reason,
            "inject": bool(note),
            "inject_kind": routing.note_kind(decision),
            "unactionable": decision.triage.unactionable,
            "level": decision.classification.level,
            "fast_track": decision.classification.fast_track,
            "content_gap": decision.classification.content_gap,
            "may_ask": decision.next_step.may_ask,
        }
        for key, value in wanted.items():
            if key == "mentions":
                check_words("the note", note, {"contains": value})
            elif key.endswith("_not"):
                expect(found[key[:-4]] != value, f"{text}: {key[:-4]} is {value!r}")
            elif key.endswith("_in"):
                expect(found[key[:-3]] in value, f"{text}: {key[:-3]} is {found[key[:-3]]!r}, not in {value}")
            elif key == "max_tokens_est":
                expect(estimate_tokens(note) <= value, f"a note of {estimate_tokens(note)} tokens")
            else:
                same(f"{text}: {key}", found[key], value)


def run_skip(given: Given, wanted: Given) -> None:
    same("skip", should_skip_matching(given["text"], given.get("has_image", False)), wanted["skip"])


def run_prepare(given: Given, wanted: Given) -> None:
    found = prepare(given["text"])
    known(
        wanted,
        "equals",
        "fields",
        "field_count_max",
        "fields_contain",
        "fields_absent",
        "max_chars",
        "removed",
        "idempotent",
    )
    check_words("the text", found.text, wanted)
    check_words(
        "the fields",
        found.fields,
        {"contains": wanted.get("fields_contain", ()), "absent": wanted.get("fields_absent", ())},
    )
    for kind, count in wanted.get("removed", {}).items():
        same(f"removed {kind}", found.removed[kind], count)
    if "equals" in wanted:
        same("text", found.text, wanted["equals"])
    if "fields" in wanted:
        same("fields", list(found.fields), wanted["fields"])
    if "field_count_max" in wanted:
        expect(len(found.fields) <= wanted["field_count_max"], f"{len(found.fields)} fields")
    if "max_chars" in wanted:
        expect(len(found.text) <= wanted["max_chars"], f"{len(found.text)} characters")
    same("prepared twice", prepare(found.text).text, found.text)


# --- fingerprint


def made_template(given: Given, **more: Any) -> Template:
    approach = given.get("approach", given.get("body", ""))
    return Template(
        given.get("id", "tpl-0000000000"),
        given.get("name", ""),
        given.get("category", "uncategorized"),
        given.get("scope", "global"),
        tuple(given.get("tags", ())),
        given.get("trigger", ""),
        tuple(given.get("clarify", ())),
        tuple(approach.split("\n") if isinstance(approach, str) else approach),
        tuple(given.get("redlines", ())),
        given.get("prompt", ""),
        tuple(given.get("acceptance", ())),
        **more,
    )


def run_fingerprint(given: Given, wanted: Given) -> None:
    if given.get("kind") == "category":
        same("category", infer_category(given["text"]), wanted.get("category", wanted.get("equals")))
        return
    if given.get("kind") == "tags":
        tags = list(infer_tags(given["text"]))
        check_words("tags", tags, wanted)
        if "equals" in wanted:
            same("tags", tags, wanted["equals"])
        return
    if given.get("side") == "template":
        found = template_fingerprint(made_template(given["template"]), topic_only=given.get("topic_only", False))
    else:
        found = query_fingerprint(given["text"]) if given.get("side") == "query" else tokenize(given["text"])
    tokens = list(found.weights)
    known(wanted, "weights", "max_weight", "max_tokens", "max_grams", "order", "min_tokens")
    expect(len(tokens) >= wanted.get("min_tokens", 0), f"{len(tokens)} tokens")
    check_words("tokens", tokens, wanted)
    for token, weight in wanted.get("weights", {}).items():
        same(f"weight of {token}", found.weights.get(token), weight)
    for token, weight in wanted.get("max_weight", {}).items():
        expect(found.weights.get(token, 0) <= weight, f"{token} weighs {found.weights[token]}")
    if "max_tokens" in wanted:
        expect(len(tokens) <= wanted["max_tokens"], f"{len(tokens)} tokens")
    n_grams = sum(is_gram(token, weight) for token, weight in found.weights.items())
    expect(n_grams <= wanted.get("max_grams", n_grams), f"{n_grams} 2-grams")
    places = [tokens.index(token) if token in tokens else -1 for token in wanted.get("order", ())]
    expect(places == sorted(places) and -1 not in places, f"order {wanted.get('order')} at {places} of {tokens}")


# --- match


def fingerprint_of(entries: list[list[Any]]) -> Query:
    return Query(
        {entry[0]: entry[1] for entry in entries},
        frozenset(entry[0] for entry in entries if len(entry) > 2 and entry[2]),
    )


def run_pair(given: Given, wanted: Given) -> None:
    query, template = fingerprint_of(given["query_fp"]), fingerprint_of(given["template_fp"])
    template = replace(template, paths=frozenset())
    found = matching.score(query, template)
    verdict = matching.verdict_of(found.lexical, matching.points_of(query, found), given.get("threshold", THRESHOLD))
    for key in ("cosine", "coverage", "lexical"):
        if key in wanted:
            expect(abs(getattr(found, key) - wanted[key]) <= 0.001, f"{key} {getattr(found, key)}, not {wanted[key]}")
    if "topic_evidence" in wanted:
        same("evidence", sorted(found.topic_evidence), sorted(wanted["topic_evidence"]))
    check_words("evidence", found.topic_evidence, {"contains": wanted.get("topic_evidence_includes", ())})
    if "hit" in wanted:
        same("hit", verdict == HIT, wanted["hit"])


def run_scalars(given: Given, wanted: Given) -> None:
    threshold = given.get("threshold", THRESHOLD)
    line = explain_scalars(given["lexical"], given.get("topic_evidence", ()), threshold)
    if "hit" in wanted:
        same("hit", line.startswith(HIT), wanted["hit"])
    check_words("the explanation", line, {"contains": wanted.get("explain_contains", ())})
    if "rank_score" in wanted:
        same(
            "rank score", matching.rank_score(given["lexical"], Priors(**given.get("priors", {}))), wanted["rank_score"]
        )


def run_rank(given: Given, wanted: Given) -> None:
    matches = [
        Match(
            Template(entry["id"], entry["id"]),
            Score(0.0, 0.0, entry["lexical"]),
            priors := Priors(**entry["priors"]),
            matching.rank_score(entry["lexical"], priors),
            HIT,
        )
        for entry in given["rank"]
    ]
    same("order", [match.template.id for match in sorted(matches, key=matching.rank_order)], wanted["order"])


def run_library(given: Given, wanted: Given) -> None:
    templates = [made_template(entry) for entry in LIBRARIES[given["library"]]]
    templates = [replace(entry, fingerprint=template_fingerprint(entry)) for entry in templates]
    if should_skip_matching(given["query"]):
        hits: list[Match] = []
    else:
        query = query_fingerprint(prepare(given["query"]).text)
        hits = [match for match in matching.rank(query, templates) if match.hit]
        fast = TemplateIndex(templates).recall(query, threshold=THRESHOLD, max_templates=len(templates))
        same("hits of the index", [m.template.id for m in fast], [m.template.id for m in hits])
    found = [match.template.id for match in hits]
    if "top" in wanted:
        same("top", found[0] if found else None, wanted["top"])
    if "hit" in wanted:
        same("hit", bool(found), wanted["hit"])
    if "hits" in wanted:
        same("hits", found, wanted["hits"])


def run_match(given: Given, wanted: Given) -> None:
    if "query_fp" in given:
        run_pair(given, wanted)
    elif "library" in given:
        run_library(given, wanted)
    elif "rank" in given:
        run_rank(given, wanted)
    elif "tag_a" in given:
        same("same key", matching.tag_key(given["tag_a"]) == matching.tag_key(given["tag_b"]), wanted["same_key"])
    elif "query_tags" in given:
        same("overlap", matching.tag_overlap(given["query_tags"], given["template_tags"]), wanted["tag_overlap"])
    elif any("categor" in key for key in given):
        values = [value for key, value in given.items() if "categor" in key]
        a, b = values[0] if len(values) == 1 else values
        same("same category", matching.same_category(a, b), bool(wanted["same_category"]))
    elif "last_used_days" in given:
        for days, value in zip(given["last_used_days"], wanted["recency"], strict=True):
            same(f"recency of {days}", matching.recency(days), float(value))
    elif "hit_counts" in given:
        for hits, value in zip(given["hit_counts"], wanted["popularity"], strict=True):
            same(f"popularity of {hits}", matching.popularity(hits), float(value))
    elif "lexical" in given:
        run_scalars(given, wanted)
    else:
        raise AssertionError(f"unknown input {sorted(given)}")


# --- hygiene


def run_hygiene(given: Given, wanted: Given) -> None:
    if "redline" in given:
        same("task scoped", hygiene.is_task_scoped(given["redline"]), wanted["task_scoped"])
    elif "duplicate_redline" in given:
        same("class", hygiene.classify_redline(given["duplicate_redline"]), wanted["class"])
    elif "a" in given:
        same("near duplicate", hygiene.is_near_duplicate(given["a"], given["b"]), wanted["near_duplicate"])
    elif "list" in given:
        same("deduped", hygiene.merge_near_duplicates(given["list"]), wanted["deduped"])
    elif "write_template" in given:
        checked = hygiene.check_template(made_template({"name": "x", **given["write_template"]}))
        same("stored", list(checked.template.redlines), wanted["stored_redlines"])
        same("dropped", list(checked.dropped), wanted.get("dropped", []))
        if "hoisted" in wanted:
            same("hoisted", list(checked.hoisted), wanted["hoisted"])
        if wanted.get("reported"):
            expect(checked.dropped or checked.hoisted, "nothing is reported")
    elif "text" in given:
        known(wanted, "masked")
        text, counts = mask_secrets(given["text"])
        check_words("the text", text, wanted)
        same("masked", counts, wanted.get("masked", counts))
    elif "fingerprint_scope" in given:
        run_fingerprint_scope(given, wanted)
    else:
        raise AssertionError(f"unknown input {sorted(given)}")


def run_fingerprint_scope(given: Given, wanted: Given) -> None:
    """A project template is fingerprinted from its name and tags only."""
    is_project = given["fingerprint_scope"] == "project"
    if "topic_only" in wanted:
        same("topic_only", is_project, wanted["topic_only"])
    found = template_fingerprint(made_template(given.get("template", given)), topic_only=is_project)
    check_words("tokens", list(found.weights), wanted)


# --- render


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


RUNNERS = {
    "classify": run_classify,
    "nextStep": run_next_step,
    "skip": run_skip,
    "prepare": run_prepare,
    "fingerprint": run_fingerprint,
    "match": run_match,
    "hygiene": run_hygiene,
    "render": run_render

}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--library", type=Path, help="the libraries of `match` inputs; spec_library.json beside FILE")
    parser.add_argument("--only", nargs="*", help="ids of the cases to run")
    arguments = parser.parse_args()
    library = arguments.library or arguments.file.with_name("spec_library.json")
    if library.exists():
        LIBRARIES.update(json.loads(library.read_text(encoding="utf-8")))
    counts = {tier: [0, 0] for tier in ("must", "stretch")}
    for line in arguments.file.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        case = json.loads(line)
        if arguments.only and case["id"] not in arguments.only:
            continue
        try:
            RUNNERS[case["stage"]](case["input"], case["expected"])
            counts[case["tier"]][0] += 1
        except Exception as error:
            counts[case["tier"]][1] += 1
            print(f"FAILED {case['id']} ({case['tier']}): {type(error).__name__}: {error}\n    {case['why']}")
    print("; ".join(f"{tier}: {passed} passed, {failed} failed" for tier, (passed, failed) in counts.items()))
    n_passed, n_failed = (sum(count[i] for count in counts.values()) for i in (0, 1))
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
