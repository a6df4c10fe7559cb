"""The messages of one conversation as a gatekeeper knows them: which are known, which turn each belongs to."""

from __future__ import annotations

from bisect import bisect_left
from operator import is_

from gatekeeper.messages.formats import SYSTEM, View, id_of, messages_of, read_all, read_message
from gatekeeper.messages.turns import NOT_INDEXED, Turn, join_turn, split_turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gatekeeper.gatekeeper import ContextGatekeeper

    Text = tuple[str, str]


class MessageLog:
    """Messages and their turns. Not thread safe: the gatekeeper that owns it locks.

    views: every message in order; turns: theirs; `update` puts those to choose from into the gatekeeper's index,
    each under its `turn_id`. counts: tokens of texts, as far as they were counted.
    """

    def __init__(self, read: Callable[[Any], View] = read_message) -> None:
        self.read = read
        self.views: list[View] = []
        self.turns: list[Turn] = []
        self.counts: dict[str, int] = {}
        self._of_turns: list[View] = []  # the views of all turns, in order
        self._starts: list[int] = []  # for each turn, its first position in _of_turns
        self.forgotten: set[str] = set()  # traces of the ids of messages that were forgotten
        self._keys: set[object] | None = None  # of all views, once they are needed

    # --- what is known

    def merged(self, messages: Any) -> list[View]:
        """The views with those of other messages: one that is known and says the same changes nothing, one that

        changed takes its place, a new one joins at the end. A message is known by its id; one without id by being the
        very object, or by its place in a list that begins with all that is known. One that was forgotten stays out.
        """
        listed = messages_of(messages)
        n_known = self._n_known(listed)
        views = list(self.views)
        places = {_key(view): place for place, view in enumerate(views)}
        for view in read_all(listed[n_known:], self.read, n_known):
            key = _key(view)
            if self._is_forgotten(view):
                continue
            place = places.setdefault(key, len(views))
            if place == len(views):
                views.append(view)
            elif views[place].fingerprint() != view.fingerprint():
                views[place] = view
        return views

    def _n_known(self, messages: Sequence[Any]) -> int:
        """How many messages of a list are those known: all of them, when it is the conversation grown, else 0."""
        n_views = len(self.views)
        if not n_views or len(messages) < n_views:
            return 0
        is_grown = all(view.id == id_of(message) and view.says(message, self.read)
                       for view, message in zip(self.views, messages, strict=False))
        return n_views if is_grown else 0

    def _is_forgotten(self, view: View) -> bool:
        return bool(self.forgotten) and view.id is not None and trace_of(view.id) in self.forgotten

    def matched(self, messages: Sequence[Any]) -> list[View] | None:
        """The views of a list, known ones taken over; None unless the list begins with every turn in the index.

        Taken over by place, so that a list of new objects that say the same is known, too.
        """
        views: list[View] = []
        known, n_known = self._of_turns, 0
        for message in messages:
            if n_known < len(known) and known[n_known].says(message, self.read):
                views.append(known[n_known])
                n_known += 1
                continue
            if n_known < len(known):
                view = next(read_all([message], self.read, len(views)))
                if view.role == SYSTEM:
                    views.append(view)
                    continue
            break
        if n_known < self._n_indexed_views():
            return None
        rest = list(read_all(messages[len(views) :], self.read, len(views)))
        for view, message in zip(views, messages, strict=False):
            view.renew(message)
        return views + rest

    def _n_indexed_views(self) -> int:
        ends = [*self._starts[1:], len(self._of_turns)]
        for turn, end in zip(reversed(self.turns), reversed(ends), strict=False):
            if turn.turn_id != NOT_INDEXED:
                return end
        return 0

    # --- growing and shrinking

    def add(self, gate: ContextGatekeeper, messages: Any, *, durable: bool = True) -> None:
        """Add messages for good. New ones at the end cost what is new, however long the conversation is."""
        messages = messages_of(messages)
        n_known = self._n_known(messages)
        listed = list(read_all(messages[n_known:], self.read, n_known))
        if self._keys is None:
            self._keys = {_key(view) for view in self.views}
        keys = {_key(view) for view in listed}
        is_new = len(keys) == len(listed) and keys.isdisjoint(self._keys)
        if not is_new or any(map(self._is_forgotten, listed)):
            self.update(gate, self.merged(messages), hold_last=False, durable=durable)
            return
        of_turns = [view for view in listed if view.role != SYSTEM]
        first = max(len(self.turns) - 1, 0)  # what is new may go on in the last turn
        start = self._starts[first] if self._starts else 0
        self._tell(gate, first, start, self._of_turns[start:] + of_turns, hold_last=False, durable=durable)
        self.views += listed
        self._keys |= keys

    def update(self, gate: ContextGatekeeper, views: list[View], *, hold_last: bool, durable: bool) -> None:
        """Make these the messages. Only the turns from the first change on are indexed anew.

        hold_last: the last turn is not to be chosen from, and so not in the index. durable: through the gatekeeper's
        public doors, not beneath them for one selection.
        """
        of_turns = [view for view in views if view.role != SYSTEM]
        common = min(n_common(self._of_turns, of_turns), len(of_turns) - 1)
        first = max(bisect_left(self._starts, common) - 1, 0)  # what is new may go on in the turn before
        start = self._starts[first] if self._starts else 0
        self._tell(gate, first, start, of_turns[start:], hold_last=hold_last, durable=durable)
        self.views, self._keys = views, None

    def _tell(self, gate: ContextGatekeeper, first: int, start: int, of_turns: list[View], *, hold_last: bool,
              durable: bool) -> None:
        """Make these the views of the turns from `first` on, which begin at `start`. All is as before if it fails."""
        old, new = self.turns[first:], split_turns(of_turns, self.read)
        before = old, self._starts[first:]
        wanted = [turn for turn in (new[:-1] if hold_last else new) if turn.head]
        while old and wanted and old[0].turn_id != NOT_INDEXED and _are_same(old[0].views, wanted[0].views):
            wanted[0].turn_id = old[0].turn_id
            old, wanted = old[1:], wanted[1:]
        del self.turns[first:], self._starts[first:]
        try:
            _reindex(gate, old, wanted, durable)
        except BaseException:
            self.turns += before[0]
            self._starts += before[1]
            raise
        self._of_turns[start:] = of_turns
        for turn in new:
            self.turns.append(turn)
            self._starts.append(start)
            start += len(turn.views)

    # --- as a file holds it

    def of_turns(self, first: int = 0) -> dict[int, list[View]]:
        """The messages of each indexed turn, from number `first` of `turns` on, as they came in, by turn id."""
        pairs = zip(self.turns[first:], self._starts[first:], strict=True)
        return {turn.turn_id: self._of_turns[start : start + len(turn.views)]
                for turn, start in pairs if turn.turn_id != NOT_INDEXED}

    def loose(self) -> list[tuple[int | None, int, View]]:
        """The messages of no indexed turn, each with the turn and the place in it that it stands before.

        None instead of a turn: behind the last one.
        """
        if len(self.views) == len(self._of_turns) and not (self.turns and self.turns[0].turn_id == NOT_INDEXED):
            return []
        places: dict[View, tuple[int | None, int]] = {
            view: (turn_id, i) for turn_id, views in self.of_turns().items() for i, view in enumerate(views)}
        found: list[tuple[int | None, int, View]] = []
        place: tuple[int | None, int] = None, 0
        for view in reversed(self.views):
            if view in places:
                place = places[view]
            else:
                found.append((*place, view))
        return found[::-1]

    def load(self, of_turns: Mapping[int, list[View]], loose: Sequence[tuple[int | None, int, View]]) -> None:
        """Make these the messages: those of turns by turn id, and those of none as `loose` gives them."""
        known = {turn.turn_id: turn for turn in self.turns if turn.turn_id != NOT_INDEXED}
        headless = [view for _, _, view in loose if view.role != SYSTEM]
        self.turns = split_turns(headless, self.read)
        self._starts = [0] * len(self.turns)
        self._of_turns, self.views, self._keys = headless, [], None
        waiting = list(loose)
        for turn_id, views in sorted(of_turns.items()):
            for i, view in enumerate(views):
                while waiting and waiting[0][0] is not None and waiting[0][:2] <= (turn_id, i):
                    self.views.append(waiting.pop(0)[2])
                self.views.append(view)
            turn = known.get(turn_id)
            if turn is None or not _are_same(turn.views, [view.shown for view in views]):
                turn = join_turn(views, self.read)
                turn.turn_id = turn_id
            self._starts.append(len(self._of_turns))
            self._of_turns += views
            self.turns.append(turn)
        self.views += [view for _, _, view in waiting]

    def state(self, gate: ContextGatekeeper) -> tuple[Any, ...]:
        """What `restore` needs to undo an update beneath the gatekeeper's doors."""
        return (list(self.views), list(self._of_turns), list(self.turns), list(self._starts),
                list(gate._corpus.texts))  # fmt: skip

    def restore(self, gate: ContextGatekeeper, state: tuple[Any, ...]) -> None:
        """Undo the updates since: the messages, their turns and the index are as they were."""
        self.views, self._of_turns, self.turns, self._starts, texts = state
        self._keys = None
        _restore_texts(gate, n_common(gate._corpus.texts, texts), texts)

    def forget_counts(self) -> None:
        """Drop what was counted: another counter counts from now on."""
        self.counts.clear()
        for view in self.views:
            view.cost = view.shown.cost = -1

    def forget(self, turn_id: int) -> None:
        """Drop the messages of a turn; their ids stay known, so that they do not come back."""
        self._drop([turn for turn in self.turns if turn.turn_id == turn_id])

    def truncate(self, n_turns: int) -> None:
        """Drop the turns from n_turns on and all messages behind their first one."""
        first = next((place for place, turn in enumerate(self.turns) if turn.turn_id >= n_turns), None)
        if first is not None:
            self._keys = None
            gone = self._of_turns[self._starts[first]]
            del self.views[next(place for place, view in enumerate(self.views) if view is gone) :]
            del self._of_turns[self._starts[first] :], self.turns[first:], self._starts[first:]
            self.counts.clear()

    def _drop(self, turns: list[Turn]) -> None:
        for turn in turns:
            place = self.turns.index(turn)
            start, end = self._starts[place], self._starts[place] + len(turn.views)
            gone = {id(view) for view in self._of_turns[start:end]}
            self.forgotten.update(trace_of(view.id) for view in self._of_turns[start:end] if view.id is not None)
            self.views = [view for view in self.views if id(view) not in gone]
            del self._of_turns[start:end], self.turns[place], self._starts[place]
            self._starts[place:] = [other - len(turn.views) for other in self._starts[place:]]
            self.counts.clear()
            self._keys = None


