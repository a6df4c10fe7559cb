"""From messages to turns: a user message with all that follows, a tool call and its results as one unit."""

from __future__ import annotations

from gatekeeper.messages.formats import ANY_CALL, REASONING, SYSTEM, USER, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Side = tuple[str, list["Segment"]]

NOT_INDEXED = -1


class Unit:
    """Messages that are in or out together: a call with its results, or one message; its reasoning leads it."""

    __slots__ = ("is_broken", "pending", "views")

    def __init__(self, lead: list[View], view: View) -> None:
        self.views = [*lead, view]
        self.pending = list(view.calls)
        self.is_broken = bool(view.results)  # a result that answers nothing

    @property
    def is_sound(self) -> bool:
        """Whether a provider takes it: every call has its result, every result its call, and it says something."""
        return not self.pending and not self.is_broken and not all(view.is_empty for view in self.views)

    @property
    def is_tool(self) -> bool:
        return any(view.calls for view in self.views)

    def take_results(self, view: View) -> bool:
        """Add results, if each of them answers a call of this unit that is still open."""
        if not self.answers(view):
            return False
        self.pending = self._pending_after(view)
        self.views.append(view)
        return True

    def answers(self, view: View) -> bool:
        """Whether each result of the view answers a call of this unit that is still open."""
        return not self.is_broken and len(self._pending_after(view)) == len(self.pending) - len(view.results)

    def _pending_after(self, view: View) -> list[str]:
        pending = list(self.pending)
        for result in view.results:
            if result in pending:
                pending.remove(result)
            elif result == ANY_CALL and len(pending) == 1:
                pending.clear()
        return pending

    def add_call(self, lead: list[View], view: View) -> None:
        self.views += [*lead, view]
        self.pending += view.calls


class Segment:
    """Where one text of a message stands in a side of its turn. part: its number, -1 for the calls."""

    __slots__ = ("end", "part", "start", "view")

    def __init__(self, view: View, part: int, start: int, end: int) -> None:
        self.view = view
        self.part = part
        self.start = start
        self.end = end


class Turn:
    """A user message with all that follows up to the next one.

    head: the user message, None before the first one; units: what follows; turn_id: its number in the gatekeeper.
    """

    __slots__ = ("_sides", "_sound", "head", "lead", "turn_id", "units", "views")

    def __init__(self) -> None:
        self.head: View | None = None
        self.units: list[Unit] = []
        self.lead: list[View] = []  # reasoning that waits for what it led to
        self.views: list[View] = []
        self.turn_id = NOT_INDEXED
        self._sides: tuple[Side, Side] | None = None
        self._sound: list[Unit] | None = None

    def add(self, view: View) -> None:
        self._sides = self._sound = None
        self.views.append(view)
        last = self.units[-1] if self.units and not self.units[-1].is_broken else None
        if view.role == USER and not view.results and not self.units:
            self.head = view
        elif view.role == REASONING:
            self.lead.append(view)
        elif view.results and last and last.take_results(view):
            pass
        elif view.calls and view.is_item and last and last.pending and last.views[-1].is_item:
            last.add_call(self._take_lead(), view)
        else:
            if view.results and last and any(result in last.pending for result in view.results):
                last.is_broken = True
            self.units.append(Unit(self._take_lead(), view))

    def _take_lead(self) -> list[View]:
        lead, self.lead = self.lead, []
        return lead

    def sound_units(self) -> list[Unit]:
        """The units that may be sent: no interrupted run, no orphan, no empty message."""
        if self._sound is None:
            self._sound = [unit for unit in self.units if unit.is_sound]
        return self._sound

    def sound_views(self) -> list[View]:
        """What may be sent of the turn, in order."""
        head = [self.head] if self.head else []
        return head + [view for unit in self.sound_units() for view in unit.views]

    def answer(self) -> Unit | None:
        """The message that closes the turn, unless the turn ends with a tool."""
        units = self.sound_units()
        return units[-1] if units and not units[-1].is_tool else None

    def texts(self) -> tuple[str, str]:
        """Both texts of the turn, as the index takes them."""
        (user, _), (assistant, _) = self.sides()
        return user, assistant

    def sides(self) -> tuple[Side, Side]:
        """Both texts of the turn, (user, assistant), each with where its messages stand in it.

        The answer heads the assistant's side: its first sentence, which pruning always keeps, says most.
        """
        if self._sides is None:
            units = self.sound_units()
            if self.answer():
                units = [units[-1], *units[:-1]]
            head = [self.head] if self.head else []
            self._sides = _side(head), _side([view for unit in units for view in unit.views])
        return self._sides


def _side(views: Iterable[View]) -> Side:
    texts: list[str] = []
    segments: list[Segment] = []
    length = 0
    for view in views:
        for part, text in [*enumerate(view.texts), (-1, view.call_text)]:
            if not text or text.isspace():
                continue
            segments.append(Segment(view, part, length, length + len(text)))
            texts.append(text)
            length += len(text) + 1
    return "\n".join(texts), segments


def split_turns(views: Iterable[View], read: Callable[[Any], View]) -> list[Turn]:
    """The turns of messages in order, system messages left out.

    A user message that holds orphaned results beside words of the user gets a stand-in with the words alone.
    """
    turns: list[Turn] = []
    for view in views:
        if view.role == SYSTEM:
            continue
        if view.role == USER and view.results and view.own_text.strip():
            last = turns[-1].units[-1] if turns and turns[-1].units else None
            is_orphan = not (last and last.answers(view))
            view.stand_in = (view.stand_in or read(view.without_results())) if is_orphan else None
        shown = view.shown
        if not turns or (shown.role == USER and not shown.results):
            turns.append(Turn())
        turns[-1].add(shown)
    return turns


def join_turn(views: list[View], read: Callable[[Any], View]) -> Turn:
    """Messages that were one turn before, as one again."""
    first, *others = split_turns(views, read)
    for other in others:
        for view in other.views:
            first.add(view)
    return first
