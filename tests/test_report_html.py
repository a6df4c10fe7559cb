"""The page of an explanation: its figures are those of the explanation, and no text can break out of its place."""

from __future__ import annotations

import json
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from command_line import DEMO_FILE, FOLDER, QUERY, call, chat
from conversations import gate_of, hostile_turns
from explanations import EXPLANATIONS, HOSTILE, demo, hostile, many_turns
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import queries, texts, turns

from gatekeeper import ContextGatekeeper, Settings, block
from gatekeeper.printable import UNSAFE, printable
from gatekeeper.report import Explanation
from gatekeeper.report_html import WHY, pieces

VOID = {"meta", "link", "base"}
SECTIONS = ["time-line", "gate", "anchors", "candidates", "steps", "texts", "left-out", "prompt"]


class Page(HTMLParser):
    """What a page holds: every tag closed, the figures, the text below each id and class."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.figures: list[tuple[str, str, str]] = []  # (key, value, shown)
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag == "a":
            self.links.append(str(attributes["href"]))
        for name in (attributes.get("class") or "").split():
            self.texts.setdefault(name, []).append("")
        if tag == "data":
            self.figures.append((str(attributes["data-key"]), str(attributes["value"]), ""))
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for tag, attributes in self.open:
            for name in (attributes.get("class") or "").split():
                self.texts[name][-1] += data
            if tag == "data":
                key, value, shown = self.figures[-1]
                self.figures[-1] = (key, value, shown + data)
            if tag == "h1":
                self.texts["h1"] = [self.texts.get("h1", [""])[0] + data]


def value_at(explained: dict[str, Any], key: str) -> Any:
    value: Any = explained
    for step in key.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return len(value) if isinstance(value, list) else value


def assert_figures(explained: dict[str, Any], figures: list[tuple[str, str, str]]) -> None:
    """Every figure of a page is the explanation's to the last digit, and what is shown is it, rounded."""
    assert figures
    for key, value, shown in figures:
        true = value_at(explained, key)
        assert json.loads(value) == true, key
        if true is None or isinstance(true, bool):
            assert shown == {None: "–", True: "yes", False: "no"}[true]
            continue
        number = shown.replace(",", "").removesuffix("%")
        unit = 0.01 if shown.endswith("%") else 1.0
        digits = len(number.partition(".")[2])
        assert abs(float(number) * unit - true) <= 0.5000001 * unit * 10.0**-digits, (key, value, shown)


# --- figures


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_every_figure_is_that_of_the_explanation(name: str) -> None:
    explained = EXPLANATIONS[name]()
    page = Page(explained.to_html())
    assert_figures(explained, page.figures)
    shown = {key for key, *_ in page.figures}
    expected = {"gate.overlap", "gate.new_ratio", "settings.overlap_continue", "settings.overlap_switch",
                "settings.new_ratio_switch", "coverage", "tokens.prompt", "tokens.budget"}  # fmt: skip
    for i in range(len(explained["candidates"])):
        parts = ("score", "cost", "parts.user", "parts.assistant", "parts.exact", "parts.recency")
        expected |= {f"candidates.{i}.{part}" for part in parts}
    for i in range(len(explained["steps"])):
        expected |= {f"steps.{i}.{part}" for part in ("gain", "cost", "coverage", "budget_left")}
    expected |= {f"turns.{turn['turn_id']}.score" for turn in explained["turns"] if turn["decision"] != block.CHOSEN}
    assert expected <= shown


@settings(max_examples=40)
@given(turns, queries, st.sampled_from((Settings.minimal(), Settings.thorough())), st.sampled_from((60, 4000)))
def test_every_figure_of_any_explanation(
    history: list[tuple[str, str]], query: str, preset: Settings, budget: int
) -> None:
    explained = gate_of(history, budget, settings=preset).explain(query)
    assert_figures(explained, Page(explained.to_html()).figures)


