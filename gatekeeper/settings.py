"""Settings: every constant of the algorithm with its origin."""

from __future__ import annotations

from gatekeeper.errors import ArgumentTypeError, SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class _DataclassFields:
    """Make a plain class answer `dataclasses.fields`, `replace` and `asdict`; importing them costs 20 ms."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        from dataclasses import field, make_dataclass

        made = make_dataclass(owner.__name__, [(name, kind, field(default=default)) for name, (default, kind, *_)
                                               in Settings._FIELDS.items()], frozen=True)
        return made.__dataclass_fields__  # type: ignore[attr-defined,no-any-return]  # typeshed leaves it out


class Settings:
    """How turns are chosen. Frozen; every argument is keyword-only and has its default from the design.

    D: fixed by the design documents. T: tunable.

    ngram_idf_floor: D, CJK n-grams of the query below this idf are no anchors.
    overlap_continue, overlap_switch, new_ratio_switch: D, the thresholds of the topic gate.
    topic_window: T, turns of the active topic whose anchors count as the topic's.
    ngram_weight: T, what a CJK n-gram weighs beside a word of the same idf: a run of characters gives many of them.
    unseen_weight: T, what an anchor that no turn holds weighs: it says that something is new, not what.
    pronoun_mass, answer_mass: T, idf mass that speaks for the topic unsaid: for each of up to two pronouns, and in a
        message that answers a question.
    shared_mass: T, the idf mass shared with the topic that makes a query go on, however much of it is new.
    min_coverage: T, the share of the query's idf mass that a block must be about to be of its topic; like the next
        three, of no effect with whole_blocks.
    min_coverage_of_best: T, the share of the best block's coverage that a block must reach.
    topic_coverage_ratio: T, the share of min_coverage that is asked of a block of the active topic when it goes on.
    coverage_length: T, anchors of a side in which one mention of a word makes the side be about it.
    weight_user, weight_assistant, weight_exact, weight_recency: D, the weights of the score.
    k1, b: T, BM25's saturation and length normalisation; the customary values. k1 = 0 is plain idf overlap.
    recency_window: T, turns after which recency is 0.
    max_candidates: D, how many of the best blocks go on from recall.
    max_sentences: D, sentences kept of each side.
    coverage_stop: D, the share of the coverable idf mass that ends the cover.
    image_tokens: T, what an image or another part without text counts in a chat message; about the most that
    providers count for an image that they do not scale down.
    weight_neighbours, neighbour_window: T, what a turn's lexical score adds to the turns around it, and how far.
    content_filter: D, whether after a switch a block must hold a content word of the query; of no effect with
        weight_neighbours, as weight_exact is.
    joint_sides: False: the two sides are scored apart. True: BM25 takes them as one text, weighed by weight_user.
    stems: whether English words that differ in their inflection alone count as one; by Snowball, if PyStemmer (the
        extra `stems`) is installed, else nothing is stemmed.
    squared_idf: whether anchors weigh the square of their idf, as in a cosine of tf-idf vectors.
    whole_side_tokens: T, with whole_blocks: of a side of more tokens only the best sentences of the user's go in
        before all blocks have had their turn.
    n_covers: T, how many times the query is covered, each time by other blocks.
    whole_blocks: False: the least text that covers the query. True: blocks by score, whole where they fit.

    Raises ArgumentTypeError or SettingsError that names the setting, the value and what is accepted.
    """

    # name: (default, type, least, most)
    _FIELDS: ClassVar[dict[str, tuple[Any, type, float, float]]] = {
        "ngram_idf_floor": (1.5, float, 0.0, 1e9),
        "overlap_continue": (0.45, float, 0.0, 1.0),
        "overlap_switch": (0.20, float, 0.0, 1.0),
        "new_ratio_switch": (0.70, float, 0.0, 1.0),
        "topic_window": (1, int, 1, 1000),
        "ngram_weight": (0.3, float, 0.0, 1.0),
        "unseen_weight": (0.5, float, 0.0, 1.0),
        "pronoun_mass": (1.0, float, 0.0, 1e9),
        "answer_mass": (2.0, float, 0.0, 1e9),
        "shared_mass": (1.5, float, 0.0, 1e9),
        "min_coverage": (0.33, float, 0.0, 1.0),
        "min_coverage_of_best": (0.8, float, 0.0, 1.0),
        "topic_coverage_ratio": (0.5, float, 0.0, 1.0),
        "coverage_length": (50.0, float, 1e-9, 1e9),
        "weight_user": (1.5, float, 0.0, 1e9),
        "weight_assistant": (0.7, float, 0.0, 1e9),
        "weight_exact": (1.0, float, 0.0, 1e9),
        "weight_recency": (0.2, float, 0.0, 1e9),
        "k1": (1.2, float, 0.0, 1e9),
        "b": (0.75, float, 0.0, 1.0),
        "recency_window": (100, int, 1, 10**9),
        "max_candidates": (20, int, 1, 10**9),
        "max_sentences": (3, int, 1, 10**9),
        "coverage_stop": (0.85, float, 0.0, 1.0),
        "image_tokens": (1600, int, 0, 10**9),
        "weight_neighbours": (0.0, float, 0.0, 1e9),
        "neighbour_window": (2, int, 1, 1000),
        "content_filter": (True, bool, 0, 1),
        "joint_sides": (False, bool, 0, 1),
        "stems": (True, bool, 0, 1),
        "squared_idf": (False, bool, 0, 1),
        "whole_side_tokens": (250, int, 0, 10**9),
        "n_covers": (2, int, 1, 1000),
        "whole_blocks": (False, bool, 0, 1),
    }
    __slots__ = tuple(_FIELDS)
    __dataclass_fields__ = _DataclassFields()

    ngram_idf_floor: float
    overlap_continue: float
    overlap_switch: float
    new_ratio_switch: float
    topic_window: int
    ngram_weight: float
    unseen_weight: float
    pronoun_mass: float
    answer_mass: float
    shared_mass: float
    min_coverage: float
    min_coverage_of_best: float
    topic_coverage_ratio: float
    coverage_length: float
    weight_user: float
    weight_assistant: float
    weight_exact: float
    weight_recency: float
    k1: float
    b: float
    recency_window: int
    max_candidates: int
    max_sentences: int
    coverage_stop: float
    image_tokens: int
    weight_neighbours: float
    neighbour_window: int
    content_filter: bool
    joint_sides: bool
    stems: bool
    squared_idf: bool
    whole_side_tokens: int
    n_covers: int
    whole_blocks: bool

    def __init__(self, **values: float) -> None:
        for name in values:
            if name not in self._FIELDS:
                raise ArgumentTypeError(f"Settings has no {name!r}; it has {', '.join(self._FIELDS)}")
        for name, (default, kind, least, most) in self._FIELDS.items():
            object.__setattr__(self, name, _checked(name, values.get(name, default), kind, least, most))
        if self.overlap_switch > self.overlap_continue:
            raise SettingsError(
                "overlap_switch must not exceed overlap_continue, "
                f"got {self.overlap_switch} and {self.overlap_continue}")

    @classmethod
    def minimal(cls) -> Settings:
        """The least text that covers the query: the default."""
        return cls()

    @classmethod
    def thorough(cls) -> Settings:
        """The most evidence for the budget: whole blocks by score, pruned only where the whole does not fit."""
        return cls(
            whole_blocks=True, max_candidates=400, min_coverage=0.0, min_coverage_of_best=0.0, content_filter=False,
            joint_sides=True, squared_idf=True, weight_user=1.0, weight_assistant=0.0, weight_exact=0.0,
            weight_neighbours=0.4, weight_recency=1.0, recency_window=12)

    def replace(self, **changes: float) -> Settings:
        """A copy with some values changed."""
        return Settings(**{**self.as_dict(), **changes})

    def as_dict(self) -> dict[str, float]:
        """Name to value, in a fixed order."""
        return {name: getattr(self, name) for name in self._FIELDS}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Settings is frozen; use settings.replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Settings is frozen")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __repr__(self) -> str:
        changed = [f"{name}={getattr(self, name)!r}" for name, (default, *_) in self._FIELDS.items()
                   if getattr(self, name) != default]
        return f"Settings({', '.join(changed)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.as_dict(),)


def _restored(values: dict[str, float]) -> Settings:
    return Settings(**values)


def _checked(name: str, value: Any, kind: type, least: float, most: float) -> float:
    """The value in its type, or an error that says what is accepted."""
    is_number = isinstance(value, (int, float)) and (isinstance(value, bool) == (kind is bool))
    if not is_number or (kind is int and not isinstance(value, int)):
        raise ArgumentTypeError(f"{name} must be {kind.__name__}, got {type(value).__name__}: {value!r:.80}")
    if not least <= value <= most:
        raise SettingsError(f"{name} must be {least} to {most}, got {value!r}")
    converted: float = kind(value)
    return converted
