"""What docs/algorithm.md says of how `thorough` fills the budget, in plain and slow Python."""

from __future__ import annotations

from reference import SIDES, Candidate, Conversation, prompt, rendered, words_of
from reference_text import sentence_ends

MISSES = 8


class Filled(Candidate):
    """A turn with the numbers of the sentences that are kept of each side."""

    def __init__(self, turn: int, sides: tuple[str, str]) -> None:
        super().__init__(turn, 0.0, (0.0, 0.0), 0.0, 0.0)
        ends = [sentence_ends(side) for side in sides]
        self.sentences = [[sides[s][a:b] for a, b in zip([0, *ends[s]], ends[s], strict=False)] for s in SIDES]
        self.numbers: list[set[int]] = [set(), set()]

    def is_cut(self) -> bool:
        return any(len(self.numbers[side]) < len(self.sentences[side]) for side in SIDES)

    def keep(self, side: int, numbers) -> None:
        self.numbers[side] = {*numbers}
        self.texts = ["".join(self.sentences[s][i] for i in sorted(self.numbers[s])).strip() for s in SIDES]

    def keep_whole(self, side: int) -> None:
        self.keep(side, range(len(self.sentences[side])))

    def missing(self) -> list[tuple[int, int, int]]:
        """(distance to the nearest kept sentence of the side, side, number), nearest first."""
        missing = []
        for side in SIDES:
            n = len(self.sentences[side])
            for i in set(range(n)) - self.numbers[side]:
                missing.append((min([abs(i - kept) for kept in self.numbers[side]], default=n), side, i))
        return sorted(missing)


def looked_at(twin: Conversation, turn: int, found, count) -> Filled:
    """What goes in of a turn at first."""
    pruned = Candidate(turn, 0.0, (0.0, 0.0), 0.0, 0.0)
    twin.prune(pruned, found)
    sides = twin.turns[turn]
    block = Filled(turn, sides)
    for side in SIDES:
        ends = sentence_ends(sides[side])
        if not sides[side].strip():
            continue
        if count(sides[side]) <= twin.settings.whole_side_tokens:
            block.keep_whole(side)
        elif side == 0 or not block.numbers[0]:
            block.keep(side, [ends.index(end) for _, end in pruned.kept[side]])
    block.covers = {i for i, word in enumerate(words_of(found)) if any(turn in form.tf for form in word)}
    return block


def filled(
    twin: Conversation, query: str, budget: int, count
) -> tuple[list[tuple[int, str, str]], list[set[str]], set[int]]:
    """What is sent as (turn, user, assistant), the words that each step is the first to hold, what is taken back."""
    found = twin.anchors(query)
    room = budget - count(f"[query] {query}")
    chosen: list[Filled] = []
    misses = 0
    for turn, _ in twin.in_context(query):
        block = looked_at(twin, turn, found, count)
        if not any(block.texts):
            continue
        cost = count(rendered(block))
        if cost <= room:
            misses = 0
            room -= cost
            chosen.append(block)
        else:
            misses += 1
            if misses == MISSES:
                break
    restore([block for block in chosen if block.is_cut()], room, count)
    taken_back = set()
    while chosen and count(prompt(chosen, query)) > budget:
        taken_back.add(chosen.pop().turn)
    words = [word[0].text for word in words_of(found)]
    first = [block.covers.difference(*(b.covers for b in chosen[:n])) for n, block in enumerate(chosen)]
    sent = [(block.turn, *block.texts) for block in chosen]
    return sent, [{words[i] for i in covered} for covered in first], taken_back


def restore(cut: list[Filled], room: int, count) -> None:
    """Put back what was cut, one sentence after the other."""
    misses = 0
    for block in cut:
        if misses == MISSES or room <= 0:
            return
        cost, kept = count(rendered(block)), list(block.numbers)
        for side in SIDES:
            block.keep_whole(side)
        if count(rendered(block)) - cost <= room:
            room -= count(rendered(block)) - cost
            misses = 0
            continue
        for side in SIDES:
            block.keep(side, kept[side])
        for distance, side, number in block.missing():
            block.keep(side, block.numbers[side] | {number})
            if count(rendered(block)) - cost <= room:
                room -= count(rendered(block)) - cost
                cost = count(rendered(block))
                misses = 0
                continue
            block.keep(side, block.numbers[side] - {number})
            misses += 1
            if distance > 1 or misses == MISSES:
                break
