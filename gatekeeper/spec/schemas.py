"""The four tools as an agent sees them: name, description, and closed JSON schemas of what goes in and comes out."""

from __future__ import annotations

from dataclasses import dataclass

from gatekeeper.spec.decision import CONFIRM, IMPLEMENT, NONE, TRIAGE
from gatekeeper.spec.model import GLOBAL, PROJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

NEXT_STEPS = [IMPLEMENT, CONFIRM, TRIAGE, NONE]
MODES = ["fast-track", "clarify", "ready"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. text_field: which field of an answer is its text for the model."""

    name: str
    description: str
    text_field: str
    input_schema: Schema
    output_schema: Schema


def _object(required: str, **properties: Schema) -> Schema:
    """A closed object; required: names, separated by blanks."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def _text(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _texts(description: str = "") -> Schema:
    return {"type": "array", "items": _text(), **({"description": description} if description else {})}


_BOOLEAN: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_LEVEL: Schema = {"type": "integer", "minimum": 1, "maximum": 3}
_REQUIREMENT = _text("The user's words, whole and unchanged.")
_CWD = _text("Working folder, if not the server's.")
_TEMPLATE = _object("id name category score hit", id=_text(), name=_text(), category=_text(),
                    score={"type": "number"}, hit=_BOOLEAN)  # fmt: skip
_CLASSIFICATION = _object("level fast_track family signals", level=_LEVEL, fast_track=_BOOLEAN, family=_text(),
                          signals=_texts(), content_gap=_text())  # fmt: skip

RECALL = Tool(
    "spec_recall",
    "First call for every coding request, before any file tool. Grades the request (L1-L3), finds spec templates of "
    "this project and says the one next_step: implement = do it now, ask nothing; confirm = ask once for exactly what "
    "content_gap names, then implement; triage = call spec_triage; none = no coding request. Follow next_step.",
    "context",
    _object("requirement", requirement=_REQUIREMENT, cwd=_CWD),
    _object(
        "matched context next_step", matched=_BOOLEAN, context=_text(), redlines=_texts(),
        templates={"type": "array", "items": _TEMPLATE}, notice=_text(), level=_LEVEL, fast_track=_BOOLEAN,
        content_gap=_texts(), next_step=_text(enum=NEXT_STEPS), unactionable=_BOOLEAN, skipped=_text(),
        explain_id=_text()),
)  # fmt: skip

TRIAGE_TOOL = Tool(
    "spec_triage",
    "Only when spec_recall said triage (L3). Checks goal, approach, boundary and context of the same request; returns "
    "a report and the questions to ask, all at once, before any file tool.",
    "report",
    _object("requirement", requirement=_REQUIREMENT),
    _object("mode level needs_clarify ready report classification", mode=_text(enum=MODES), level=_LEVEL,
            needs_clarify=_BOOLEAN, ready=_BOOLEAN, report=_text(), questions=_texts(), classification=_CLASSIFICATION),
)  # fmt: skip

DISTILL = Tool(
    "spec_distill",
    "After an L3 clarification, before the first edit: turns the request and the answers into one implementation "
    "prompt with goal, range, hard constraints and acceptance.",
    "prompt",
    _object("requirement", requirement=_REQUIREMENT, clarifications=_texts("What was asked and answered."),
            files=_texts("Files in range."), constraints=_texts("What must not change."), stack=_text("Tech stack."),
            acceptance=_texts("How it is checked.")),
    _object("prompt missing_constraints", prompt=_text(), missing_constraints=_BOOLEAN),
)  # fmt: skip

RETRO = Tool(
    "spec_retro",
    "At the end of a task whose lesson will be asked again: writes or updates a spec template, by name. Write lasting "
    "rules only; a redline that limits one task (\"only touch a.js this time\") is dropped. Secrets are masked.",
    "message",
    _object("name", name=_text("Topic, e.g. \"order export\"."), category=_text("e.g. feature/api, bugfix."),
            tags=_texts("Technical words."), trigger=_text("When it applies, the user's wording in quotes."),
            clarify=_texts("Questions worth asking."), approach=_texts("Steps, in order."),
            redlines=_texts("What must never change."), prompt=_text("A reusable prompt."),
            acceptance=_texts("Checks."), persist_redlines={"type": "boolean", "description":
            "Put project-wide redlines into the project profile; default true."},
            scope=_text("Default project.", enum=[PROJECT, GLOBAL]), cwd=_CWD,
            digest=_text("What happened; made from the session if empty.")),
    _object("saved message", saved=_BOOLEAN, message=_text(), id=_text(), file=_text(), scope=_text(),
            updated=_BOOLEAN, preview=_text(), dropped=_texts(), hoisted=_texts(),
            masked={"type": "object", "additionalProperties": _WHOLE}, reason=_text()),
)  # fmt: skip

TOOLS = (RECALL, TRIAGE_TOOL, DISTILL, RETRO)
