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

from case_checks import Given, check_words, expect, known, made_template, same
from case_renders import run_render

from gatekeeper.spec import hygiene, matching, routing
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
LIBRARIES: dict[str, list[Given]] = {}


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
