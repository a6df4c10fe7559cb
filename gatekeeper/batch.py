"""Many conversations in one process: index each, select once, hand the results over in order."""

from __future__ import annotations

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError, ConversationError, require_whole_number
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.tokens import estimate_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from typing import Any

    from gatekeeper.settings import Settings

    Conversation = Iterable[tuple[str, str]]
    Result = list[dict[str, Any]] | ConversationError

WAITING_PER_THREAD = 4  # conversations handed to a thread ahead of the one it works on
MOST_TURNS_KEPT = 2_000  # the memory of a longer conversation is not kept for the next one
MISSING = object()


def select_many(
    conversations: Iterable[Conversation],
    queries: Iterable[str],
    *,
    threads: int = 1,
    token_budget: int = 4000,
    settings: Settings | None = None,
    count_tokens: Callable[[str], int] = estimate_tokens,
    stop_on_error: bool = False,
) -> Iterator[Result]:
    """For each conversation and its query what `ContextGatekeeper.select` gives, in order, as it is ready.

    conversations: of turns (user, assistant); queries: one for each. Both are read as they are needed, at most
    `4 * threads` conversations ahead, so memory is bounded. A conversation that fails yields a ConversationError
    with its index and the cause, and the rest goes on; with stop_on_error that error is raised.

    Raises ArgumentValueError when one iterable ends before the other, or for threads below 1.
    """
    require_whole_number("threads", threads)
    if threads < 1:
        raise ArgumentValueError(f"threads must be at least 1, got {threads}")
    gates = [ContextGatekeeper(token_budget, settings=settings, count_tokens=count_tokens)]  # refuses bad arguments now

    def select_one(index: int, turns: Conversation, query: str) -> Result:
        gate = gates.pop() if gates else ContextGatekeeper(token_budget, settings=settings, count_tokens=count_tokens)
        try:
            gate.add_turns(turns)
            return gate.select(query)
        except Exception as error:
            return ConversationError(index, error)
        finally:
            if len(gate) <= MOST_TURNS_KEPT:
                gate.truncate(0)
                gates.append(gate)

    return _checked(_in_order(select_one, _numbered(conversations, queries), threads), stop_on_error)


def _numbered(conversations: Iterable[Conversation], queries: Iterable[str]) -> Iterator[tuple[int, Conversation, str]]:
    if isinstance(queries, str):
        raise ArgumentTypeError("queries must be an iterable of str, one a conversation, got one str")
    turns_of, query_of = iter(conversations), iter(queries)
    index = 0
    while True:
        turns: Any = next(turns_of, MISSING)
        query: Any = next(query_of, MISSING)
        if turns is MISSING and query is MISSING:
            return
        if turns is MISSING or query is MISSING:
            ended = "conversations" if turns is MISSING else "queries"
            raise ArgumentValueError(f"conversations and queries differ in length: {ended} ended after {index}")
        yield index, turns, query
        index += 1


def _in_order(
    work: Callable[[int, Conversation, str], Result], items: Iterator[tuple[int, Conversation, str]], threads: int
) -> Iterator[Result]:
    if threads == 1:
        for item in items:
            yield work(*item)
        return
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="gatekeeper") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, *item))
                if len(waiting) > WAITING_PER_THREAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _checked(results: Iterator[Result], stop_on_error: bool) -> Iterator[Result]:
    for result in results:
        if stop_on_error and isinstance(result, ConversationError):
            raise result
        yield result
