"""The page of an explanation in a real browser: `pytest -m browser`, with the extra `browser` and a chromium.

GATEKEEPER_CHROMIUM names the browser's program where it is none of the usual ones.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import DEMO_FILE, QUERY, call
from explanations import EXPLANATIONS, HOSTILE, demo, hostile, many_turns
from test_report_html import assert_figures

from gatekeeper.printable import printable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
WIDE, PHONE = 1100, 360
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = os.environ.get("GATEKEEPER_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program, "no chromium is installed"
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # as root it runs only without its sandbox
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"] if is_root else [])
        yield browser
        browser.close()


class Visit:
    """An open page, with what it logged, loaded and asked of the user."""

    def __init__(self, browser: Browser, html: str, folder: Path, *, width: int = WIDE, scheme: Any = "light") -> None:
        file = folder / "report.html"
        file.write_text(html, encoding="utf-8")
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.requests: list[str] = []
        self.page.goto(file.as_uri())
        self.is_alone = self.requests == [file.as_uri()]

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


FIGURES = "[...document.querySelectorAll('data')].map(d => [d.dataset.key, d.getAttribute('value'), d.textContent])"
OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true })"


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EXPLANATIONS)
def test_it_is_quiet_alone_and_never_wider_than_the_screen(
    browser: Browser, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    with Visit(browser, EXPLANATIONS[name]().to_html(), tmp_path, width=width, scheme=scheme) as visit:
        visit.run(OPEN_ALL)
        assert visit.run("document.documentElement.scrollWidth") <= width
        assert visit.complaints == []
        assert visit.is_alone
        assert visit.run("document.scripts.length") == 0


def test_the_figures_seen_are_those_of_the_json(browser: Browser, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    explained = json.loads(call("explain", DEMO_FILE, QUERY, "--json", "--html", str(target)).stdout)
    with Visit(browser, target.read_text(encoding="utf-8"), tmp_path) as visit:
        assert_figures(explained, visit.run(FIGURES))


def test_bars_are_as_long_as_their_figures(browser: Browser, tmp_path: Path) -> None:
    explained = demo()
    script = """[...document.querySelectorAll('.candidates .parts')].map(bar => [...bar.children].map(part =>
        [part.className, part.getBoundingClientRect().width / bar.getBoundingClientRect().width]))"""
    with Visit(browser, explained.to_html(), tmp_path) as visit:
        bars = visit.run(script)
        rising = visit.run("""[...document.querySelectorAll('.coverage-bar')].map(bar =>
            (bar.querySelector('.gained').getBoundingClientRect().right - bar.getBoundingClientRect().left)
            / bar.getBoundingClientRect().width)""")
    best = explained["candidates"][0]["score"]
    for candidate, bar in zip(explained["candidates"], bars, strict=True):
        expected = {f"part-{part}": value / best for part, value in candidate["parts"].items() if value}
        assert dict(bar) == pytest.approx(expected, abs=0.005)
    assert rising == pytest.approx([step["coverage"] for step in explained["steps"]], abs=0.005)


def test_html_in_a_chat_is_text(browser: Browser, tmp_path: Path) -> None:
    explained = hostile()
    with Visit(browser, explained.to_html(), tmp_path) as visit:
        shown = visit.run("[...document.querySelectorAll('.text')].map(element => element.textContent)")
        assert visit.run("document.querySelector('h1').textContent") == printable(explained["query"])
        assert visit.run("document.querySelectorAll('b, img, script').length") == 0
        assert visit.complaints == []
    for text in HOSTILE:
        assert shown.count(printable(text)) == 2, text
    assert shown[-1] == printable(explained["prompt"])


def brightness(visit: Visit, css: str) -> float:
    """Of a CSS colour property of the body, 0 to 255."""
    numbers = visit.run(f"getComputedStyle(document.body)['{css}'].match(/\\d+/g).map(Number)")
    return sum(numbers[:3]) / 3


def test_it_is_light_by_day_and_dark_by_night(browser: Browser, tmp_path: Path) -> None:
    html = demo().to_html()
    with Visit(browser, html, tmp_path, scheme="light") as visit:
        assert brightness(visit, "backgroundColor") > 240
        assert brightness(visit, "color") < 60
    with Visit(browser, html, tmp_path, scheme="dark") as visit:
        assert brightness(visit, "backgroundColor") < 40
        assert brightness(visit, "color") > 200


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["demo", "thorough", "hostile", "empty", "over_budget"])
def test_it_is_accessible(browser: Browser, name: str, scheme: Any, width: int) -> None:
    """axe-core's rules: contrast, landmarks, names, tables, keyboard."""
    from axe_playwright_python.sync_playwright import Axe

    # the checker is a script, which the page's own policy forbids
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.set_content(EXPLANATIONS[name]().to_html())
    page.evaluate(OPEN_ALL)
    violations = Axe().run(page).response["violations"]
    context.close()
    assert [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in violations] == []