def trace_of(message_id: str | int) -> str:
    """By what a forgotten message is known again: a hash, since an id may be a text, too."""
    from hashlib import blake2b

    return blake2b(repr(message_id).encode(), digest_size=16).hexdigest()


def workbench(gate: ContextGatekeeper) -> ContextGatekeeper:
    """The gatekeeper itself, whose index may be changed and changed back; a copy once it has forgotten a turn.

    A turn that is taken out and put back then finds other topics than when it came: they may begin in what is gone.
    """
    if None not in gate._corpus.texts:
        return gate
    from gatekeeper.gatekeeper import ContextGatekeeper

    copied = ContextGatekeeper(gate.token_budget, settings=gate.settings, count_tokens=gate._count_tokens)
    _append_texts(copied._corpus.append, copied._corpus.forget, gate._corpus.texts)
    return copied


def _key(view: View) -> object:
    """What a message is known by."""
    return view.id if view.id is not None else ("object", id(view.message))


def n_common(some: Sequence[object], others: Sequence[object]) -> int:
    """How many of the first objects are the same in both."""
    same = list(map(is_, some, others))
    return same.index(False) if False in same else len(same)


def _are_same(some: Sequence[View], others: Sequence[View]) -> bool:
    return len(some) == len(others) == n_common(some, others)


