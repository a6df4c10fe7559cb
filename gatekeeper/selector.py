"""What goes in: the greedy minimum cover, or whole blocks by score."""

from __future__ import annotations

from gatekeeper._core.bm25 import cost_power
from gatekeeper.block import COVERED, EMPTY, NO_ROOM, NOTHING_NEW, Candidate, Step
from gatekeeper.corpus import ASSISTANT, USER, Corpus
from gatekeeper.pruning import find_best_sentences, find_held, idf_mass, keep, keep_whole, whole
from gatekeeper.sparse import QueryArrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatekeeper.context import Ranking

    Spans = list[tuple[int, int]]

MAX_MISSES = 8  # blocks or sentences in a row that do not fit
LOOKED_AT_ONCE = 16

# The exponent 0.8 of the gain's cost is a constant of the algorithm; `cost_power` is it.


class Cover:
    """The choice as it grows: steps taken, anchors covered, budget left, and why the others stayed out."""

    def __init__(self, candidates: Sequence[Candidate], idf: Sequence[float], budget: int) -> None:
        self.idf = idf
        self.budget_left = budget
        self.steps: list[Step] = []
        self.covered = 0
        self.covered_mass = 0.0
        self.this_cover = 0  # covered since the cover began anew
        self.this_mass = 0.0
        coverable = 0
        for candidate in candidates:
            coverable |= candidate.covers
        self._masses: dict[int, float] = {}  # blocks of one topic cover much the same
        self.coverable_mass = idf_mass(coverable, idf)
        self.reasons = {c.turn_id: EMPTY for c in candidates if is_empty(c)}

    def gain(self, candidate: Candidate) -> float:
        """Idf mass of what the block would newly cover, over cost ** 0.8."""
        new = candidate.covers & ~self.this_cover
        if not new:
            return 0.0
        mass = self._masses.get(new)
        if mass is None:
            mass = self._masses[new] = idf_mass(new, self.idf)
        return mass / cost_power(candidate.block_cost or candidate.cost)

    def begin_again(self) -> None:
        """Cover everything once more, by other blocks."""
        self.this_cover = 0
        self.this_mass = 0.0

    def take(self, candidate: Candidate, gain: float) -> None:
        new = candidate.covers & ~self.covered
        if new:
            self.covered |= new
            self.covered_mass = idf_mass(self.covered, self.idf)
        if candidate.covers & ~self.this_cover:
            self.this_cover |= candidate.covers
            self.this_mass = idf_mass(self.this_cover, self.idf)
        self.budget_left -= candidate.cost
        self.steps.append(Step(candidate, gain, new, self.covered_mass))


def is_empty(candidate: Candidate) -> bool:
    """Whether pruning left nothing of either side."""
    return not candidate.user and not candidate.assistant


def without_outshone(
    candidates: Sequence[Candidate], idf: Sequence[float], least_of_best: float, least_new_mass: float
) -> list[Candidate]:
    """Those that reach a share of the best coverage, or hold much of the query that none of these does."""
    least = least_of_best * max([candidate.coverage for candidate in candidates], default=0.0)
    covered = 0
    for candidate in candidates:
        if candidate.coverage >= least:
            covered |= candidate.covers
    return [c for c in candidates
            if c.coverage >= least or idf_mass(c.covers & ~covered, idf) >= max(least_new_mass, 1e-9)]


def cover_minimum(
    candidates: Sequence[Candidate], idf: Sequence[float], budget: int, coverage_stop: float, n_covers: int = 1
) -> Cover:
    """Greedy cover: the greatest gain that fits, until `coverage_stop` of the coverable idf mass is covered n times.

    Ties go to the higher score, then to the newer turn. Sets the reason of every candidate that stays out.
    """
    cover = Cover(candidates, idf, budget)
    left = [candidate for candidate in candidates if not is_empty(candidate)]
    while left:
        if cover.this_mass >= coverage_stop * cover.coverable_mass:
            n_covers -= 1
            if not n_covers:
                break
            cover.begin_again()
        gains = [(cover.gain(c), c.score, c.turn_id, c) for c in left if c.cost <= cover.budget_left]
        best = max(gains, key=lambda entry: entry[:3], default=None)
        if best is None or best[0] <= 0.0:
            break
        cover.take(best[3], best[0])
        left.remove(best[3])
    for candidate in left:
        if not candidate.covers & ~cover.this_cover:
            cover.reasons[candidate.turn_id] = NOTHING_NEW
        else:
            enough = cover.this_mass >= coverage_stop * cover.coverable_mass
            cover.reasons[candidate.turn_id] = COVERED if enough else NO_ROOM
    return cover


def fill_budget(
    corpus: Corpus, candidates: Sequence[Candidate] | Ranking, arrays: QueryArrays, budget: int,
    cost_of: Callable[[Candidate], int], is_short: Callable[[str], bool],
) -> Cover:  # fmt: skip
    """Blocks by score: short sides whole, of a long user's side the best sentences, a long assistant's side last.

    What budget is left restores sentences of the sides that were cut, in the order of the blocks. After MAX_MISSES
    blocks in a row that do not fit the others are not looked at, and have no reason. A step covers all that its turn
    holds.
    """
    cover = Cover((), arrays.idf, budget)
    cut: list[Candidate] = []
    n_misses = held = first = 0
    while first < len(candidates) and n_misses < MAX_MISSES:
        looked_at = candidates[first : first + LOOKED_AT_ONCE]
        first += LOOKED_AT_ONCE
        _look_at(corpus, looked_at, arrays, is_short)
        for candidate in looked_at:
            if is_empty(candidate):
                cover.reasons[candidate.turn_id] = EMPTY
                continue
            held |= candidate.holds
            candidate.cost = cost_of(candidate)
            if candidate.cost > cover.budget_left:
                cover.reasons[candidate.turn_id] = NO_ROOM
                n_misses += 1
                if n_misses == MAX_MISSES:
                    break
                continue
            n_misses = 0
            candidate.covers = candidate.holds
            cover.take(candidate, cover.gain(candidate))
            if not _is_whole(corpus, candidate):
                cut.append(candidate)
    _restore_all(corpus, cut, cover, cost_of)
    cover.coverable_mass = idf_mass(held, arrays.idf)
    return cover


