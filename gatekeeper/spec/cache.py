"""The templates of one folder in memory: only files that changed are read, whoever changed them."""

from __future__ import annotations

import gc
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from json import JSONEncoder, loads

from gatekeeper.spec.files import SETTLED_NS, TEMPLATE_FILE, Signature, is_inside, read_text, signature_of
from gatekeeper.spec.markdown import read_template
from gatekeeper.spec.model import GLOBAL, Fingerprint, Template
from gatekeeper.spec.settings import FP_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Compiled = Mapping[str, tuple[Signature, str]]  # key: signature of the file, packed entry

CACHE_VERSION = f"3.{FP_VERSION}"  # of the form of an entry, and of the fingerprints in it
_encode = JSONEncoder(ensure_ascii=False).encode
_TEXTS = ("id", "name", "category", "scope", "trigger", "prompt", "repo", "created", "updated")
_LISTS = ("tags", "clarify", "approach", "redlines", "acceptance")


@dataclass(frozen=True, slots=True)
class Entry:
    """A template file as loaded. key: its path below the root, without suffix; template: None when it is broken.

    hits, last_used: uses counted in the file by an older writer. is_stale: its fingerprint was made by another
    version, or for another scope, and has been made anew for this entry.
    """

    key: str
    template: Template | None
    hits: int = 0
    last_used: str = ""
    problems: tuple[str, ...] = ()
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What a refresh found: whether entries differ, what to store with its signature, keys of files that are gone."""

    is_new: bool
    fresh: Mapping[str, tuple[Signature, str]]
    gone: list[str]


class TemplateFolder:
    """The templates of `<root>/<key>/templates`. fingerprint: makes the fingerprint of a template of this scope."""

    def __init__(self, root: str, key: str, fingerprint: Callable[[Template], Fingerprint]) -> None:
        self.root = root
        self.key = key
        self.path = os.path.join(root, key, "templates")
        self.fingerprint = fingerprint
        self.entries: tuple[Entry, ...] = ()
        self.problem = ""
        self._listed: Signature | None = None
        self._paths: list[str] = []
        self._signatures: list[Signature | None] = []

    def refresh(self, compiled: Callable[[], Compiled]) -> Changes | None:
        """Bring the entries up to date; None when no file changed, else what came of it.

        One `lstat` a file, so that an edit in place is seen too. compiled: gives what is stored, asked once if at all.
        """
        paths, is_new_list = self._list()
        try:
            signatures: list[Signature | None] = [
                (s.st_mtime_ns, s.st_size, s.st_ino) for s in map(os.lstat, paths)]
        except OSError:  # one is just gone: list again, and take what is there
            self._listed = None
            paths = [path for path in self._list()[0] if os.path.lexists(path)]
            signatures = [_signature(path) for path in paths]
            is_new_list = True
        if signatures == self._signatures and not is_new_list:
            return None
        with _without_collection():
            return self._load(paths, signatures, compiled)

    def _load(self, paths: list[str], signatures: list[Signature | None], compiled: Callable[[], Compiled]) -> Changes:
        known = {path: (signature, entry)
                 for path, signature, entry in zip(self._paths, self._signatures, self.entries, strict=True)}
        fresh: dict[str, tuple[Signature, str]] = {}
        entries: list[Entry] = []
        stored: Compiled | None = None
        for number, (path, signature) in enumerate(zip(paths, signatures, strict=True)):
            known_signature, entry = known.get(path, (None, None))
            if entry is None or signature is None or signature != known_signature:
                stored = compiled() if stored is None else stored
                key = f"{self.key}/{os.path.basename(path)[:-3]}"
                found = stored.get(key)
                entry = _unpacked(key, found[1]) if found and found[0] == signature else None
                if entry is None:
                    entry, signatures[number] = self._read(key, path)
                    signature = signatures[number]
                    if signature is not None:
                        fresh[key] = signature, _packed(entry)
            entries.append(entry)
        is_new = tuple(entries) != self.entries
        if is_new:
            self.entries = tuple(entries)
        self._paths, self._signatures = paths, signatures
        keys = {entry.key for entry in entries}
        gone = [key for key in stored or () if key.rpartition("/")[0] == self.key and key not in keys]
        return Changes(is_new, fresh, gone)

    def _list(self) -> tuple[list[str], bool]:
        """The template files, and whether the list was made anew; a changed folder has another signature."""
        try:
            signature = signature_of(os.stat(self.path))
        except OSError:
            is_new = bool(self._paths)
            self._listed, self.problem = None, ""
            return [], is_new
        if signature == self._listed:
            return list(self._paths), False
        self._listed = signature if time.time_ns() - signature[0] > SETTLED_NS else None
        if not is_inside(self.root, self.path):
            self.problem = f"{self.key}/templates leads out of the library and is not read"
            return [], bool(self._paths)
        try:
            with os.scandir(self.path) as found:
                names = [e.name for e in found if TEMPLATE_FILE.match(e.name) and not e.is_symlink()]
        except OSError as error:
            self.problem = f"{self.key}/templates: {error.strerror or error}"
            return [], bool(self._paths)
        self.problem = ""
        paths = [os.path.join(self.path, name) for name in sorted(names)]
        return paths, paths != self._paths

    def _read(self, key: str, path: str) -> tuple[Entry, Signature | None]:
        """The entry of a file; its signature only when it may be trusted. A broken file is an entry with a problem."""
        try:
            text, signature, is_settled = read_text(path)
        except (OSError, ValueError) as error:
            return Entry(key, None, problems=(_reason(error),)), None
        trusted = signature if is_settled else None
        try:
            file = read_template(text, id=os.path.basename(path)[:-3])
        except (ValueError, ModuleNotFoundError) as error:
            return Entry(key, None, problems=(_reason(error),)), trusted
        scope = GLOBAL if self.key == GLOBAL else "project"
        template = file.template
        is_stale = template.fp_version != FP_VERSION or not template.fingerprint.weights or scope != template.scope
        if is_stale:
            template = replace(template, scope=scope)
            template = replace(template, fingerprint=Fingerprint(self.fingerprint(template).weights))
        return Entry(key, template, file.hits, file.last_used, file.problems, is_stale), trusted


@contextmanager
def _without_collection() -> Iterator[None]:
    """Let the cycle collector rest while many records are made: it would walk the whole heap and find no cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _signature(path: str) -> Signature | None:
    try:
        return signature_of(os.lstat(path))
    except OSError:
        return None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _packed(entry: Entry) -> str:
    """An entry as JSON, the stored form."""
    if entry.template is None:
        return _encode([entry.problems])
    template = entry.template
    # whole numbers are read twice as fast
    weights = {token: int(weight) if weight == int(weight) else weight
               for token, weight in template.fingerprint.weights.items()}
    values = [getattr(template, name) for name in (*_TEXTS, *_LISTS)]
    own = [template.fp_version, entry.hits, entry.last_used, entry.is_stale]
    return _encode([entry.problems, *values, weights, *own])


def _unpacked(key: str, packed: str) -> Entry | None:
    """The entry of a stored form; None when it is none."""
    try:
        problems, *rest = loads(packed)
        if not rest:
            return Entry(key, None, problems=tuple(problems))
        (id, name, category, scope, trigger, prompt, repo, created, updated, tags, clarify, approach, redlines,
         acceptance, weights, fp_version, hits, last_used, is_stale) = rest  # fmt: skip
        template = Template(
            id, name, category, scope, tuple(tags), trigger, tuple(clarify), tuple(approach), tuple(redlines), prompt,
            tuple(acceptance), Fingerprint(weights), fp_version, repo, created, updated)  # fmt: skip
        return Entry(key, template, hits, last_used, tuple(problems), is_stale)
    except (ValueError, TypeError):
        return None
