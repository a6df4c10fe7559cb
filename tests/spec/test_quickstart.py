"""The quick start pages: their commands are run, and print what the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gatekeeper
from gatekeeper.spec.files import SETTLED_NS
from gatekeeper.spec.hook import SAME_TURN_SECONDS
from gatekeeper.spec.markdown import ACCEPTANCE, APPROACH, CLARIFY, DIGEST, PROMPT, REDLINES, TRIGGER
from gatekeeper.spec.routing import resident_text, skill_text
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.settings import MAX_NOTE_LENGTH, SpecSettings

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("spec_quickstart.md", "spec_quickstart.zh.md")
SHOWN = "/path/to/shop"
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: str) -> list[tuple[str, str]]:
    """The commands of a page and, of a console block, what they print; without the installation."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if "pip install" in text:
            continue
        if kind == "sh":
            found.append((text, ""))
            continue
        lines = text.splitlines()
        command = "\n".join(line[2:] for line in lines if line.startswith(("$ ", "> ")))
        found.append((command, "\n".join(line for line in lines if not line.startswith(("$ ", "> ")))))
    return found


def make_shop(folder: Path) -> dict[str, str]:
    """A repository with a remote, and the environment in which the commands are found."""
    shop, commands = folder / "shop", folder / "bin"
    for made in (shop, commands):
        made.mkdir()
    for name, module in (("gatekeeper", "gatekeeper"), ("gatekeeper-hook", "gatekeeper.spec.hook")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (commands / name).chmod(0o755)
    (shop / ".git").mkdir()
    (shop / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shop / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/team/shop\n')
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "GATEKEEPER_HOME": str(folder / "home"),
            "PYTHONPATH": str(Path(gatekeeper.__file__).parents[1]), "NO_COLOR": "1"}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    environment = make_shop(tmp_path)
    blocks = blocks_of(page)
    assert len(blocks) >= 7
    for command, expected in blocks:
        run = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=tmp_path / "shop", env=environment,
                             capture_output=True, text=True, timeout=120)  # fmt: skip
        assert run.returncode == 0, f"{command}\n{run.stderr}"
        if expected:
            assert run.stdout.replace(str((tmp_path / "shop").resolve()), SHOWN).strip("\n") == expected
    assert (tmp_path / "shop" / ".mcp.json").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_both_languages_and_every_folder(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert all(other in text for other in PAGES if other != page)
    for part in ("projects/", "global/templates/", "profile.md", "settings.json", ".state/", "gatekeeper mcp"):
        assert part in text


def test_every_setting_tool_and_section_is_documented() -> None:
    text = (ROOT / "docs" / "spec_library.md").read_text(encoding="utf-8")
    for field in fields_of_settings():
        assert f"`{field}`" in text
    for tool in TOOLS:
        assert f"| `{tool.name}` |" in text
    for title in (TRIGGER, CLARIFY, APPROACH, REDLINES, PROMPT, ACCEPTANCE, DIGEST):
        assert title in text
    for number in (f"{MAX_NOTE_LENGTH:,}", f"{SETTLED_NS / 1e9:g} s", "ten seconds"):
        assert number in text
    assert SAME_TURN_SECONDS == 10


def fields_of_settings() -> list[str]:
    return [name for name in dir(SpecSettings()) if not name.startswith("_")
            and isinstance(getattr(SpecSettings(), name), (bool, int, float, str))]  # fmt: skip


@pytest.mark.parametrize(("name", "is_english"), [("SKILL.md", True), ("SKILL.zh.md", False)])
def test_the_skill_is_rendered_from_the_routing_table(name: str, is_english: bool) -> None:
    written = (ROOT / "docs" / "skill" / name).read_text(encoding="utf-8")
    assert written == skill_text(is_english), f"gatekeeper spec text skill --language … > docs/skill/{name}"


def test_the_resident_text_and_the_skill_hold_the_same_rules() -> None:
    from gatekeeper.spec.routing import ROUTES, RULES

    for is_english in (True, False):
        for text in (resident_text(is_english), skill_text(is_english)):
            for rule in RULES:
                assert rule.text.of(is_english) in text, rule.name
            for reason, route in ROUTES.items():
                assert route.when.of(is_english) in text, reason
                assert route.do.of(is_english) in text, reason
