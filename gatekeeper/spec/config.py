"""Where a project's library lies, and the settings that hold for it."""

from __future__ import annotations

import os
from typing import NamedTuple

from gatekeeper.errors import LibraryError
from gatekeeper.spec.project import Project, find_project
from gatekeeper.spec.settings import SpecSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatekeeper.spec.lexicon import WordList

WORKSPACE_FOLDER = os.path.join(".gatekeeper", "spec")
SETTINGS_FILE = "settings.json"
MAX_SETTINGS_BYTES = 100_000


class Config(NamedTuple):
    """The library of one working folder.

    root: its folder, which may not exist yet. in_workspace: whether it lies in the project itself, so that all of it
    belongs to the project. warnings: to be announced.
    """

    project: Project
    root: str
    settings: SpecSettings
    in_workspace: bool = False
    warnings: tuple[str, ...] = ()

    def words(self, name: str) -> WordList | None:
        """One word list with those that the project adds in `words/<name>.txt`; None when it adds none.

        Raises ValueError for a file that is no such list.
        """
        try:
            with open(os.path.join(self.root, "words", f"{name}.txt"), encoding="utf-8-sig") as file:
                text = file.read(MAX_SETTINGS_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"words/{name}.txt: {error}") from None
        from gatekeeper.spec.lexicon import read_sections, word_list

        try:
            return word_list(name).with_words(read_sections(text, f"words/{name}.txt"))
        except ValueError as error:
            raise ValueError(f"words/{name}.txt: {str(error).removeprefix(f'words/{name}.txt, ')}") from None


def read_config(cwd: str, *, settings: SpecSettings | None = None,
                environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration of a working folder. settings given: they hold, and no file is read.

    Otherwise settings.json of the user's folder holds, and over it that of the workspace, which may not name another
    folder: a checkout must not decide where on the disk is written.
    """
    project = find_project(cwd)
    home = os.path.join(home_folder(environment), "spec")
    warnings: tuple[str, ...] = ()
    if settings is None:
        settings, warnings = _read_settings(project, home)
    root = _root_of(project, settings, home)
    # the user's own folder may be a project too: what lies there belongs to all
    is_home = os.path.realpath(root) == os.path.realpath(home)
    in_workspace = bool(project.home) and root in _workspaces(project) and not is_home
    return Config(project, root, settings, in_workspace, warnings)


def home_folder(environment: Mapping[str, str] = os.environ) -> str:
    """The user's folder: $GATEKEEPER_HOME, else ~/.gatekeeper. Raises LibraryError for a relative one."""
    home = environment.get("GATEKEEPER_HOME", "")
    if not home:
        return os.path.join(os.path.expanduser("~"), ".gatekeeper")
    if not os.path.isabs(home):
        raise LibraryError(f"GATEKEEPER_HOME must be an absolute path, got {home!r:.80}")
    return home


def session_file(project_id: str, environment: Mapping[str, str] = os.environ) -> str:
    """Where the hook notes the latest session of a project."""
    return os.path.join(home_folder(environment), "sessions", f"{project_id}.json")


def _root_of(project: Project, settings: SpecSettings, home: str) -> str:
    if settings.storage_home:
        if not os.path.isabs(settings.storage_home):
            raise LibraryError(f"storage_home must be an absolute path, got {settings.storage_home!r:.80}")
        return settings.storage_home
    if settings.storage_root == "home" or not project.home:
        return home
    own, main = _workspaces(project)
    return own if os.path.isdir(own) else main


def _workspaces(project: Project) -> tuple[str, str]:
    """The library of a checkout, and that of the main one, which differs in a linked worktree."""
    return os.path.join(project.top, WORKSPACE_FOLDER), os.path.join(project.home, WORKSPACE_FOLDER)


def _read_settings(project: Project, home: str) -> tuple[SpecSettings, tuple[str, ...]]:
    warnings: list[str] = []
    values: dict[str, object] = {}
    workspaces = dict.fromkeys(_workspaces(project)[::-1]) if project.home else {}
    for folder in [home, *workspaces]:
        path = os.path.join(folder, SETTINGS_FILE)
        found = _read_json(path, warnings)
        if folder != home:
            for key in ("storage_home", "storageHome"):
                if found.pop(key, None):
                    warnings.append(f"{path}: storage_home is not taken from a workspace; set it in {home}")
        values.update(found)
    settings, announced = SpecSettings.read(values)
    return settings, (*warnings, *announced)


def _read_json(path: str, warnings: list[str]) -> dict[str, object]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        warnings.append(f"{path} is not used: {error}")
        return {}
    from json import loads

    try:
        values = loads(text)
    except (ValueError, RecursionError) as error:
        warnings.append(f"{path} is not used: {error}")
        return {}
    if not isinstance(values, dict):
        warnings.append(f"{path} is not used: expected a JSON object")
        return {}
    return values
