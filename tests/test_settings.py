"""Settings: frozen, checked, and a dataclass to whoever asks."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from gatekeeper import ArgumentTypeError, ChatFileError, ContextGatekeeper, GatekeeperError, Settings, SettingsError

DEFAULTS = {
    "ngram_idf_floor": 1.5, "overlap_continue": 0.45, "overlap_switch": 0.20, "new_ratio_switch": 0.70,
    "topic_window": 1, "weight_user": 1.5, "weight_assistant": 0.7, "weight_exact": 1.0, "weight_recency": 0.2,
    "k1": 1.2, "b": 0.75, "recency_window": 100, "max_candidates": 20, "max_sentences": 3, "coverage_stop": 0.85,
    "whole_blocks": False,
}  # fmt: skip


def test_the_defaults_are_the_design() -> None:
    shared = {name: value for name, value in Settings().as_dict().items() if name in DEFAULTS}
    assert shared == DEFAULTS
    assert Settings() == Settings.minimal()
    assert list(Settings().as_dict()) == list(Settings.__slots__)


def test_thorough_goes_for_whole_blocks() -> None:
    assert Settings.thorough().whole_blocks is True
    assert Settings.thorough() != Settings.minimal()


@pytest.mark.parametrize(("name", "value"), [
    ("ngram_idf_floor", -0.1), ("overlap_continue", 1.01), ("overlap_switch", -1), ("new_ratio_switch", 2),
    ("topic_window", 0), ("weight_user", -1.0), ("weight_assistant", float("nan")), ("weight_exact", float("inf")),
    ("weight_recency", -0.2), ("k1", -1), ("b", 1.5), ("recency_window", 0), ("max_candidates", 0),
    ("max_sentences", 0), ("coverage_stop", 1.1),
])  # fmt: skip
def test_a_value_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=rf"^{name} must be .* to .*, got {value}"):
        Settings(**{name: value})


@pytest.mark.parametrize(("name", "value"), [
    ("k1", "1.2"), ("k1", None), ("b", True), ("topic_window", 8.0), ("topic_window", True), ("max_sentences", "3"),
    ("whole_blocks", 1), ("whole_blocks", "yes"), ("coverage_stop", [0.85]),
])  # fmt: skip
def test_a_value_of_the_wrong_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"^{name} must be .*, got {type(value).__name__}"):
        Settings(**{name: value})


def test_an_unknown_setting_is_named_with_those_there_are() -> None:
    with pytest.raises(ArgumentTypeError, match=r"'alpha'.*coverage_stop"):
        Settings(alpha=0.8)


def test_thresholds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"overlap_switch must not exceed overlap_continue, got 0.5 and 0.4"):
        Settings(overlap_switch=0.5, overlap_continue=0.4)


def test_settings_are_keywords_only() -> None:
    with pytest.raises(TypeError):
        Settings(1.5)  # type: ignore[call-arg]  # what is tested


def test_settings_are_frozen() -> None:
    settings = Settings()
    with pytest.raises(AttributeError, match="frozen"):
        settings.k1 = 2.0
    with pytest.raises(AttributeError):
        settings.unknown = 2.0  # type: ignore[attr-defined]  # what is tested
    with pytest.raises(AttributeError, match="frozen"):
        del settings.k1
    assert settings == Settings()


def test_replace_checks_and_leaves_the_original() -> None:
    settings = Settings(k1=0.9)
    assert settings.replace(b=0.5) == Settings(k1=0.9, b=0.5)
    assert settings == Settings(k1=0.9)
    with pytest.raises(SettingsError, match=r"^b must be"):
        settings.replace(b=7)


def test_the_functions_of_dataclasses_work() -> None:
    settings: Any = Settings(k1=0.9)
    fields = dataclasses.fields(settings)
    assert [(field.name, field.default) for field in fields] == list(Settings().as_dict().items())
    assert dataclasses.is_dataclass(settings)
    assert dataclasses.asdict(settings) == settings.as_dict()
    assert dataclasses.replace(settings, b=0.5) == Settings(k1=0.9, b=0.5)


@pytest.mark.parametrize("settings", [Settings(), Settings.thorough(), Settings(k1=0, topic_window=3)])
def test_settings_are_values(settings: Settings) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(settings, protocol)) == settings
    assert copy.copy(settings) == copy.deepcopy(settings) == settings
    assert hash(settings) == hash(Settings(**settings.as_dict()))
    assert eval(repr(settings), {"Settings": Settings}) == settings
    assert len({settings, Settings(**settings.as_dict())}) == 1
    assert settings != settings.as_dict()


def test_a_whole_number_is_a_real_one_too() -> None:
    assert repr(Settings(k1=1).k1) == "1.0"
    assert Settings(k1=1) == Settings(k1=1.0)


def test_a_gatekeeper_takes_settings_only() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^settings must be a Settings, got dict"):
        ContextGatekeeper(100, settings={"k1": 1.0})  # type: ignore[arg-type]  # what is tested
    assert ContextGatekeeper(100).settings == Settings()


def test_the_tree_of_errors() -> None:
    assert issubclass(SettingsError, ValueError)
    assert issubclass(ArgumentTypeError, TypeError)
    assert issubclass(ChatFileError, ValueError)
    for error in (SettingsError, ArgumentTypeError, ChatFileError):
        assert issubclass(error, GatekeeperError)
