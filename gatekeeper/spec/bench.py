"""What recall is worth, measured: on the benches that come with it, and on the user's own library."""

from __future__ import annotations

import random
from dataclasses import replace
from os import path
from time import perf_counter
from typing import NamedTuple

from gatekeeper.spec.classifying import classify
from gatekeeper.spec.index import TemplateIndex
from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.matching import rank
from gatekeeper.spec.model import GLOBAL, Template
from gatekeeper.spec.preparing import prepare, should_skip_matching
from gatekeeper.spec.settings import FP_VERSION, MAX_FINGERPRINT_TOKENS, SpecSettings
from gatekeeper.spec.tokenizing import query_fingerprint, template_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from gatekeeper.spec.model import Match

_FOLDER = path.dirname(path.abspath(__file__))
CAPS = (24, 32, 40)


class Row(NamedTuple):
    """One figure: what was reached, what was to be reached, and whether it was. unit: "", "ms", "tokens"."""

    name: str
    value: str
    target: str
    holds: bool


class Answer(NamedTuple):
    """What a request found. expected, found: template ids, "" for none; lexical: of the best template by words."""

    request: str
    expected: str
    found: str
    lexical: float

    @property
    def is_right(self) -> bool:
        return self.expected == self.found


class CapFigures(NamedTuple):
    """One cap of fingerprints. A recall counts the templates that come first for their own words."""

    cap: int
    n_templates: int
    n_self: int
    mean_self: float
    n_body: int
    top_unrelated: float
    n_false: int


def _read(name: str) -> Any:
    from json import loads

    with open(path.join(_FOLDER, name), "rb") as file:
        return loads(file.read())


def bench_library(cap: int = MAX_FINGERPRINT_TOKENS) -> list[Template]:
    """The seven templates of the benches, with fingerprints of at most `cap` tokens."""
    templates = []
    for entry in _read("bench_library.json"):
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        templates.append(with_fingerprint(Template(**values, scope=GLOBAL), cap))
    return templates


def with_fingerprint(template: Template, cap: int = MAX_FINGERPRINT_TOKENS) -> Template:
    """The template with a fingerprint of its whole text."""
    return replace(template, fingerprint=template_fingerprint(template, cap=cap), fp_version=FP_VERSION)


def answer(request: str, templates: Sequence[Template], expected: str = "") -> Answer:
    """What a request finds, by the plain formula."""
    if should_skip_matching(request):
        return Answer(request, expected, "", 0.0)
    matches = rank(query_fingerprint(prepare(request).text), templates)
    best = matches[0] if matches and matches[0].hit else None
    return Answer(request, expected, best.template.id if best else "", _most(matches))


def _most(matches: Iterable[Match]) -> float:
    return max((match.score.lexical for match in matches), default=0.0)


# --- the benches


def bench_requests() -> tuple[list[Answer], list[Answer]]:
    """The 16 requests, 12 of a topic of the library and 4 of none, and ten everyday requests of no topic."""
    templates, requests = bench_library(), _read("bench_requests.json")
    sixteen = [answer(request, templates, expected) for request, expected in requests["same_topic"]]
    sixteen += [answer(request, templates) for request in requests["unrelated"]]
    return sixteen, [answer(request, templates) for request in requests["everyday"]]


def bench_cap(caps: Sequence[int] = CAPS) -> list[CapFigures]:
    """For each cap: recall by the trigger, recall by the approach, and the best score of the unrelated requests."""
    unrelated = _read("bench_requests.json")["unrelated"]
    figures = []
    for cap in caps:
        templates = bench_library(cap)
        by_trigger = [answer(template.trigger, templates, template.id) for template in templates]
        by_body = [answer("\n".join(template.approach), templates, template.id) for template in templates]
        others = [answer(request, templates) for request in unrelated]
        figures.append(CapFigures(
            cap, len(templates), sum(found.is_right for found in by_trigger),
            sum(found.lexical for found in by_trigger) / len(by_trigger), sum(found.is_right for found in by_body),
            max(found.lexical for found in others), sum(not found.is_right for found in others)))  # fmt: skip
    return figures


