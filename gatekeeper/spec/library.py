"""The template library of a project on disk: project and global scope, read from memory, written under a lock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from threading import RLock

from gatekeeper.errors import LibraryError
from gatekeeper.spec.cache import CACHE_VERSION, Entry, TemplateFolder
from gatekeeper.spec.config import Config, read_config
from gatekeeper.spec.files import (
    MAX_FILE_BYTES,
    Signature,
    is_inside,
    is_template_id,
    make_folder,
    read_text,
    remove_stale_temporaries,
    signature_of,
    write_text,
)
from gatekeeper.spec.hygiene import merge_near_duplicates
from gatekeeper.spec.index import TemplateIndex
from gatekeeper.spec.markdown import TemplateFile, read_profile, read_template, render_profile, render_template
from gatekeeper.spec.model import GLOBAL, PROJECT, Fingerprint, Profile, Template, Usage
from gatekeeper.spec.state import State, state_folder
from gatekeeper.spec.tokenizing import template_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gatekeeper.spec.lexicon import WordList
    from gatekeeper.spec.settings import SpecSettings

LOCK_SECONDS = 10.0
PROJECTS = "projects"
WORD_LISTS = ("grading", "terms")  # those that a project may add to


@dataclass(frozen=True)
class Snapshot:
    """A library at one moment. entries: by key, no template id twice; redlines: of the profiles, merged.

    problems: (path below the root, what is wrong), each of which kept one file out or stands for a doubt.
    version: another number for another state.
    """

    entries: tuple[Entry, ...]
    redlines: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]
    version: int

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        return tuple(entry.template for entry in self.entries if entry.template is not None)

    @cached_property
    def by_id(self) -> dict[str, Entry]:
        return {entry.template.id: entry for entry in self.entries if entry.template is not None}

    @cached_property
    def index(self) -> TemplateIndex:
        """The templates as a term matrix, built at first use."""
        return TemplateIndex(self.templates)


@dataclass(frozen=True, slots=True)
class Written:
    """A template as written. path: its file; updated: whether it was there before."""

    template: Template
    path: str
    updated: bool


class Library:
    """The library that a working folder sees; threads may share it. Reading never changes a template file.

    cwd: the working folder; settings: None to read them from settings.json. Raises LibraryError for a root that is
    no absolute path.
    """

    def __init__(self, cwd: str | os.PathLike[str] = "", *, settings: SpecSettings | None = None) -> None:
        self.config: Config = read_config(os.fspath(cwd) or os.getcwd(), settings=settings)
        self.root = self.config.root
        self.project = self.config.project
        self.settings = self.config.settings
        self.state = State(self.root)
        self._folders: dict[str, TemplateFolder] = {}
        self._profiles: dict[str, tuple[Signature, Profile]] = {}
        self._snapshot = Snapshot((), (), (), 0)
        self._seen: tuple[tuple[str, ...], list[tuple[str, str]]] = ((), [])
        self._words: dict[str, tuple[Signature, WordList | None, str]] = {}
        self._mutex = RLock()

    # --- reading

    def load(self) -> Snapshot:
        """The library as it is now. Only files that changed are read; one broken file is left out and named."""
        with self._mutex:
            folders = [self._folder(key) for key in self._keys()]
            is_changed = [folder.key for folder in folders] != list(self._folders)
            self._folders = {folder.key: folder for folder in folders}
            for folder in folders:
                changes = folder.refresh(lambda: self.state.compiled(CACHE_VERSION))
                if changes is not None:
                    is_changed |= changes.is_new
                    if changes.fresh or changes.gone:
                        self.state.store_compiled(CACHE_VERSION, changes.fresh, changes.gone)
            redlines, problems = self._redlines(folders)
            for name in WORD_LISTS:
                if self.words(name) is None and name in self._words:
                    problems.append((f"words/{name}.txt", self._words[name][2]))
            if is_changed or (redlines, problems) != self._seen:
                self._seen = redlines, problems
                self._snapshot = self._snapshot_of(folders, redlines, problems)
            return self._snapshot

    def folders(self) -> list[str]:
        """The folders below the root that are read, as in the keys of entries."""
        return [key for key in self._keys() if os.path.isdir(os.path.join(self.root, key))]

    def stored_fingerprint(self, key: str) -> Fingerprint:
        """The fingerprint that the file of an entry holds, without making it anew; an empty one if it holds none."""
        path = os.path.join(self._inside(key.rpartition("/")[0]), "templates", key.rpartition("/")[2] + ".md")
        return read_template(read_text(path)[0]).template.fingerprint

    def count_uses(self, keys: Iterable[str], now: str) -> None:
        """Count one use of each template (by the key of its entry) at a time, ISO 8601."""
        if os.path.isdir(self.root):
            self.state.count(keys, now)

    def close(self) -> None:
        """Let the files of the library go."""
        self.state.close()

    def _keys(self) -> list[str]:
        """The folders that are read, most own first: of the project under each of its names, then the global one."""
        return [*self._project_keys(), GLOBAL]

    def _project_keys(self) -> list[str]:
        projects = os.path.join(self.root, PROJECTS)
        keys = [id for id in self.project.ids if os.path.isdir(os.path.join(projects, id))]
        if self.config.in_workspace:  # moved or renamed: what lies in the checkout belongs to it under any name
            try:
                names = sorted(os.listdir(projects))
            except OSError:
                names = []
            keys += [name for name in names if name not in keys and not name.startswith(".")]
        return [f"{PROJECTS}/{key}" for key in keys]

    def words(self, name: str) -> WordList | None:
        """A word list with those that the project adds, None when it adds none; a broken one is left out and named."""
        try:
            status = os.stat(os.path.join(self.root, "words", f"{name}.txt"))
        except OSError:
            self._words.pop(name, None)
            return None
        signature = signature_of(status)
        known = self._words.get(name)
        if known is None or known[0] != signature:
            try:
                known = signature, self.config.words(name), ""
            except ValueError as error:
                known = signature, None, str(error)
            self._words[name] = known
        return known[1]

    def fingerprint(self, template: Template) -> Fingerprint:
        """The fingerprint that is stored: of a project template its name and tags only."""
        return template_fingerprint(template, topic_only=template.scope != GLOBAL, terms=self.words("terms"))

    def usage(self, today: date) -> UsageView:
        """How often each template was injected, and how long ago, by template id."""
        return UsageView(self._snapshot, self.state.usage(), today)

    def _folder(self, key: str) -> TemplateFolder:
        return self._folders.get(key) or TemplateFolder(self.root, key, self.fingerprint)

    def _redlines(self, folders: list[TemplateFolder]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
        """The redlines of all profiles as they stand there, and what is wrong with folders and profiles."""
        redlines: list[str] = []
        problems: list[tuple[str, str]] = []
        for folder in folders:
            if folder.problem:
                problems.append((folder.key, folder.problem))
            try:
                redlines += self._profile(folder.key).redlines
            except (OSError, ValueError, ModuleNotFoundError) as error:
                problems.append((f"{folder.key}/profile.md", str(getattr(error, "strerror", None) or error)))
        return tuple(redlines), problems

    def _profile(self, key: str) -> Profile:
        """A profile, from memory while its file is the same; an empty one where there is none."""
        path = os.path.join(self.root, key, "profile.md")
        try:
            status = os.lstat(path)
        except OSError:
            return Profile()
        known = self._profiles.get(key)
        if known is not None and known[0] == (status.st_mtime_ns, status.st_size, status.st_ino):
            return known[1]
        if not is_inside(self.root, os.path.dirname(path)):
            raise ValueError("it leads out of the library and is not read")
        text, signature, is_settled = read_text(path)
        profile = read_profile(text)
        if is_settled:
            self._profiles[key] = signature, profile
        return profile

    def _snapshot_of(self, folders: list[TemplateFolder], redlines: tuple[str, ...],
                     outside: list[tuple[str, str]]) -> Snapshot:
        problems = list(outside)
        entries: dict[str, Entry] = {}
        for folder in folders:
            for entry in folder.entries:
                problems += [(entry.key, problem) for problem in entry.problems]
                if entry.template is None:
                    continue
                first = entries.setdefault(entry.template.id, entry)
                if first is not entry:
                    problems.append((entry.key, f"the same id as {first.key}, which is used"))
        merged = tuple(merge_near_duplicates(redlines))
        own = self.project.id
        for id, entry in entries.items():
            if entry.template is not None and entry.template.scope == PROJECT and entry.template.repo != own:
                entries[id] = replace(entry, template=replace(entry.template, repo=own))
        return Snapshot(tuple(entries.values()), merged, tuple(problems), self._snapshot.version + 1)

    # --- writing

    def write(self, name: str, scope: str, change: Callable[[Template | None], Template], *,
              digest: str = "") -> Written:
        """Write the template of a name and scope. change: makes it, given the one there is, None for a new one.
        digest: what happened in the session it comes from; "" keeps the one there is.

        No other process writes between the reading and the writing. Raises LibraryError or OSError; nothing is
        written then.
        """
        id = template_id(name, scope)
        with self._locked():
            key = self._key_of(id, scope)
            folder = make_folder(self.root, *key.split("/"), "templates")
            path = os.path.join(folder, f"{id}.md")
            old = self._read_for_writing(path, id)
            template = change(old.template if old else None)
            if template.id != id or not is_template_id(id):
                raise LibraryError(f"{template.id!r:.40} is not the id of {name!r:.80}")
            remove_stale_temporaries(folder)
            _write_readable(path, render_template(template, hits=old.hits if old else 0,
                                             last_used=old.last_used if old else "",
                                             digest=digest or (old.digest if old else "")))  # fmt: skip
            return Written(template, path, old is not None)

    def rewrite(self, key: str, change: Callable[[Template], Template]) -> Written | None:
        """Change a template that is there, by the key of its entry; None when it is gone. As `write` else."""
        id = key.rpartition("/")[2]
        with self._locked():
            path = os.path.join(self._inside(key.rpartition("/")[0]), "templates", f"{id}.md")
            old = self._read_for_writing(path, id)
            if old is None:
                return None
            template = change(old.template)
            _write_readable(path, render_template(template, hits=old.hits, last_used=old.last_used, digest=old.digest))
            return Written(template, path, True)

    def add_redlines(self, redlines: Iterable[str], today: str) -> tuple[str, ...]:
        """Add redlines to the profile of the project, near-duplicates merged; what the profile holds then."""
        with self._locked():
            key = self._key_of("", PROJECT)
            folder = make_folder(self.root, *key.split("/"))
            path = os.path.join(folder, "profile.md")
            try:
                profile = read_profile(read_text(path)[0])
            except FileNotFoundError:
                profile = Profile()
            except (ValueError, ModuleNotFoundError) as error:
                raise LibraryError(f"{path} cannot be read and is left alone: {error}") from error
            merged = tuple(merge_near_duplicates([*profile.redlines, *redlines]))
            if merged != profile.redlines:
                name = profile.repo_name or self.project.name
                _write_readable(path, render_profile(Profile(name, merged, today)))
            return merged

    def _key_of(self, id: str, scope: str) -> str:
        """Where a template of this id is, or is to be written."""
        if scope == GLOBAL:
            return GLOBAL
        keys = self._project_keys()
        for key in keys:
            if id and os.path.lexists(os.path.join(self.root, key, "templates", f"{id}.md")):
                return key
        own = [f"{PROJECTS}/{own_id}" for own_id in self.project.ids]
        return next((key for key in keys if key in own), keys[0] if len(keys) == 1 else own[0])

    def _inside(self, key: str) -> str:
        folder = os.path.join(self.root, *key.split("/"))
        if not is_inside(self.root, folder):
            raise LibraryError(f"{folder} leads out of {self.root}")
        return folder

    def _read_for_writing(self, path: str, id: str) -> TemplateFile | None:
        """The file that is to be written; None when there is none. One that cannot be read is left alone."""
        if not os.path.lexists(path):
            return None
        try:
            return read_template(read_text(path)[0], id=id)
        except (OSError, ValueError, ModuleNotFoundError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LibraryError(f"{path} cannot be read and is left alone: {reason}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the library's lock: one writer at a time, of all processes and threads."""
        try:
            from filelock import FileLock, Timeout
        except ModuleNotFoundError:
            raise LibraryError("writing needs filelock: pip install 'context-gatekeeper[spec]'") from None
        os.makedirs(self.root, exist_ok=True)
        try:
            with FileLock(os.path.join(state_folder(self.root), "lock"), timeout=LOCK_SECONDS):
                yield
        except Timeout:
            raise LibraryError(f"{self.root} is locked by another process for {LOCK_SECONDS:g} s") from None


