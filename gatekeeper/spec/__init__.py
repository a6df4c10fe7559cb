"""Spec recall and triage for coding agents: grade a requirement, recall spec templates, say the one next step."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.spec.classifying import classify
    from gatekeeper.spec.explaining import explain
    from gatekeeper.spec.hygiene import check_template
    from gatekeeper.spec.index import TemplateIndex
    from gatekeeper.spec.library import Library
    from gatekeeper.spec.matching import rank, score
    from gatekeeper.spec.model import Template
    from gatekeeper.spec.preparing import prepare, should_skip_matching
    from gatekeeper.spec.rendering import render_context, render_triage
    from gatekeeper.spec.routing import render_block, render_note
    from gatekeeper.spec.secrets import mask_secrets
    from gatekeeper.spec.settings import SpecSettings
    from gatekeeper.spec.tokenizing import query_fingerprint, template_fingerprint, tokenize
    from gatekeeper.spec.tools import SpecTools
    from gatekeeper.spec.triaging import decide, next_step, triage

__all__ = [
    "Library",
    "SpecSettings",
    "SpecTools",
    "Template",
    "TemplateIndex",
    "check_template",
    "classify",
    "decide",
    "explain",
    "mask_secrets",
    "next_step",
    "prepare",
    "query_fingerprint",
    "rank",
    "render_block",
    "render_context",
    "render_note",
    "render_triage",
    "score",
    "should_skip_matching",
    "template_fingerprint",
    "tokenize",
    "triage",
]

# loaded at first use: the hook starts for every prompt and needs few of them
_NAMES = {
    "classifying": "classify",
    "explaining": "explain",
    "hygiene": "check_template",
    "index": "TemplateIndex",
    "library": "Library",
    "matching": "rank score",
    "model": "Template",
    "preparing": "prepare should_skip_matching",
    "rendering": "render_context render_triage",
    "routing": "render_block render_note",
    "secrets": "mask_secrets",
    "settings": "SpecSettings",
    "tokenizing": "query_fingerprint template_fingerprint tokenize",
    "tools": "SpecTools",
    "triaging": "decide next_step triage",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name, loaded at first use."""
        from importlib import import_module

        for module, names in _NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f"gatekeeper.spec.{module}"), name)
                return value
        raise AttributeError(f"module 'gatekeeper.spec' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
