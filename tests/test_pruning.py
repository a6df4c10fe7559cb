"""Pruning against the twin."""

from __future__ import annotations

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_text import fold
from strategies import queries, turns

from gatekeeper import ContextGatekeeper, Settings
from gatekeeper.pruning import bits_of, idf_mass, mask_of, phrase_spans


def pruned(user: str, assistant: str, query: str, **changes) -> tuple[str, str]:
    gate = ContextGatekeeper(10**6, settings=Settings(**changes))
    gate.add_turn(user, assistant)
    (candidate,) = gate.explain(query)["candidates"]
    return candidate["user"], candidate["assistant"]


@given(turns, queries, st.sampled_from([1, 2, 3]))
@settings(max_examples=150)
def test_kept_sentences_texts_and_covered_anchors_equal_the_twin(history, query: str, max_sentences: int) -> None:
    chosen = Settings(max_sentences=max_sentences, min_coverage=0.0)
    gate, twin = ContextGatekeeper(10**6, settings=chosen), reference.Conversation(history, chosen)
    gate.add_turns(history)
    texts = [anchor.text for anchor in twin.anchors(query)]
    decision = gate.explain(query)
    names = {anchor["id"]: anchor["text"] for anchor in decision["anchors"]}
    found = [
        (c["turn_id"], [[tuple(span) for span in side] for side in c["kept"].values()], [c["user"], c["assistant"]],
         [names[i] for i in c["covers"]])
        for c in decision["candidates"]
    ]  # fmt: skip
    assert found == [(c.turn, c.kept, c.texts, [texts[i] for i in sorted(c.covers)]) for c in twin.candidates(query)]


@given(turns, queries)
@settings(max_examples=80)
def test_what_is_kept_is_the_very_text_that_came_in(history, query: str) -> None:
    gate = ContextGatekeeper(10**6)
    gate.add_turns(history)
    for candidate in gate.explain(query)["candidates"]:
        for side, text in zip(("user", "assistant"), history[candidate["turn_id"]], strict=True):
            assert "".join(text[a:b] for a, b in candidate["kept"][side]).strip() == candidate[side]


@pytest.mark.parametrize(("user", "assistant", "query", "expected"), [
    ("No. Redis! No?", "", "redis", ("Redis!", "")),
    ("x. y", "First. Second. Redis here. Last.", "redis", ("", "First. Redis here.")),
    ("Redis a. Redis b. Redis c. Redis d. ", "", "redis", ("Redis a. Redis b. Redis c.", "")),
    ("Redis a. Ttl b. Redis c. Redis ttl d. ", "", "redis ttl", ("Redis a. Ttl b. Redis ttl d.", "")),
    ("", "Zero. Redis a. Redis b. Redis c. ", "redis", ("", "Zero. Redis a. Redis b.")),
    ("a\n```\nx. redis!\n\ny\n```\nb", "", "redis", ("```\nx. redis!\n\ny\n```", "")),
    ("On lazy\n free. Other.", "", "“lazy free”", ("On lazy\n free.", "")),
])  # fmt: skip
def test_a_side_keeps_its_best_sentences(user: str, assistant: str, query: str, expected: tuple[str, str]) -> None:
    assert pruned(user, assistant, query) == expected


def test_the_first_sentence_of_the_assistant_is_kept_even_alone() -> None:
    assert pruned("redis", "First. Redis.", "redis", max_sentences=1) == ("redis", "First.")


def test_a_phrase_is_not_kept_where_the_block_does_not_hold_its_words() -> None:
    gate = ContextGatekeeper(10**6)
    gate.add_turns([("bird here. concat dogma", ""), ("cat dog", "")])
    candidates = {c["turn_id"]: c["user"] for c in gate.explain('"cat dog" bird')["candidates"]}
    assert candidates == {0: "bird here.", 1: "cat dog"}


def test_more_anchors_than_a_machine_word_has_bits_are_all_covered() -> None:
    names = [f"term{i}" for i in range(150)]
    gate = ContextGatekeeper(10**6)
    gate.add_turn(" ".join(names), "")
    (candidate,) = gate.explain(" ".join(names))["candidates"]
    assert [gate.anchor_text(i) for i in candidate["covers"]] == names


@given(st.sets(st.integers(0, 300)))
@settings(max_examples=100)
def test_masks_and_positions_are_each_other(positions: set[int]) -> None:
    mask = sum(1 << position for position in positions)
    assert mask_of(sorted(positions)) == mask
    assert bits_of(mask) == sorted(positions)
    weights = [0.1 * i for i in range(301)]
    assert idf_mass(mask, weights) == reference.total(weights[i] for i in sorted(positions))


def test_a_phrase_begins_wherever_its_words_stand_with_white_space_between() -> None:
    text = "Lazy  free lazy\nFREE lazyfree (a+b)"
    assert phrase_spans(text, "lazy free") == [(0, 10), (11, 20)]
    at = fold(text).index("(")
    assert phrase_spans(text, "(a+b)") == [(at, at + 5)]
    assert phrase_spans(text, " ") == []


def test_a_phrase_that_runs_over_two_sentences_is_not_covered_by_half_of_it() -> None:
    gate = ContextGatekeeper(4000)
    gate.add_turns([("说明", "开场。他说：Are you ok? Yes we are. 完"), ("x y", "z")])
    decision = gate.explain('"are you ok? yes"')
    phrase = next(a["id"] for a in decision["anchors"] if a["text"] == "are you ok? yes")
    assert all(phrase not in candidate["covers"] for candidate in decision["candidates"])


@pytest.mark.parametrize("marker", ["- ", "* ", "1. ", "12) ", "> ", "  - "])
def test_a_fence_behind_a_list_marker_is_one_sentence(marker: str) -> None:
    reply = f"步骤。\n{marker}```sh\n  pg_dump mydb\n  ls。\n  ```\n- 然后重启。\n- 闲话一。"
    assert pruned("", reply, "pg_dump")[1] == f"步骤。\n{marker}```sh\n  pg_dump mydb\n  ls。\n  ```"
    assert pruned("", reply, "重启")[1] == "步骤。\n- 然后重启。"