def _write_readable(path: str, text: str) -> None:
    """Write a file, unless it would be too large to be read. Raises LibraryError for that, or OSError."""
    n_bytes = len(text.encode("utf-8"))
    if n_bytes > MAX_FILE_BYTES:
        raise LibraryError(f"{n_bytes} bytes are too many for {os.path.basename(path)}: {MAX_FILE_BYTES} are read")
    write_text(path, text)


def template_id(name: str, scope: str) -> str:
    """The id of a template: the same for the same name in the same scope, however the name is spaced or cased."""
    text = f"{name.strip().lower()}::{scope}"
    return "tpl-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


class UsageView(Mapping[str, Usage]):
    """The usage of a snapshot's templates by id, worked out when asked for."""

    def __init__(self, snapshot: Snapshot, counted: Mapping[str, tuple[int, str]], today: date) -> None:
        self._entries = snapshot.by_id
        self._counted = counted
        self._today = today

    def __getitem__(self, id: str) -> Usage:
        entry = self._entries[id]
        hits, last_used = self._counted.get(entry.key, (0, ""))
        return Usage(entry.hits + hits, _days_since(max(entry.last_used, last_used), self._today))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _days_since(moment: str, today: date) -> float | None:
    """Days since a date or a time in ISO 8601; None for what is none."""
    try:
        return float(max(0, (today - date.fromisoformat(moment[:10])).days))
    except ValueError:
        return None