def _look_at(
    corpus: Corpus, candidates: Sequence[Candidate], arrays: QueryArrays, is_short: Callable[[str], bool]
) -> None:
    """Find what candidates hold, and keep what goes in of them at first: short sides, and sentences of a long one."""
    find_held(corpus, candidates, arrays)
    long: list[tuple[Candidate, bool, bool]] = []
    for candidate in candidates:
        user, assistant = corpus.texts[candidate.turn_id] or ("", "")
        short = is_short(user), is_short(assistant)
        if all(short):
            keep_whole(corpus, candidate)
        else:
            long.append((candidate, *short))
    find_best_sentences(corpus, [candidate for candidate, *_ in long], arrays)
    for candidate, user_is_short, assistant_is_short in long:
        block = corpus.block(candidate.turn_id)
        kept_user, kept_assistant = candidate.kept
        if user_is_short:
            kept_user = whole(block.user)
        if assistant_is_short:
            kept_assistant = whole(block.assistant)
        elif kept_user:
            kept_assistant = []
        keep(corpus, candidate, kept_user, kept_assistant)


def _is_whole(corpus: Corpus, candidate: Candidate) -> bool:
    user, assistant = corpus.texts[candidate.turn_id] or ("", "")
    return candidate.user == user.strip() and candidate.assistant == assistant.strip()


def _restore_all(
    corpus: Corpus, cut: Sequence[Candidate], cover: Cover, cost_of: Callable[[Candidate], int]
) -> None:
    """Restore what was cut, block by block; after MAX_MISSES sentences in a row that do not fit there is no room."""
    n_misses = 0
    for candidate in cut:
        if n_misses >= MAX_MISSES or cover.budget_left <= 0:
            return
        block = corpus.block(candidate.turn_id)
        if _grow(corpus, candidate, cover, cost_of, (whole(block.user), whole(block.assistant))):
            n_misses = 0
        else:
            n_misses = _restore(corpus, candidate, cover, cost_of, n_misses)


def _restore(
    corpus: Corpus, candidate: Candidate, cover: Cover, cost_of: Callable[[Candidate], int], n_misses: int
) -> int:
    """Put back sentences of a pruned block while they fit, those nearest to a kept one first. Misses in a row.

    More and more at once while these fit, then fewer and fewer: O(text of the block x log sentences).
    """
    missing = _missing(corpus, candidate)
    place, at_once, is_growing = 0, 1, True
    while place < len(missing):
        batch = missing[place : place + at_once]
        if _grow(corpus, candidate, cover, cost_of, _with(candidate.kept, batch)):
            n_misses = 0
            place += at_once
            at_once = 2 * at_once if is_growing else max(1, at_once // 2)
        elif len(batch) > 1:
            at_once = len(batch) // 2
            is_growing = False
        else:
            n_misses += 1
            if batch[0][0] > 1 or n_misses >= MAX_MISSES:
                break
            place, at_once, is_growing = place + 1, 1, True
    return n_misses


def _with(kept: tuple[Spans, Spans], missing: Sequence[tuple[int, int, tuple[int, int]]]) -> tuple[Spans, Spans]:
    """The kept spans of both sides with those of missing sentences, in their order."""
    grown = list(kept[USER]), list(kept[ASSISTANT])
    for _, side, span in missing:
        grown[side].append(span)
    return sorted(grown[USER]), sorted(grown[ASSISTANT])


def _grow(
    corpus: Corpus, candidate: Candidate, cover: Cover, cost_of: Callable[[Candidate], int],
    sides: tuple[Spans, Spans],
) -> bool:  # fmt: skip
    """Keep more of a chosen block if that fits."""
    kept, cost = candidate.kept, candidate.cost
    keep(corpus, candidate, *sides)
    candidate.cost = cost_of(candidate)
    if candidate.cost - cost > cover.budget_left:
        keep(corpus, candidate, *kept)
        candidate.cost = cost
        return False
    cover.budget_left -= candidate.cost - cost
    return True


def _missing(corpus: Corpus, candidate: Candidate) -> list[tuple[int, int, tuple[int, int]]]:
    """The pruned sentences as (distance in sentences to the nearest kept one, side, span), nearest first."""
    missing = []
    for side, text in enumerate(corpus.texts[candidate.turn_id] or ("", "")):
        if candidate.kept[side] == whole(text):
            continue
        ends = corpus.matrix.sentence_ends(candidate.turn_id, side)
        spans = list(zip([0, *ends], ends, strict=False))
        kept = set(candidate.kept[side])
        distances = _distances([span in kept for span in spans])
        missing += [(distance, side, span) for distance, span in zip(distances, spans, strict=True) if distance]
    return sorted(missing)


def _distances(is_kept: Sequence[bool]) -> list[int]:
    """How far each place is from the nearest kept one: 0 for that itself, the number of places where none is kept."""
    n = len(is_kept)
    distances = [n] * n
    for places in (range(n), reversed(range(n))) if True in is_kept else ():
        distance = n
        for i in places:
            distance = 0 if is_kept[i] else distance + 1
            if distance < distances[i]:
                distances[i] = distance
    return distances