def _reindex(gate: ContextGatekeeper, old: list[Turn], wanted: list[Turn], durable: bool) -> None:
    """Put turns in the place of old ones, from the first old one on; turns that came as texts keep their places."""
    corpus = gate._corpus
    truncate, append, forget = corpus.truncate, corpus.append, corpus.forget
    if durable:
        truncate, append, forget = gate.truncate, gate.add_turns, gate.forget
    ids = {turn.turn_id for turn in old} - {NOT_INDEXED}
    first = min(ids, default=len(corpus.texts))
    texts = corpus.texts[first:]
    items: list[Turn | Text | None] = []
    left = list(wanted)
    for turn_id, text in enumerate(texts, first):
        if turn_id not in ids:
            items.append(text)
        elif left:
            items.append(left.pop(0))
    items += left
    counts, gate._counts = gate._counts, {}
    try:
        if texts:
            truncate(first)
        given = _append_texts(append, forget, [item.texts() if isinstance(item, Turn) else item for item in items])
    except BaseException:
        gate._counts = counts
        _restore_texts(gate, first, corpus.texts[:first] + texts)
        raise
    gone = {view for turn in old for view in turn.views} - {view for turn in wanted for view in turn.views}
    if not (durable and gone):
        gate._counts = counts  # a turn that has only grown need not be counted anew
    for item, turn_id in zip(items, given, strict=True):
        if isinstance(item, Turn):
            item.turn_id = turn_id


def _restore_texts(gate: ContextGatekeeper, first: int, texts: list[Text | None]) -> None:
    """Make these the turns of the index again, which differ from `first` on."""
    corpus = gate._corpus
    if first < max(len(texts), len(corpus.texts)):
        corpus.truncate(first)
        _append_texts(corpus.append, corpus.forget, texts[first:])


def _append_texts(append: Callable[[list[Text]], range], forget: Callable[[int], None],
                  texts: list[Text | None]) -> range:
    """Append turns, None for one that was forgotten; their ids."""
    ids = append([text or ("", "") for text in texts]) if texts else range(0)
    for turn_id, text in zip(ids, texts, strict=True):
        if text is None:
            forget(turn_id)
    return ids