def synthetic_library(n_templates: int, seed: int = 7) -> list[Template]:
    """Templates of random technical words and names: for timing, the same for the same seed."""
    rng = random.Random(seed)
    words = [word for word in word_list("terms").tags if not word.isascii()]
    latin = [word for word in word_list("terms").tags if word.isascii()]
    characters = "商店仓库门禁排班合同票据税率券积分会员评论收藏地图定位签到盘点调拨采购报价"
    nouns = ["".join(rng.choices(characters, k=2)) for _ in range(400)]

    def phrase(n_words: int) -> str:
        return "".join(rng.choice(rng.choice((words, nouns, nouns))) for _ in range(n_words))

    return [with_fingerprint(Template(
        f"tpl-{number:010x}", phrase(3), rng.choice(("feature/x", "bugfix/x", "frontend/x")), GLOBAL,
        tuple(rng.sample(latin, 3)), f"用户说「{phrase(4)}」「{phrase(3)}」",
        approach=tuple(f"{phrase(5)} src/{rng.choice(latin)}/{number % 97}.ts" for _ in range(4))))
        for number in range(n_templates)]  # fmt: skip


def time_recall(n_templates: int, *, n_requests: int = 40) -> float:
    """Milliseconds of one recall over a cached library, from raw text to hits: the median over requests."""
    templates = synthetic_library(n_templates)
    index, settings = TemplateIndex(templates), SpecSettings()
    requests = [template.trigger[4:24] for template in templates[:: max(1, n_templates // n_requests)]]

    def recall(request: str) -> object:
        query = query_fingerprint(prepare(request).text)
        return index.recall(query, threshold=settings.match_threshold, max_templates=settings.max_inject_templates)

    return _median_ms(recall, requests)


def time_classify() -> float:
    """Milliseconds to grade one text: the median over the requests of the benches."""
    requests = _read("bench_requests.json")
    return _median_ms(
        classify, [*requests["everyday"], *requests["unrelated"], *(text for text, _ in requests["same_topic"])]
    )


def _median_ms(run: Callable[[str], object], requests: Sequence[str], n_rounds: int = 5) -> float:
    """The median over requests of the best of some rounds, in milliseconds."""
    best = []
    for request in requests:
        times = []
        for _ in range(n_rounds):
            start = perf_counter()
            run(request)
            times.append(perf_counter() - start)
        best.append(min(times) * 1000.0)
    return sorted(best)[len(best) // 2]


def bench_rows() -> list[Row]:
    """Every figure that this module measures, against its target."""
    sixteen, everyday = bench_requests()
    same = [found for found in sixteen if found.expected]
    n_right = sum(found.is_right for found in same)
    n_false = sum(not found.is_right for found in sixteen if not found.expected)
    rows = [
        Row(
            "16 requests: hits, false",
            f"{n_right}/{len(same)}, {n_false}",
            "12/12, 0",
            n_right == len(same) and not n_false,
        )
    ]
    for cap in bench_cap():
        recalls = f"{cap.n_self}/{cap.n_templates}, {cap.n_body}/{cap.n_templates}"
        value = f"{recalls}, {cap.top_unrelated:.3f}, {cap.n_false} (mean {cap.mean_self:.3f})"
        is_default = cap.cap == MAX_FINGERPRINT_TOKENS
        holds = cap.n_self == cap.n_body == cap.n_templates and cap.top_unrelated < 0.15 and not cap.n_false
        rows.append(Row(f"cap {cap.cap}: self, body, top unrelated, false", value,
                        "7/7, 7/7, < 0.15, 0" if is_default else "", holds or not is_default))  # fmt: skip
    n_false = sum(not found.is_right for found in everyday)
    rows.append(Row("ten everyday requests: false hits", str(n_false), "0", not n_false))
    for n_templates, most in ((300, 0.5), (10_000, 2.0)):
        spent = time_recall(n_templates)
        rows.append(Row(f"recall over {n_templates} templates", f"{spent:.3f} ms", f"<= {most} ms", spent <= most))
    spent = time_classify()
    rows.append(Row("grade one text", f"{spent * 1000:.0f} us", "<= 50 us", spent <= 0.05))
    return rows
