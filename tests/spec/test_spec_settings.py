"""Settings of recall and the word lists."""

from __future__ import annotations

import pytest

from gatekeeper import ArgumentTypeError, SettingsError, spec
from gatekeeper.spec.lexicon import read_sections, tag_aliases, word_list
from gatekeeper.spec.settings import SpecSettings


def test_defaults() -> None:
    settings = SpecSettings()
    assert (settings.match_threshold, settings.max_inject_templates, settings.inject_max_chars) == (0.15, 2, 4000)
    assert settings.pre_step_routing
    assert settings == SpecSettings.read({})[0]
    assert repr(settings.replace(match_threshold=0.2)) == "SpecSettings(match_threshold=0.2)"
    assert hash(settings) == hash(SpecSettings())
    with pytest.raises(AttributeError, match="frozen"):
        settings.match_threshold = 1.0


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"match_threshold": 1.5}, SettingsError),
        ({"match_threshold": "x"}, ArgumentTypeError),
        ({"max_inject_templates": 0}, SettingsError),
        ({"max_inject_templates": True}, ArgumentTypeError),
        ({"storage_root": "elsewhere"}, SettingsError),
        ({"auto_recall": 1}, ArgumentTypeError),
        ({"nothing": 1}, ArgumentTypeError),
    ],
)
def test_what_is_refused(values: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(values))):
        SpecSettings(**values)


def test_reading_a_configuration_never_switches_anything_off() -> None:
    settings, warnings = SpecSettings.read(
        {"preStepRouting": "yes", "maxInjectTemplates": 3, "storage_root": "home", "typo": 1, "match_threshold": 1}
    )
    assert settings == SpecSettings(max_inject_templates=3, storage_root="home", match_threshold=1.0)
    assert len(warnings) == 2
    assert "pre_step_routing" in warnings[0]
    assert "typo" in warnings[1]


def test_the_threshold_of_the_old_scale_is_noticed() -> None:
    settings, warnings = SpecSettings.read({"matchThreshold": 0.35})
    assert settings.match_threshold == 0.15
    assert "0.35" in warnings[0]


@pytest.mark.parametrize("name", ["grading", "terms", "stops", "signals", "hygiene"])
def test_word_lists_are_whole(name: str) -> None:
    words = word_list(name)
    assert all(words.sections.values())
    assert all(word == word.strip() and word for tagged in words.sections.values() for word in tagged)


def test_sections_name_their_faults() -> None:
    assert read_sections("# x\n[a]\nb c+d b\n\n[e]\n", "f") == {"a": ("b", "c d"), "e": ()}
    with pytest.raises(ValueError, match="f, line 1: word outside"):
        read_sections("x", "f")
    with pytest.raises(ValueError, match=r"f, line 2: expected \[section\]"):
        read_sections("\n[a", "f")


def test_the_package_names_its_functions() -> None:
    assert all(callable(getattr(spec, name)) for name in spec.__all__)
    assert spec.__all__ == sorted(spec.__all__)
    assert set(spec.__all__) <= set(dir(spec))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spec.nothing


def test_no_alias_leads_to_another() -> None:
    keys = tag_aliases().keys
    assert all(keys[key] == key for key in keys.values())
