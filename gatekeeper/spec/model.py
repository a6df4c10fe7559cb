"""The records of spec recall: what the stages hand on, and what a library stores."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# the verdict of one template
HIT = "hit"
BELOW_THRESHOLD = "below threshold"
NO_TOPIC_EVIDENCE = "no topic evidence"
SKIPPED = "skipped: too short"

GLOBAL = "global"
PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A requirement without pasted noise.

    fields: keys of the stripped JSON, backfilled behind the text; removed: how many of code, stack, json, hex, path.
    """

    text: str
    fields: tuple[str, ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Tokens with their weights, in order of appearance. paths: those that came from a path or a file name."""

    weights: Mapping[str, float]
    paths: frozenset[str] = frozenset()

    def lines(self) -> list[str]:
        """The stored form, `token|weight` each."""
        return [f"{token}|{weight:g}" for token, weight in self.weights.items()]


@dataclass(frozen=True, slots=True)
class Query(Fingerprint):
    """The fingerprint of a requirement, with its tags (normalised, 8 at most) and its category ("" when unsure)."""

    tags: tuple[str, ...] = ()
    category: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """One spec template. category: the first path segment counts; repo: "" for a global one.

    created, updated: dates as text, ISO 8601; the uses of a template are kept apart, in `Usage`.
    """

    id: str
    name: str
    category: str = "uncategorized"
    scope: str = PROJECT
    tags: tuple[str, ...] = ()
    trigger: str = ""
    clarify: tuple[str, ...] = ()
    approach: tuple[str, ...] = ()
    redlines: tuple[str, ...] = ()
    prompt: str = ""
    acceptance: tuple[str, ...] = ()
    fingerprint: Fingerprint = Fingerprint({})
    fp_version: int = 0
    repo: str = ""
    created: str = ""
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """How often a template was injected, and how many days ago last; None for never."""

    hits: int = 0
    days: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds for every task of one project."""

    repo_name: str = ""
    redlines: tuple[str, ...] = ()
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """How near a query is to a template; see `matching.score`. ignored: shared tokens that are no evidence."""

    cosine: float
    coverage: float
    lexical: float
    shared: tuple[str, ...] = ()
    topic_evidence: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def has_topic_evidence(self) -> bool:
        return bool(self.topic_evidence)


@dataclass(frozen=True, slots=True)
class Priors:
    """What orders hits but never makes one, 0 to 1 each."""

    same_category: float = 0.0
    tag_overlap: float = 0.0
    same_repo: float = 0.0
    recency: float = 0.0
    popularity: float = 0.0


@dataclass(frozen=True, slots=True)
class Match:
    """A template as one query sees it."""

    template: Template
    score: Score
    priors: Priors
    rank_score: float
    verdict: str

    @property
    def hit(self) -> bool:
        return self.verdict == HIT


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one template matches a text, or why not; see `explaining.explain`.

    query, template: token to weight; verdict: one of the four; line: the verdict in one sentence.
    """

    template_id: str
    name: str
    prepared: Prepared
    query: Mapping[str, float]
    template: Mapping[str, float]
    score: Score
    priors: Priors
    rank_score: float
    threshold: float
    verdict: str
    line: str


@dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """A template as it may be written. dropped: task-scoped redlines; hoisted: those for the profile.

    masked: how many secrets of each kind were masked.
    """

    template: Template
    dropped: tuple[str, ...] = ()
    hoisted: tuple[str, ...] = ()
    masked: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Distilled:
    """The prompt of `spec_distill`."""

    text: str
    missing_constraints: bool = False
