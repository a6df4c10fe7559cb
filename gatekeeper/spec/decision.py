"""The records of the decision: what is said of a raw requirement. Apart from the others, so that a hook starts fast."""

from __future__ import annotations

from typing import NamedTuple

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


class Inferred(NamedTuple):
    """What the text itself gives; None where it does not."""

    component: str | None = None
    field: str | None = None
    default: str | None = None
    file: str | None = None


class Gap(NamedTuple):
    """What is missing of a thing to add or to remove.

    key: button, column, route, dialog, ...; deleting: the question is which one; words: the user's own words for it.
    """

    key: str
    deleting: bool = False
    words: str = ""


class Classification(NamedTuple):
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


class Triage(NamedTuple):
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


class NextStep(NamedTuple):
    """The one next step (implement, confirm, triage or none), why, and what it allows."""

    step: str
    reason: str
    may_ask: bool
    n_round_trips: int


class Decision(NamedTuple):
    """All that is decided from the raw text alone; recall and the per-turn note share it."""

    classification: Classification
    triage: Triage
    next_step: NextStep
