"""The records of spec recall: what the stages hand on, and what a library stores."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# the next step of a requirement
IMPLEMENT = "implement"
CONFIRM = "confirm"
TRIAGE = "triage"
NONE = "none"  # no coding request: nothing to inject, nothing to ask

# why this step
FAST = "fast"
GAP = "gap"
UNACTIONABLE = "unactionable"
ASKED = "asked"  # the user wishes to be asked first
DEFAULTS = "defaults"
L3 = "l3"
CHAT = "chat"

# the status of a dimension
COVERED = "covered"
PARTIAL = "partial"
MISSING = "missing"

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
class Inferred:
    """What the text itself gives; None where it does not."""

    component: str | None = None
    field: str | None = None
    default: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing of a thing to add or to remove.

    key: button, column, route, dialog, ...; deleting: the question is which one; words: the user's own words for it.
    """

    key: str
    deleting: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True)
class Classification:
    """The grade of a raw requirement, with the signals that produced it.

    level: 1 to 3; family: the rule that fired (copy, button, crud, refactor, ..., "default"); skip_trigger: the
    fast-track word, if one counts; is_coding: False for plain chat; is_english: no Chinese in it.
    """

    level: int
    fast_track: bool
    family: str
    signals: tuple[str, ...] = ()
    gap: Gap | None = None
    inferred: Inferred = Inferred()
    skip_trigger: str | None = None
    wants_asking: bool = False
    is_coding: bool = True
    is_english: bool = False

    @property
    def content_gap(self) -> str | None:
        return self.gap.key if self.gap else None


@dataclass(frozen=True, slots=True)
class Triage:
    """The four dimensions of a requirement and what follows. anchors: what it gives to start from."""

    dimensions: Mapping[str, str]
    length: int
    too_short: bool
    anchors: tuple[str, ...]
    unactionable: bool
    ready: bool
    needs_clarify: bool
    has_path: bool = False

    def having(self, status: str) -> tuple[str, ...]:
        """The dimensions of one status, in the fixed order."""
        return tuple(key for key, value in self.dimensions.items() if value == status)


@dataclass(frozen=True, slots=True)
class NextStep:
    """The one next step (implement, confirm, triage or none), why, and what it allows."""

    step: str
    reason: str
    may_ask: bool
    n_round_trips: int


@dataclass(frozen=True, slots=True)
class Decision:
    """All that is decided from the raw text alone; recall and the per-turn note share it."""

    classification: Classification
    triage: Triage
    next_step: NextStep


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
