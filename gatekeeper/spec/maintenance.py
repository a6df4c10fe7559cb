"""Keeping a library in order: what is wrong with it, fingerprints made anew, redlines moved where they belong."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import date

from gatekeeper.spec.files import TEMPLATE_FILE
from gatekeeper.spec.hygiene import PROJECT_LEVEL, classify_redline, is_task_scoped
from gatekeeper.spec.matching import is_topic, score
from gatekeeper.spec.model import PROJECT, Fingerprint
from gatekeeper.spec.preparing import prepare
from gatekeeper.spec.settings import FP_VERSION
from gatekeeper.spec.tokenizing import query_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatekeeper.spec.cache import Entry
    from gatekeeper.spec.library import Library
    from gatekeeper.spec.model import Template

# the kinds of findings, and what helps against each
REMEDIES = {
    "settings": "mend settings.json",
    "unreadable": "mend the file or remove it",
    "broken front matter": "mend its YAML: what was read of it may not be what was meant",
    "state": "remove .state/state.db: only counts and the cache are lost",
    "invalid id": "rename the file to <id>.md, or move it elsewhere",
    "nested layout": "move the file into templates/",
    "task-scoped redline": "remove it: it would block later tasks",
    "project-level redline": "gatekeeper spec rebuild-project-scope --hoist",
    "broken fingerprint": "gatekeeper spec rebuild",
    "stale fingerprint": "gatekeeper spec rebuild",
    "no trigger": "say in what words it is asked for",
    "vocabulary only": "name its topic in name and tags: by common words alone it cannot be found",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a library. path: below its root."""

    kind: str
    path: str
    text: str

    @property
    def remedy(self) -> str:
        return REMEDIES[self.kind]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A template whose fingerprint changes. before, after: its lexical score for its own words."""

    key: str
    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    before: float
    after: float
    hoisted: tuple[str, ...] = ()


# --- doctor


def examine(library: Library) -> list[Finding]:
    """Everything wrong with what the library's project sees. Reads only."""
    found = [Finding("settings", "settings.json", warning) for warning in library.config.warnings]
    snapshot = library.load()
    for entry in snapshot.entries:
        found += _examine_template(entry)
    library.state.usage()
    if library.state.problem:
        found.append(Finding("state", ".state/state.db", library.state.problem))
    named = {(finding.path, finding.text) for finding in found}
    found += [Finding("unreadable", path, text) for path, text in snapshot.problems if (path, text) not in named]
    for folder in library.folders():
        found += _examine_names(library.root, folder)
    return sorted(found, key=lambda finding: (finding.path, finding.kind, finding.text))


def _examine_template(entry: Entry) -> Iterator[Finding]:
    template = entry.template
    if template is None:
        return
    for problem in entry.problems:
        yield Finding(_kind_of(problem), entry.key, problem)
    for redline in template.redlines:
        if is_task_scoped(redline):
            yield Finding("task-scoped redline", entry.key, redline)
        elif template.scope == PROJECT and classify_redline(redline) == PROJECT_LEVEL:
            yield Finding("project-level redline", entry.key, redline)
    if not template.fingerprint.weights:
        yield Finding("broken fingerprint", entry.key, "no tokens")
    elif not any(map(is_topic, template.fingerprint.weights)):
        yield Finding("vocabulary only", entry.key, ", ".join(list(template.fingerprint.weights)[:8]))
    if entry.is_stale:
        yield Finding("stale fingerprint", entry.key, f"version {template.fp_version}, now {FP_VERSION}")
    if not template.trigger.strip():
        yield Finding("no trigger", entry.key, template.name)


def _kind_of(problem: str) -> str:
    """The kind of a problem that a reader tells."""
    if "front matter" in problem:
        return "broken front matter"
    return "broken fingerprint" if "fingerprint" in problem else "invalid id"


def _examine_names(root: str, folder: str) -> Iterator[Finding]:
    """Markdown files that no reader takes for a template: a foreign name, or a folder too deep."""
    top = os.path.join(root, folder)
    for path, _, names in os.walk(top):
        for name in sorted(names):
            if not name.endswith(".md") or name == "profile.md":
                continue
            shown = os.path.relpath(os.path.join(path, name), root).replace(os.sep, "/")
            if path != os.path.join(top, "templates"):
                yield Finding("nested layout", shown, "not in templates/, and not read")
            elif not TEMPLATE_FILE.match(name):
                yield Finding("invalid id", shown, "no template id, and not read")
            elif os.path.islink(os.path.join(path, name)):
                yield Finding("invalid id", shown, "a link, and not read")


# --- rebuild


def rebuild(library: Library, *, dry_run: bool = False) -> list[Rebuilt]:
    """Make every stored fingerprint anew with the generator of today, and write those that differ.

    Raises LibraryError or OSError.
    """
    return _rebuild(library, lambda entry: True, hoist=False, dry_run=dry_run)


def rebuild_project_scope(library: Library, *, hoist: bool = False, dry_run: bool = False) -> list[Rebuilt]:
    """The same for the templates of the project: name and tags only. hoist: project-level redlines go to the profile.

    Raises LibraryError or OSError.
    """
    return _rebuild(library, lambda entry: entry.template is not None and entry.template.scope == PROJECT,
                    hoist=hoist, dry_run=dry_run)  # fmt: skip


def _rebuild(library: Library, is_wanted: Callable[[Entry], bool], *, hoist: bool, dry_run: bool) -> list[Rebuilt]:
    changed: list[tuple[Entry, Rebuilt]] = []
    for entry in library.load().entries:
        if entry.template is None or not is_wanted(entry):
            continue
        stored = library.stored_fingerprint(entry.key)
        hoisted = tuple(redline for redline in entry.template.redlines
                        if hoist and classify_redline(redline) == PROJECT_LEVEL)  # fmt: skip
        rebuilt = _compare(entry.key, entry.template, stored, library.fingerprint(entry.template), hoisted)
        if stored.weights != library.fingerprint(entry.template).weights or hoisted or entry.is_stale:
            changed.append((entry, rebuilt))
    if dry_run:
        return [rebuilt for _, rebuilt in changed]
    moved = [redline for _, rebuilt in changed for redline in rebuilt.hoisted]
    if moved:
        library.add_redlines(moved, date.today().isoformat())
    for entry, rebuilt in changed:
        library.rewrite(entry.key, lambda old, taken=rebuilt.hoisted: _renewed(library, old, taken))  # type: ignore[misc]
    return [rebuilt for _, rebuilt in changed]


def _renewed(library: Library, template: Template, taken: tuple[str, ...]) -> Template:
    redlines = tuple(redline for redline in template.redlines if redline not in taken)
    template = replace(template, redlines=redlines)
    return replace(template, fingerprint=library.fingerprint(template), fp_version=FP_VERSION)


def _compare(key: str, template: Template, stored: Fingerprint, fresh: Fingerprint,
             hoisted: tuple[str, ...]) -> Rebuilt:
    """What becomes of a fingerprint; scored against the template's own words."""
    query = query_fingerprint(prepare(f"{template.trigger}\n{template.name}").text)
    return Rebuilt(
        key, template.name, tuple(token for token in fresh.weights if token not in stored.weights),
        tuple(token for token in stored.weights if token not in fresh.weights),
        score(query, stored).lexical, score(query, fresh).lexical, hoisted)
