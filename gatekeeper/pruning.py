"""Sentence pruning: of each side, the sentences that hold an anchor of the query."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from gatekeeper._core.vocabulary import sentence_ends
from gatekeeper.anchor import fold
from gatekeeper.block import Anchor, Candidate
from gatekeeper.corpus import ASSISTANT, USER, Corpus
from gatekeeper.sparse import QueryArrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Hit:
    """A sentence that holds anchors of the query: their positions in A(q), ascending, and their idf mass."""

    __slots__ = ("end", "held", "mass", "sentence", "start")

    def __init__(self, sentence: int, start: int, end: int, held: Sequence[int], mass: float) -> None:
        self.sentence = sentence
        self.start = start
        self.end = end
        self.held = held
        self.mass = mass


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; joined, they are the text."""
    ends = sentence_ends(text)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def bits_of(mask: int) -> list[int]:
    """The positions of the bits that are set, ascending. O(bits), also for a mask of a million."""
    return [i for i, bit in enumerate(bin(mask)[:1:-1]) if bit == "1"]


def mask_of(positions: Sequence[int]) -> int:
    """The mask with the bits at these ascending positions set."""
    if not positions:
        return 0
    bits = bytearray(positions[-1] // 8 + 1)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def idf_mass(mask: int, idf: Sequence[float]) -> float:
    """Sum of idf over the bits of a mask, from the first anchor to the last."""
    mass = 0.0
    for i in bits_of(mask):
        mass += idf[i]
    return mass


def prune(corpus: Corpus, candidates: Sequence[Candidate], anchors: Sequence[Anchor]) -> None:
    """Cut every candidate down to its best sentences: sets kept, covers and both texts; holds for whole blocks.

    At most `max_sentences` a side, those of the greatest idf mass, ties to the earlier one, in their order.
    The first sentence of the assistant is always kept and counts among them.
    """
    hits = sentence_hits(corpus, candidates, anchors)
    for position, candidate in enumerate(candidates):
        sides = []
        for side in (USER, ASSISTANT):
            side_hits = hits.get((position, side), [])
            first = _first_sentence(corpus, candidate.turn_id, side_hits) if side == ASSISTANT else None
            kept = best_sentences(side_hits, first, corpus.settings.max_sentences)
            sides.append([(hit.start, hit.end) for hit in kept])
            for hit in kept:
                candidate.covers |= mask_of(hit.held)
            if corpus.settings.whole_blocks:
                candidate.holds |= mask_of(sorted({i for hit in side_hits for i in hit.held}))
        keep(corpus, candidate, sides[USER], sides[ASSISTANT])


def best_sentences(hits: Iterable[Hit], first: Hit | None, max_sentences: int) -> list[Hit]:
    """The hits to keep, in order; `first` is among them whatever it holds."""
    ranked = sorted((hit for hit in hits if hit is not first), key=lambda hit: (-hit.mass, hit.sentence))
    kept = ranked[:max_sentences] if first is None else [first, *ranked[: max_sentences - 1]]
    return sorted(kept, key=lambda hit: hit.sentence)


def _first_sentence(corpus: Corpus, turn_id: int, hits: Sequence[Hit]) -> Hit | None:
    if hits and hits[0].sentence == 0:
        return hits[0]
    ends = corpus.matrix.sentence_ends(turn_id, ASSISTANT)
    return Hit(0, 0, ends[0], (), 0.0) if ends else None


def keep(corpus: Corpus, candidate: Candidate, user: list[tuple[int, int]], assistant: list[tuple[int, int]]) -> None:
    """Set a candidate's kept spans and texts; blanks at both ends of a side are left out."""
    block = corpus.block(candidate.turn_id)
    candidate.kept = (user, assistant)
    candidate.user = "".join([block.user[start:end] for start, end in user]).strip()
    candidate.assistant = "".join([block.assistant[start:end] for start, end in assistant]).strip()


def sentence_hits(
    corpus: Corpus, candidates: Sequence[Candidate], anchors: Sequence[Anchor]
) -> dict[tuple[int, int], list[Hit]]:
    """The sentences of the candidates that hold an anchor, by (position of the candidate, side), in order."""
    arrays = QueryArrays(anchors)
    turns = array("i", [candidate.turn_id for candidate in candidates])
    columns = corpus.matrix.sentence_hits(turns, arrays.term_ids, arrays.idf)
    held = columns[7]
    hits: dict[tuple[int, int], list[Hit]] = {}
    first = 0
    for position, side, sentence, start, end, mass, last in zip(*columns[:7], strict=True):
        hits.setdefault((position, side), []).append(Hit(sentence, start, end, held[first:last], mass))
        first = last
    for bit, anchor in enumerate(anchors):
        if anchor.is_searched:
            _add_searched(corpus, candidates, hits, bit, anchor, arrays.idf)
    return hits


def _add_searched(
    corpus: Corpus, candidates: Sequence[Candidate], hits: dict[tuple[int, int], list[Hit]], bit: int, anchor: Anchor,
    idf: Sequence[float],
) -> None:  # fmt: skip
    """Add the sentences in which a searched anchor begins; two sentences may hold it between them."""
    holders = {turn_id for turn_id, _, _ in anchor.postings}
    for position, candidate in enumerate(candidates):
        if candidate.turn_id not in holders:
            continue
        block = corpus.block(candidate.turn_id)
        for side, text in ((USER, block.user), (ASSISTANT, block.assistant)):
            ends = corpus.matrix.sentence_ends(candidate.turn_id, side)
            side_hits = hits.get((position, side), [])
            by_sentence = {hit.sentence: hit for hit in side_hits}
            for start in phrase_starts(text, anchor.text):
                sentence = bisect_right(ends, start)
                hit = by_sentence.setdefault(
                    sentence, Hit(sentence, ends[sentence - 1] if sentence else 0, ends[sentence], (), 0.0))
                hit.held = sorted({*hit.held, bit})
                hit.mass = 0.0
                for i in hit.held:
                    hit.mass += idf[i]
            if by_sentence:
                hits[position, side] = sorted(by_sentence.values(), key=lambda hit: hit.sentence)


def phrase_starts(text: str, phrase: str) -> list[int]:
    """Where a folded phrase begins in a text, whose runs of white space match one blank."""
    import re

    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return [match.start() for match in re.finditer(pattern, fold(text))] if pattern else []
