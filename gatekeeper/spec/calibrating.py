"""Calibration on the user's own library: how far true requests stand from false ones, and where to draw the line."""

from __future__ import annotations

from typing import NamedTuple

from gatekeeper.spec.matching import common_tokens, points_of, score, verdict_of
from gatekeeper.spec.model import HIT
from gatekeeper.spec.preparing import prepare, should_skip_matching
from gatekeeper.spec.settings import SpecSettings
from gatekeeper.spec.tokenizing import query_fingerprint, quoted_phrases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatekeeper.spec.model import Template

N_BINS = 20  # of the distribution, 0 to 1


class Pair(NamedTuple):
    """A request in the words of one template against one template. is_own: that template is the same."""

    request: str
    own_id: str
    template_id: str
    lexical: float
    has_evidence: bool

    @property
    def is_own(self) -> bool:
        return self.own_id == self.template_id


class Calibration(NamedTuple):
    """The pairwise distribution and what follows.

    least_own, most_other: the lowest score of a request against its own template, the highest against another one
    with topic evidence. proposed: the threshold with the fewest errors at it, the customary one if that has as few.
    n_missed, n_false: the errors at the proposed threshold.
    """

    pairs: list[Pair]
    least_own: float
    most_other: float
    proposed: float
    n_missed: int
    n_false: int

    def histogram(self, *, own: bool) -> list[int]:
        """How many pairs fall into each twentieth of 0 to 1."""
        bins = [0] * N_BINS
        for pair in self.pairs:
            if pair.is_own == own:
                bins[min(N_BINS - 1, int(pair.lexical * N_BINS))] += 1
        return bins


def requests_of(template: Template) -> list[str]:
    """How a user asks for a template: the phrases quoted in its trigger, short ones too, and the whole trigger.

    Without a trigger, its name.
    """
    requests = [*quoted_phrases(template.trigger), template.trigger or template.name]
    return [request for request in dict.fromkeys(requests) if not should_skip_matching(request)]


def calibrate(templates: Sequence[Template], settings: SpecSettings | None = None) -> Calibration:
    """Every request in the words of the library against every template of it. O(requests x templates)."""
    customary = (settings or SpecSettings()).match_threshold
    common = common_tokens([template.fingerprint for template in templates])
    pairs = []
    for own in templates:
        for request in requests_of(own):
            query = query_fingerprint(prepare(request).text)
            for template in templates:
                found = score(query, template.fingerprint, common=common)
                has_evidence = verdict_of(found.lexical, points_of(query, found), 0.0) == HIT
                pairs.append(Pair(request, own.id, template.id, found.lexical, has_evidence))
    own_scores = [pair.lexical for pair in pairs if pair.is_own]
    other_scores = [pair.lexical for pair in pairs if not pair.is_own and pair.has_evidence]
    proposed = _propose(pairs, customary)
    n_missed, n_false = errors_at(pairs, proposed)
    return Calibration(pairs, min(own_scores, default=0.0), max(other_scores, default=0.0), proposed, n_missed, n_false)


def errors_at(pairs: Sequence[Pair], threshold: float) -> tuple[int, int]:
    """How many own templates a threshold misses, and how many others it lets through."""
    n_missed = sum(pair.is_own and not (pair.has_evidence and pair.lexical >= threshold) for pair in pairs)
    n_false = sum(not pair.is_own and pair.has_evidence and pair.lexical >= threshold for pair in pairs)
    return n_missed, n_false


def _propose(pairs: Sequence[Pair], customary: float) -> float:
    """The threshold of 0.05 to 0.50, in steps of 0.01, with the fewest errors; the nearest to the customary one."""
    candidates = [step / 100 for step in range(5, 51)]
    return min((*candidates, customary), key=lambda line: (sum(errors_at(pairs, line)), abs(line - customary)))
