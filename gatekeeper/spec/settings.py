"""Settings of spec recall: every constant that a user may change, with its origin."""

from __future__ import annotations

from gatekeeper.errors import ArgumentTypeError, SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FP_VERSION = 2  # of the fingerprint generator: a stored fingerprint of another version is made anew on reading

MAX_QUERY_GRAMS = 16  # measured: 8 lost the words at the end of a sentence
MAX_FINGERPRINT_TOKENS = 40  # measured: the least cap that recalls every template by its body
TIER_QUOTAS = (16, 10, 8, 10)  # quoted, name, tags, trigger; the body takes what is left
MAX_TAGS = 8
MAX_BACKFILLED_FIELDS = 8  # measured: 24 took hits away, 8 did not
MIN_JSON_LENGTH = 16  # measured: 30 missed real blocks
MAX_PREPARED_LENGTH = 2000
MIN_HEX_LENGTH = 12
MIN_EFFECTIVE_LENGTH = 6
MIN_EFFECTIVE_LENGTH_WITH_IMAGE = 15
MAX_ATOMIC_LENGTH = 48  # characters; a longer text likely has several goals
MAX_ATOMIC_LENGTH_ENGLISH = 120  # characters, or 20 words
MAX_ATOMIC_WORDS_ENGLISH = 20
SHORT_LENGTH = 15
MAX_SHOWN_REDLINES = 20
MAX_KEPT_ITEMS = 12  # questions and acceptance items of one template
MAX_DIGEST_LENGTH = 1500
MAX_NOTE_LENGTH = 9500
DF_MIN_TEMPLATES = 8  # from here on, a token in more than DF_MAX_RATIO of the templates is no evidence
DF_MAX_RATIO = 0.40
ALONE_LEXICAL = 0.5  # from here on, a modal word is evidence by itself
WEAK_LEXICAL = 0.25  # below it, evidence of 2-grams alone needs two of them
NEAR_DUPLICATE_RATIO = 0.7  # measured: real pairs 0.897 and up, others 0.571 and down
NEAR_DUPLICATE_LENGTH = 6
HALF_LIFE_DAYS = 90.0

_RANGES: dict[str, tuple[float, float]] = {
    "match_threshold": (0.0, 1.0),
    "max_inject_templates": (1, 5),
    "inject_max_chars": (500, 20000),
    "retro_min_tool_calls": (0, 1000),
}
_CHOICES = {"default_scope": ("project", "global"), "storage_root": ("workspace", "home")}
_OLD_THRESHOLD = 0.35  # the old default, of another quantity: the score with the priors in it


_DEFAULTS: dict[str, Any] = {
    "auto_recall": True,
    "auto_retro": True,
    "match_threshold": 0.15,
    "max_inject_templates": 2,
    "inject_max_chars": 4000,
    "pre_step_routing": True,
    "default_scope": "project",
    "storage_home": "",
    "storage_root": "workspace",
    "retro_min_tool_calls": 2,
    "retro_require_code_change": True,
    "strict_distill": True,
}


class SpecSettings:
    """How recall works. Frozen; every value has a default, and a missing key means that default, never "off".

    auto_recall, auto_retro, pre_step_routing: the switches of recall, write-back reminder and per-turn note.
    match_threshold: the least lexical score of a hit, inclusive.
    max_inject_templates, inject_max_chars: how many templates and characters an answer holds at most.
    default_scope: project or global. storage_home: an absolute folder, "" for storage_root: workspace or home.
    retro_min_tool_calls, retro_require_code_change: what a session needs for the reminder.
    strict_distill: warn of a distilled prompt without constraints.

    Raises ArgumentTypeError or SettingsError that names the setting, the value and what is accepted.
    """

    __slots__ = tuple(_DEFAULTS)

    auto_recall: bool
    auto_retro: bool
    match_threshold: float
    max_inject_templates: int
    inject_max_chars: int
    pre_step_routing: bool
    default_scope: str
    storage_home: str
    storage_root: str
    retro_min_tool_calls: int
    retro_require_code_change: bool
    strict_distill: bool

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name not in _DEFAULTS:
                raise ArgumentTypeError(f"SpecSettings has no {name!r}; it has {', '.join(_DEFAULTS)}")
        for name, default in _DEFAULTS.items():
            value = values.get(name, default)
            _check(name, value, type(default))
            object.__setattr__(self, name, type(default)(value))

    def replace(self, **changes: Any) -> SpecSettings:
        """A copy with some values changed."""
        return SpecSettings(**{**self.as_dict(), **changes})

    def as_dict(self) -> dict[str, Any]:
        """Name to value, in a fixed order."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"SpecSettings is frozen; use settings.replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpecSettings) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}" for name, default in _DEFAULTS.items() if getattr(self, name) != default
        ]
        return f"SpecSettings({', '.join(changed)})"

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> tuple[SpecSettings, tuple[str, ...]]:
        """Settings from a configuration, with what is to be announced. Names as here or in camelCase.

        A value that is not accepted falls back to its default and is announced; so are unknown keys and the
        threshold of the old scale.
        """
        accepted: dict[str, Any] = {}
        warnings: list[str] = []
        for key, value in values.items():
            name = _snake_case(str(key))
            if name not in _DEFAULTS:
                warnings.append(f"unknown setting {str(key)!r:.60} is not used")
                continue
            if isinstance(value, int) and not isinstance(value, bool) and name == "match_threshold":
                value = float(value)
            try:
                _check(name, value, type(_DEFAULTS[name]))
            except (ArgumentTypeError, SettingsError) as error:
                warnings.append(f"{error}; the default {_DEFAULTS[name]!r} is used")
                continue
            if name == "match_threshold" and value == _OLD_THRESHOLD:
                warnings.append(
                    "match_threshold 0.35 is the old default, of the score with priors; now it is the "
                    f"lexical score alone, and the default {_DEFAULTS[name]!r} is used"
                )
                continue
            accepted[name] = value
        return cls(**accepted), tuple(warnings)


def _snake_case(name: str) -> str:
    return "".join(["_" + c.lower() if "A" <= c <= "Z" else c for c in name])


def _check(name: str, value: object, kind: type) -> None:
    """Raise unless the value has the type of its default and is in range."""
    is_right = isinstance(value, bool) if kind is bool else isinstance(value, kind) and not isinstance(value, bool)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        is_right = True
    if not is_right:
        raise ArgumentTypeError(f"{name} must be {kind.__name__}, got {type(value).__name__}: {value!r:.80}")
    if name in _RANGES:
        least, most = _RANGES[name]
        if not least <= value <= most:  # type: ignore[operator]
            raise SettingsError(f"{name} must be {least} to {most}, got {value!r:.80}")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise SettingsError(f"{name} must be one of {', '.join(_CHOICES[name])}, got {value!r:.80}")