def test_a_phone_shows_every_figure(browser: Browser, tmp_path: Path) -> None:
    """Nothing is left out where there is little room."""
    seen = """[...document.querySelectorAll('data')].filter(d => d.checkVisibility()).map(d => d.dataset.key)"""
    html = demo().to_html()
    with Visit(browser, html, tmp_path, width=WIDE) as wide, Visit(browser, html, tmp_path, width=PHONE) as phone:
        wide.run(OPEN_ALL)
        phone.run(OPEN_ALL)
        assert phone.run(seen) == wide.run(seen)


def test_without_colour_the_parts_differ(browser: Browser, tmp_path: Path) -> None:
    script = """['user', 'assistant', 'exact', 'recency'].map(part => getComputedStyle(
        document.querySelector('.swatch.part-' + part)).backgroundImage.replace(/rgba?\\([^)]*\\)/g, ''))"""
    with Visit(browser, demo().to_html(), tmp_path) as visit:
        assert len(set(visit.run(script))) == 4


def test_paper_shows_what_is_folded(browser: Browser, tmp_path: Path) -> None:
    with Visit(browser, demo().to_html(), tmp_path) as visit:
        shown = "[...document.querySelectorAll('article .side, .group tr')].map(e => e.checkVisibility())"
        assert False in visit.run(shown)
        visit.page.emulate_media(media="print")
        assert False not in visit.run(shown)
        assert not visit.page.get_by_role("navigation").is_visible()


def test_a_thousand_turns_stay_usable(browser: Browser, tmp_path: Path) -> None:
    explained = many_turns()
    turn_id = explained["steps"][0]["turn_id"]
    with Visit(browser, explained.to_html(), tmp_path, width=PHONE) as visit:
        cells = visit.run("[...document.querySelectorAll('.cells > li:not(.row-label):not(.asked)')].map("
                          "cell => { const box = cell.getBoundingClientRect(); return [box.width, box.height] })")
        assert len(cells) == 1000
        assert all(width >= 6 and height >= 12 for width, height in cells)
        visit.page.get_by_role("link", name=f"turn {turn_id}, topic of turn").click()
        assert visit.page.url.endswith(f"#turn-{turn_id}")
        assert visit.page.get_by_role("article", name=f"Turn {turn_id}").is_visible()


def test_a_notebook_shows_it_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    page = f"<!doctype html><title>notebook</title><h2>cell</h2>{hostile()._repr_html_()}"
    with Visit(browser, page, tmp_path) as visit:
        frame = visit.page.frame_locator("iframe")
        assert frame.locator("h1").text_content() == printable(hostile()["query"])
        frame.get_by_role("link", name="Prompt", exact=True).click()
        assert frame.locator("#prompt:target").is_visible()  # waits: the frame itself went there
        assert visit.page.url.endswith("report.html")
        assert visit.complaints == []
        assert visit.run("getComputedStyle(document.querySelector('h2')).fontSize") == "24px"  # no style leaks
