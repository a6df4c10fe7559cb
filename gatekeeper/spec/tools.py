"""The four tools as Python functions: what an MCP client gets, and what the command line prints."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, replace
from datetime import datetime, timezone
from threading import Lock

from gatekeeper.errors import ArgumentTypeError, ArgumentValueError, GatekeeperError, LibraryError, require_text
from gatekeeper.spec.asking import Text
from gatekeeper.spec.config import session_file
from gatekeeper.spec.decision import NONE
from gatekeeper.spec.distilling import distill
from gatekeeper.spec.explaining import explain
from gatekeeper.spec.hook import text_digest
from gatekeeper.spec.hygiene import check_template, merge_near_duplicates
from gatekeeper.spec.library import Library, template_id
from gatekeeper.spec.markdown import normal_template, render_template
from gatekeeper.spec.model import GLOBAL, PROJECT, SKIPPED, Template
from gatekeeper.spec.preparing import prepare, should_skip_matching
from gatekeeper.spec.rendering import render_context, render_triage
from gatekeeper.spec.routing import RULES
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.secrets import mask_secrets
from gatekeeper.spec.session import SessionNote, digest_of, is_write_back_due
from gatekeeper.spec.settings import FP_VERSION, MAX_DIGEST_LENGTH, MAX_KEPT_ITEMS
from gatekeeper.spec.tokenizing import query_fingerprint
from gatekeeper.spec.triaging import decide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gatekeeper.spec.decision import Classification, Decision
    from gatekeeper.spec.library import Snapshot
    from gatekeeper.spec.model import CheckedTemplate, Match
    from gatekeeper.spec.settings import SpecSettings

    Answer = dict[str, Any]

logger = logging.getLogger("gatekeeper.spec")
MAX_PREVIEW_LENGTH = 600
_NOT_WRITTEN_BACK = Text("上一项改动还没有写回。", "The last change is not written back yet. ")


class SpecTools:
    """The tools on the library of a working folder; threads may share them. Answers are plain data.

    settings: None to read them from settings.json. Raises LibraryError where a library cannot lie.
    """

    def __init__(self, cwd: str | os.PathLike[str] = "", *, settings: SpecSettings | None = None) -> None:
        self._settings = settings
        self._lock = Lock()
        self._announced: set[tuple[str, str]] = set()
        self._libraries: dict[str, Library] = {}
        self.cwd = os.path.abspath(os.fspath(cwd) or os.getcwd())
        self.library = self._library("")

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """One of the four by its name. Raises ArgumentTypeError or ArgumentValueError for what it does not take."""
        tools = {tool.name: tool for tool in TOOLS}
        if name not in tools:
            raise ArgumentValueError(f"unknown tool {name!r:.60}; there are {', '.join(tools)}")
        schema = tools[name].input_schema
        unknown = sorted(set(arguments) - set(schema["properties"]))
        missing = [key for key in schema["required"] if key not in arguments]
        if unknown or missing:
            wrong = f"does not take {unknown[0]!r:.60}" if unknown else f"needs {missing[0]!r}"
            raise ArgumentTypeError(f"{name} {wrong}; it takes {', '.join(schema['properties'])}")
        functions = {"spec_recall": self.recall, "spec_triage": self.triage, "spec_distill": self.distill,
                     "spec_retro": self.retro}  # fmt: skip
        return functions[name](**arguments)  # type: ignore[operator,no-any-return]

    # --- recall

    def recall(self, requirement: str, cwd: str = "") -> Answer:
        """Grade a request, find templates, say the next step. Counts one use of each template in the answer."""
        require_text("requirement", requirement)
        library = self._library(cwd)
        settings = library.settings
        decision = decide(requirement, library.words("grading"))
        snapshot = self._load(library)
        is_skipped = should_skip_matching(requirement)
        matches = [] if is_skipped or not settings.auto_recall else self._matches(library, snapshot, requirement)
        if matches:
            library.count_uses([snapshot.by_id[match.template.id].key for match in matches], _now())
            self._announce(library, library.state.problem)
        context = render_context(decision, matches, snapshot.redlines, text=requirement,
                                 max_templates=settings.max_inject_templates, max_chars=settings.inject_max_chars)
        return {
            "matched": bool(matches), "context": context, "redlines": list(snapshot.redlines),
            "templates": [_shown(match) for match in matches],
            "notice": self._notice(library, decision, requirement),
            **_graded(decision), "next_step": decision.next_step.step, "skipped": SKIPPED if is_skipped else "",
            "explain_id": text_digest(requirement),
        }  # fmt: skip

    def _matches(self, library: Library, snapshot: Snapshot, requirement: str) -> list[Match]:
        query = query_fingerprint(prepare(requirement).text, library.words("terms"))
        settings = library.settings
        return snapshot.index.recall(
            query, threshold=settings.match_threshold, max_templates=settings.max_inject_templates,
            repo=library.project.id, usage=library.usage(_today()))  # fmt: skip

    def _notice(self, library: Library, decision: Decision, requirement: str) -> str:
        """The write-back reminder, where finished work of this session is still to be written back."""
        if decision.next_step.step == NONE or not library.settings.auto_retro:
            return ""
        turns = SessionNote(session_file(library.project.id)).turns(requirement)
        if not is_write_back_due(turns, library.settings):
            return ""
        rule = next(rule for rule in RULES if rule.name == "write-back")
        is_english = decision.classification.is_english
        return _NOT_WRITTEN_BACK.of(is_english) + rule.text.of(is_english)

    def explain(self, requirement: str, template: str | None = None, cwd: str = "") -> Answer:
        """Why templates match, or why not; of one only (by id or name) if given.

        Raises ArgumentValueError for a template that is not there.
        """
        require_text("requirement", requirement)
        library = self._library(cwd)
        snapshot, terms = library.load(), library.words("terms")
        id = _id_of(snapshot, template) if template is not None else None
        prepared = prepare(requirement)
        query = query_fingerprint(prepared.text, terms)
        explained = explain(requirement, snapshot.templates, template_id=id, settings=library.settings,
                            repo=library.project.id, usage=library.usage(_today()), terms=terms)  # fmt: skip
        return {
            "explain_id": text_digest(requirement),
            "prepared": {"text": prepared.text, "fields": list(prepared.fields), "removed": dict(prepared.removed)},
            "query": dict(query.weights), "tags": list(query.tags), "category": query.category,
            "threshold": library.settings.match_threshold,
            "skipped": SKIPPED if should_skip_matching(requirement) else "",
            "templates": [
                {"template_id": one.template_id, "name": one.name, "verdict": one.verdict, "line": one.line,
                 "cosine": one.score.cosine, "coverage": one.score.coverage, "lexical": one.score.lexical,
                 "shared": list(one.score.shared), "topic_evidence": list(one.score.topic_evidence),
                 "ignored": list(one.score.ignored), "priors": asdict(one.priors), "rank_score": one.rank_score,
                 "template": dict(one.template)}
                for one in explained],
        }  # fmt: skip

    # --- triage and distill

    def triage(self, requirement: str) -> Answer:
        """The four-dimension check of a request, for any level."""
        require_text("requirement", requirement)
        decision = decide(requirement, self.library.words("grading"))
        found = render_triage(decision, requirement)
        answer: Answer = {"mode": found.mode, "level": found.level, "needs_clarify": found.needs_clarify,
                          "ready": found.ready, "report": found.report}  # fmt: skip
        if found.needs_clarify:
            answer["questions"] = list(found.questions)
        return answer | {"classification": _classified(decision.classification)}

    def distill(self, requirement: str, clarifications: Iterable[str] = (), files: Iterable[str] = (),
                constraints: Iterable[str] = (), stack: str = "", acceptance: Iterable[str] = ()) -> Answer:
        """One implementation prompt from a request and what was clarified."""
        require_text("requirement", requirement)
        require_text("stack", stack)
        lists = {"clarifications": clarifications, "files": files, "constraints": constraints, "acceptance": acceptance}
        found = distill(requirement, stack=stack, strict=self.library.settings.strict_distill,
                        **{name: _texts(name, value) for name, value in lists.items()})  # fmt: skip
        return {"prompt": found.text, "missing_constraints": found.missing_constraints}

    # --- retro

    def retro(self, name: str, category: str = "", tags: Iterable[str] = (), trigger: str = "",
              clarify: Iterable[str] = (), approach: Iterable[str] = (), redlines: Iterable[str] = (), prompt: str = "",
              acceptance: Iterable[str] = (), persist_redlines: bool = True, scope: str = "", cwd: str = "",
              digest: str = "") -> Answer:
        """Write or update the template of a name, checked; what could not be written is said with its reason.

        Raises ArgumentTypeError or ArgumentValueError for what it does not take.
        """
        for key, text in (("name", name), ("category", category), ("trigger", trigger), ("prompt", prompt),
                          ("scope", scope), ("digest", digest)):  # fmt: skip
            require_text(key, text)
        library = self._library(cwd)
        scope = scope or library.settings.default_scope
        if scope not in (PROJECT, GLOBAL):
            raise ArgumentValueError(f"scope must be {PROJECT} or {GLOBAL}, got {scope!r:.40}")
        given = Template(
            "", name, mask_secrets(category)[0], scope, _texts("tags", tags), trigger, _texts("clarify", clarify),
            _texts("approach", approach), _texts("redlines", redlines), prompt, _texts("acceptance", acceptance))
        checked = check_template(normal_template(given) if name.strip() else given)
        try:
            return self._write(library, checked, persist_redlines=persist_redlines, digest=digest)
        except (GatekeeperError, OSError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return {"saved": False, "message": f"not saved: {reason}", "scope": scope, "reason": reason,
                    "dropped": list(checked.dropped), "hoisted": [], "masked": dict(checked.masked)}  # fmt: skip

    def _write(self, library: Library, checked: CheckedTemplate, *, persist_redlines: bool, digest: str) -> Answer:
        new = checked.template
        if not new.name.strip():
            raise LibraryError("the name is empty")
        session = SessionNote(session_file(library.project.id))
        digest = mask_secrets(digest.strip() or digest_of(session.turns()))[0][:MAX_DIGEST_LENGTH]
        hoisted = checked.hoisted if persist_redlines else ()
        if hoisted:  # first, so that no rule is lost when the second write fails
            library.add_redlines(hoisted, _now()[:10])
        written = library.write(new.name, new.scope, lambda old: _merged(library, new, old), digest=digest)
        template = written.template
        found = library.load().by_id.get(template.id)
        if found is None or found.template is None:
            raise LibraryError(f"{written.path} was written but is not read: see gatekeeper spec doctor")
        session.mark_written_back()
        body = render_template(template).split("\n---\n", 1)[1].strip()
        answer: Answer = {
            "saved": True, "id": template.id, "file": written.path, "scope": template.scope, "updated": written.updated,
            "preview": body[:MAX_PREVIEW_LENGTH], "dropped": list(checked.dropped), "hoisted": list(hoisted),
            "masked": dict(checked.masked)}  # fmt: skip
        return answer | {"message": _message(answer)}

    # --- libraries

    def _load(self, library: Library) -> Snapshot:
        """The library as it is now; what kept a file out is logged, once."""
        snapshot = library.load()
        for path, problem in snapshot.problems:
            self._announce(library, f"{path}: {problem}")
        return snapshot

    def _announce(self, library: Library, problem: str) -> None:
        if problem and (library.root, problem) not in self._announced:
            self._announced.add((library.root, problem))
            logger.warning("%s: %s", library.root, problem)

    def _library(self, cwd: str) -> Library:
        """The library of a folder, opened once."""
        require_text("cwd", cwd)
        folder = self.cwd
        if cwd:
            folder = os.path.abspath(os.path.join(self.cwd, cwd)) if "\0" not in cwd else ""
            if not os.path.isdir(folder):
                raise ArgumentValueError(f"cwd must be a folder, got {cwd!r:.200}")
        with self._lock:
            if folder not in self._libraries:
                self._libraries[folder] = Library(folder, settings=self._settings)
            return self._libraries[folder]


def _merged(library: Library, new: Template, old: Template | None) -> Template:
    """A template with what a new version brings: lists of questions and checks united, the approach replaced."""
    now = _now()
    base = old or Template(template_id(new.name, new.scope), new.name, scope=new.scope, created=now[:10])
    merged = replace(
        base, name=new.name, category=_first_given(new.category, base.category), tags=new.tags or base.tags,
        trigger=new.trigger or base.trigger, approach=new.approach or base.approach, prompt=new.prompt or base.prompt,
        clarify=tuple(merge_near_duplicates([*new.clarify, *base.clarify])[:MAX_KEPT_ITEMS]),
        acceptance=tuple(merge_near_duplicates([*new.acceptance, *base.acceptance])[:MAX_KEPT_ITEMS]),
        redlines=tuple(merge_near_duplicates([*base.redlines, *new.redlines])),
        repo=library.project.id if new.scope == PROJECT else "", updated=now)
    merged = normal_template(merged)
    return replace(merged, fingerprint=library.fingerprint(merged), fp_version=FP_VERSION)


def _first_given(new: str, old: str) -> str:
    """A category, unless it is the one that stands for none."""
    return old if new.strip() in ("", Template("", "").category) else new


def _message(answer: Answer) -> str:
    """What was written, and what was not, in a few lines."""
    lines = [f"{'updated' if answer['updated'] else 'saved'} {answer['id']} ({answer['scope']}): {answer['file']}"]
    lines += [f"dropped, it bounds one task: {redline}" for redline in answer["dropped"]]
    lines += [f"moved to the project profile: {redline}" for redline in answer["hoisted"]]
    if answer["masked"]:
        lines.append("masked: " + ", ".join(f"{count} {kind}" for kind, count in answer["masked"].items()))
    return "\n".join(lines)


def _graded(decision: Decision) -> Answer:
    classification = decision.classification
    gap = classification.content_gap
    return {"level": classification.level, "fast_track": classification.fast_track,
            "content_gap": [gap] if gap else [], "unactionable": decision.triage.unactionable}  # fmt: skip


def _classified(classification: Classification) -> Answer:
    answer: Answer = {"level": classification.level, "fast_track": classification.fast_track,
                      "family": classification.family, "signals": list(classification.signals)}  # fmt: skip
    return answer | ({"content_gap": classification.content_gap} if classification.content_gap else {})


def _shown(match: Match) -> Answer:
    template = match.template
    return {"id": template.id, "name": template.name, "category": template.category,
            "score": round(match.score.lexical, 4), "hit": match.hit}  # fmt: skip


def _id_of(snapshot: Snapshot, template: str) -> str:
    """The id of a template by id or name."""
    wanted = template.strip()
    for id, entry in snapshot.by_id.items():
        if wanted == id or (entry.template is not None and wanted.lower() == entry.template.name.lower()):
            return id
    raise ArgumentValueError(f"no template {template!r:.80} among {len(snapshot.by_id)}")


def _texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)):
        raise ArgumentTypeError(f"{name} must be a list of str, got {type(values).__name__}: {values!r:.80}")
    found = tuple(values)
    for value in found:
        require_text(name, value)
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _today() -> Any:
    return datetime.now(timezone.utc).date()