def test_the_page_is_that_of_the_json(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    result = call("explain", DEMO_FILE, QUERY, "--json", "--html", str(target))
    assert result.exit_code == 0
    assert "written" in result.stderr
    page = target.read_text(encoding="utf-8")
    assert_figures(json.loads(result.stdout), Page(page).figures)
    assert page == Explanation(json.loads(result.stdout)).to_html()


# --- structure


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_sections_headings_and_links(name: str) -> None:
    page = Page(EXPLANATIONS[name]().to_html())
    assert [i for i in page.ids if i in SECTIONS] == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert all(link.removeprefix("#") in page.ids for link in page.links)
    assert {link for link in page.links if not link.startswith("#")} == set()


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_it_is_one_file_without_scripts(name: str) -> None:
    html = EXPLANATIONS[name]().to_html()
    page = Page(html)
    assert not {"script", "img", "iframe", "object", "svg"} & set(page.tags)
    assert "default-src 'none'" in html
    assert "@import" not in html
    assert "url(" not in html


def test_every_turn_is_on_the_time_line() -> None:
    page = Page(many_turns().to_html())
    assert sum(len(page.texts.get(f"tone-{tone}", [])) for tone in range(6)) == 1000 + 1  # and one in the legend
    explained = demo()
    chosen = sorted(step["turn_id"] for step in explained["steps"])
    assert chosen
    assert [int(text) for text in Page(explained.to_html()).texts["chosen"] if text] == chosen


def test_every_turn_left_out_has_its_reason() -> None:
    explained = many_turns()
    html = explained.to_html()
    decisions = {turn["decision"] for turn in explained["turns"]} - {block.CHOSEN}
    assert "forgotten" in decisions
    for decision in decisions:
        assert f"<h3>{decision}</h3>" in html
        assert str(WHY[decision]) in html
    shown = [key for key, *_ in Page(html).figures if key.startswith("turns.") and key.endswith(".score")]
    assert len(shown) == sum(turn["decision"] != block.CHOSEN for turn in explained["turns"])


def test_every_decision_is_explained() -> None:
    names = {value for name, value in vars(block).items() if name.isupper() and isinstance(value, str)}
    assert set(WHY) == names - {block.CONTINUE, block.SWITCH}


# --- texts


def test_hostile_texts_are_shown_as_they_are() -> None:
    explained = hostile()
    page = Page(explained.to_html())
    assert page.texts["h1"] == [printable(explained["query"])]
    assert page.texts["prompt"] == [printable(explained["prompt"])]
    shown = page.texts["text"]
    for text in HOSTILE:
        assert shown.count(printable(text)) == 2, text


@settings(max_examples=60)
@given(st.one_of(hostile_turns, st.lists(st.tuples(texts, texts), max_size=3)), texts)
@example([("redis <b>", "</span><del>\ud800")], "redis <b>\u2066")
@example([("redis", "\r")], "redis")
def test_no_text_breaks_out(history: list[tuple[str, str]], query: str) -> None:
    explained = gate_of(history, settings=Settings.thorough()).explain(query)
    html = explained.to_html()
    html.encode("utf-8")
    page = Page(html)
    assert not UNSAFE.search(html)
    assert page.texts["prompt"] == [printable(explained["prompt"])]
    assert not {"script", "b"} & set(page.tags)
    for candidate in explained["candidates"]:
        for side in ("user", "assistant"):
            assert (printable(candidate["text"][side]) or "empty") in page.texts["text"]


@given(texts, st.data())
def test_pieces_are_the_text(text: str, data: st.DataObject) -> None:
    spans = st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted).map(list)).map(sorted)
    kept, hits = data.draw(spans), data.draw(spans)
    found = pieces(text, kept, hits)
    assert "".join(piece for _, stretch in found for _, piece in stretch) == text
    position = 0
    for is_kept, stretch in found:
        for is_hit, piece in stretch:
            for place in range(position, position + len(piece)):
                assert is_kept == any(start <= place < end for start, end in kept)
                assert is_hit == any(start <= place < end for start, end in hits)
            position += len(piece)


def test_kept_sentences_and_hits_are_marked() -> None:
    [candidate] = gate_of([("Redis here. Nothing. More.", "One. Two redis.")]).explain("redis")["candidates"]
    found = [pieces(candidate["text"][side], candidate["kept"][side], candidate["hits"][side])
             for side in ("user", "assistant")]  # fmt: skip
    assert found == [
        [(True, [(True, "Redis"), (False, " here. ")]), (False, [(False, "Nothing. More.")])],
        [(True, [(False, "One. Two "), (True, "redis"), (False, ".")])],
    ]


# --- the command


def test_the_page_replaces_the_text(tmp_path: Path) -> None:
    target = tmp_path / "报告.html"
    result = call("explain", DEMO_FILE, QUERY, "--html", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "report.html"
    result = call("explain", DEMO_FILE, QUERY, "--html", str(target))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: {target}: cannot be written: No such file or directory\n"
    assert call("explain", DEMO_FILE, QUERY, "--html", str(tmp_path)).exit_code == 2


def test_the_chat_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    content = chat({"user": "redis", "assistant": ""})
    file.write_text(content)
    result = call("explain", str(file), "redis", "--html", str(tmp_path / "." / "chat.jsonl"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is the chat file" in result.stderr
    assert file.read_text() == content


# --- in a notebook, and without jinja2


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    explained = hostile()
    frame = explained._repr_html_()
    assert type(frame) is str
    assert Page(frame).tags == ["iframe"]
    source = unescape(frame.partition('srcdoc="')[2].removesuffix('"></iframe>'))
    assert source.replace('<base href="about:srcdoc">\n', "") == explained.to_html()


def test_an_explanation_is_a_dict() -> None:
    explained = demo()
    assert isinstance(explained, dict)
    assert json.loads(json.dumps(explained)) == explained
    assert repr(explained) == repr(dict(explained))


def test_without_jinja2_all_but_the_page_works(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from gatekeeper import ContextGatekeeper\n"
        "explained = ContextGatekeeper(100).explain('redis')\n"
        "assert explained._repr_html_() is None\n"
        "sys.argv = ['gatekeeper', 'explain', *sys.argv[1:]]\n"
        "from gatekeeper.cli import run; run()\n"
    )
    command = [sys.executable, "-c", code, DEMO_FILE, QUERY]
    assert subprocess.run(command, cwd=FOLDER, capture_output=True, check=True).stdout
    run = subprocess.run([*command, "--html", str(tmp_path / "x.html")], cwd=FOLDER, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "error: a page needs jinja2: pip install 'context-gatekeeper[report]'\n"
    assert not (tmp_path / "x.html").exists()


def test_the_steps_say_when_the_query_is_covered_more_than_once() -> None:
    for n_covers in (1, 2):
        gate = ContextGatekeeper(4000, settings=Settings(n_covers=n_covers))
        gate.add_turns([("a redis lock", "ok"), ("a redis lock", "ok"), ("git rebase", "ok")])
        page = gate.explain("redis lock").to_html()
        assert ("times in all" in page, "Covers again what a turn before it covers." in page) == (n_covers == 2,) * 2
