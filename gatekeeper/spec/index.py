"""A library as a sparse term matrix: every template against a query in one pass of the compiled kernel."""

from __future__ import annotations

from array import array

from gatekeeper._core.fingerprint import columns_of, rows_from, score_rows
from gatekeeper.spec.matching import (
    COSINE_SHARE,
    COVERAGE_SHARE,
    LEXICAL_SHARE,
    PRIOR_SHARE,
    RANK_DIGITS,
    coverage_mass,
    evidence_points,
    norm,
    priors_of,
    rank_score,
    score,
    verdict_of,
)
from gatekeeper.spec.model import HIT, Match, Usage
from gatekeeper.spec.settings import DF_MAX_RATIO, DF_MIN_TEMPLATES
from gatekeeper.spec.tokenizing import damp_generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gatekeeper.spec.model import Query, Template

_NEVER = Usage()


_FLOORS = (0.7, 0.5, 0.35, 0.25)  # looked at from above, so that a large library costs no more than its best rows
_ROUNDING = 1e-9


class TemplateIndex:
    """Fingerprints as rows of a term matrix (CSC): what `matching.rank` gives, faster.

    Built once for a set of templates and never changed. Scores equal the plain formula to rounding.
    """

    __slots__ = ("_common", "_indptr", "_norms", "_rows", "_term_ids", "_weights", "templates")

    def __init__(self, templates: Sequence[Template]) -> None:
        self.templates = tuple(templates)
        ids: dict[str, int] = {}
        indptr, terms, weights = array("q", [0]), array("i"), array("d")
        for template in self.templates:
            found = damp_generic(template.fingerprint).weights
            terms.extend([ids.setdefault(token, len(ids)) for token in found])
            weights.extend(found.values())
            indptr.append(len(terms))
        self._term_ids = ids
        self._indptr, self._rows, self._weights, self._norms = columns_of(indptr, terms, weights, len(ids))
        self._common = self._common_tokens()

    def __len__(self) -> int:
        return len(self.templates)

    def _common_tokens(self) -> frozenset[str]:
        """As `matching.common_tokens` has them."""
        if len(self.templates) < DF_MIN_TEMPLATES:
            return frozenset()
        most, starts = DF_MAX_RATIO * len(self.templates), self._indptr
        return frozenset(token for token, i in self._term_ids.items() if starts[i + 1] - starts[i] > most)

    def scores(self, query: Query) -> tuple[array[float], array[int]]:
        """The lexical score of every template, and its evidence points; float64[n], int32[n]."""
        scores = array("d", bytes(8 * len(self.templates)))
        evidence = array("i", bytes(4 * len(self.templates)))
        known = [token for token in query.weights if token in self._term_ids]
        weights = [float(query.weights[token]) for token in known]
        score_rows(
            self._indptr, self._rows, self._weights, self._norms,
            array("q", [self._term_ids[token] for token in known]), array("d", weights),
            array("d", [0.0 if token in query.paths else weight for token, weight in zip(known, weights, strict=True)]),
            array("i", [evidence_points(token, weight, is_common=token in self._common)
                        for token, weight in zip(known, weights, strict=True)]),
            norm(query), float(coverage_mass(query)), COSINE_SHARE, COVERAGE_SHARE, scores, evidence)  # fmt: skip
        return scores, evidence

    def recall(
        self,
        query: Query,
        *,
        threshold: float,
        max_templates: int,
        repo: str = "",
        usage: Mapping[str, Usage] | None = None,
    ) -> list[Match]:
        """The best hits, best first: what heads `matching.rank`. Only rows that can be among them are looked at."""
        scores, evidence = self.scores(query)
        best: list[tuple[float, str, int]] = []
        for floor in (*(step for step in _FLOORS if step > threshold), threshold):
            best, bar = [], -1.0
            for row in rows_from(scores, floor):
                most = LEXICAL_SHARE * scores[row] + PRIOR_SHARE  # with every prior
                if most < bar or verdict_of(scores[row], evidence[row], threshold) != HIT:
                    continue
                template = self.templates[row]
                priors = priors_of(query, template, repo=repo, usage=(usage or {}).get(template.id, _NEVER))
                best.append((-round(rank_score(scores[row], priors), RANK_DIGITS), template.id, row))
                if len(best) > max_templates:
                    best.sort()
                    best.pop()
                    bar = -best[-1][0] - _ROUNDING
            best.sort()
            if len(best) == max_templates and -best[-1][0] >= LEXICAL_SHARE * floor + PRIOR_SHARE:
                break  # what scores below the floor is no better
        return [self._match(query, row, repo, usage) for _, _, row in best]

    def _match(self, query: Query, row: int, repo: str, usage: Mapping[str, Usage] | None) -> Match:
        """The full account of one hit, by the plain formula."""
        template = self.templates[row]
        found = score(query, template.fingerprint, common=self._common)
        priors = priors_of(query, template, repo=repo, usage=(usage or {}).get(template.id, _NEVER))
        return Match(template, found, priors, rank_score(found.lexical, priors), HIT)
