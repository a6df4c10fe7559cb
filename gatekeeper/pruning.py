"""Sentence pruning: of each side, the sentences that hold an anchor of the query."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import compress, count

from gatekeeper._core.vocabulary import sentence_ends
from gatekeeper.anchor import fold
from gatekeeper.block import Anchor, Candidate
from gatekeeper.corpus import ASSISTANT, USER, Corpus
from gatekeeper.sparse import QueryArrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BIT_OF_DIGIT = bytes.maketrans(b"01", b"\0\1")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; joined, they are the text."""
    ends = sentence_ends(text)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def bits_of(mask: int) -> list[int]:
    """The positions of the bits that are set, ascending. O(bits), also for a mask of a million."""
    return list(compress(count(), _flags(mask)))


def _flags(mask: int) -> bytes:
    """0 or 1 for each bit, from the lowest."""
    return bin(mask)[:1:-1].encode().translate(_BIT_OF_DIGIT)


def mask_of(positions: Sequence[int]) -> int:
    """The mask with the bits at these ascending positions set."""
    if not positions:
        return 0
    if positions[-1] < 64:
        mask = 0
        for position in positions:
            mask |= 1 << position
        return mask
    bits = bytearray(positions[-1] // 8 + 1)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def idf_mass(mask: int, idf: Sequence[float]) -> float:
    """Sum of idf over the bits of a mask, from the first anchor to the last."""
    mass = 0.0
    for of_anchor in compress(idf, _flags(mask)):
        mass += of_anchor
    return mass


def prune(corpus: Corpus, candidates: Sequence[Candidate], arrays: QueryArrays, max_sentences: int = 0) -> None:
    """Cut every candidate down to its best sentences: sets kept, covers and both texts."""
    find_best_sentences(corpus, candidates, arrays, max_sentences)
    for candidate in candidates:
        keep(corpus, candidate, *candidate.kept)


def find_best_sentences(
    corpus: Corpus, candidates: Sequence[Candidate], arrays: QueryArrays, max_sentences: int = 0
) -> None:
    """Set the kept spans of every candidate and what they cover. The texts are not cut yet.

    At most `max_sentences` a side, by default as many as the settings say: those of the greatest idf mass, ties to the
    earlier one, in their order.
    The first sentence of the assistant is always kept and counts among them.
    """
    max_sentences = max_sentences or corpus.settings.max_sentences
    turns = array("i", [candidate.turn_id for candidate in candidates])
    span_counts, starts, ends, cover_counts, covers = corpus.matrix.best_sentences(
        turns, arrays.term_ids, arrays.idf, max_sentences=max_sentences,
        searched=_searched_hits(corpus, candidates, arrays.anchors))
    spans = list(zip(starts, ends, strict=True))
    span = cover = 0
    for position, candidate in enumerate(candidates):
        user_end = span + span_counts[2 * position]
        assistant_end = user_end + span_counts[2 * position + 1]
        candidate.kept = (spans[span:user_end], spans[user_end:assistant_end])
        candidate.covers = _words(arrays, covers[cover : cover + cover_counts[position]])
        span, cover = assistant_end, cover + cover_counts[position]


def find_held(corpus: Corpus, candidates: Sequence[Candidate], arrays: QueryArrays) -> None:
    """Set what every candidate holds as a whole."""
    turns = array("i", [candidate.turn_id for candidate in candidates])
    counts, held = corpus.matrix.held(
        turns, arrays.term_ids, extra_postings=arrays.extra_postings, groups=arrays.groups)
    first = 0
    for candidate, n_held in zip(candidates, counts, strict=True):
        candidate.holds = mask_of(held[first : first + n_held])
        first += n_held


def _words(arrays: QueryArrays, held: Sequence[int]) -> int:
    """The mask of the anchors at these ascending places, a form of one counting as that one."""
    groups = arrays.groups
    return mask_of(held if groups is None else sorted({groups[i] for i in held}))


def keep(corpus: Corpus, candidate: Candidate, user: list[tuple[int, int]], assistant: list[tuple[int, int]]) -> None:
    """Set a candidate's kept spans and texts; blanks at both ends of a side are left out."""
    texts = corpus.texts[candidate.turn_id] or ("", "")
    candidate.kept = (user, assistant)
    candidate.user = "".join([texts[USER][start:end] for start, end in user]).strip()
    candidate.assistant = "".join([texts[ASSISTANT][start:end] for start, end in assistant]).strip()


def keep_whole(corpus: Corpus, candidate: Candidate) -> None:
    """Keep all of both sides."""
    user, assistant = corpus.texts[candidate.turn_id] or ("", "")
    candidate.kept = (whole(user), whole(assistant))
    candidate.user, candidate.assistant = user.strip(), assistant.strip()


def whole(text: str) -> list[tuple[int, int]]:
    """The span of a side as a whole, none if it is blank."""
    return [(0, len(text))] if text and not text.isspace() else []


def _searched_hits(corpus: Corpus, candidates: Sequence[Candidate], anchors: Sequence[Anchor]) -> array[int] | None:
    """Where searched anchors stand: (candidate, side, sentence, anchor) ascending, flat; None without any."""
    if not any(anchor.is_searched for anchor in anchors):
        return None
    hits: set[tuple[int, int, int, int]] = set()
    for bit, anchor in enumerate(anchors):
        holders = {turn_id for turn_id, _, _ in anchor.postings}
        for position, candidate in enumerate(candidates):
            if candidate.turn_id not in holders:
                continue
            block = corpus.block(candidate.turn_id)
            for side, text in ((USER, block.user), (ASSISTANT, block.assistant)):
                ends = corpus.matrix.sentence_ends(candidate.turn_id, side)
                for start, end in phrase_spans(text, anchor.text):
                    sentence = bisect_right(ends, start)
                    if end <= ends[sentence]:  # else what is sent may be half of it
                        hits.add((position, side, sentence, bit))
    return array("i", [number for hit in sorted(hits) for number in hit])


def phrase_spans(text: str, phrase: str) -> list[tuple[int, int]]:
    """Where a folded phrase begins and ends in a text, whose runs of white space match one blank."""
    import re

    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return [match.span() for match in re.finditer(pattern, fold(text))] if pattern else []
