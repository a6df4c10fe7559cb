"""Pick the smallest set of past turns worth sending to an LLM."""

try:
    import gatekeeper._core.vocabulary  # noqa: F401  # a missing build is said at once
except ModuleNotFoundError as error:
    if (error.name or "").startswith("gatekeeper._core."):
        raise ImportError(
            f"the compiled core of gatekeeper is missing ({error.name}). In a checkout build it with "
            "'pip install -e .'; elsewhere install it with 'pip install context-gatekeeper'."
        ) from error
    raise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.anchor import extract_anchors
    from gatekeeper.batch import select_many
    from gatekeeper.block import Block, GateDecision
    from gatekeeper.constraints import Constraints
    from gatekeeper.errors import (
        ArgumentTypeError,
        ArgumentValueError,
        BatchError,
        BudgetError,
        ChatFileError,
        ConversationError,
        GatekeeperError,
        LibraryError,
        SessionNotFoundError,
        SettingsError,
        StoreBusyError,
        StoreCorruptError,
        StoreError,
        StoreSettingsError,
        StoreVersionError,
        TurnError,
    )
    from gatekeeper.gatekeeper import ContextGatekeeper
    from gatekeeper.messages import fit_messages
    from gatekeeper.settings import Settings
    from gatekeeper.store import open
    from gatekeeper.tokens import estimate_tokens
    from gatekeeper.topic_gate import gate_topic

__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "BatchError",
    "Block",
    "BudgetError",
    "ChatFileError",
    "Constraints",
    "ContextGatekeeper",
    "ConversationError",
    "GateDecision",
    "GatekeeperError",
    "LibraryError",
    "SessionNotFoundError",
    "Settings",
    "SettingsError",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreError",
    "StoreSettingsError",
    "StoreVersionError",
    "TurnError",
    "estimate_tokens",
    "extract_anchors",
    "fit_messages",
    "gate_topic",
    "open",
    "select_many",
]

# what is loaded at first use: the hook of `gatekeeper.spec` starts for every prompt and needs none of it
_NAMES = {
    "anchor": "extract_anchors",
    "batch": "select_many",
    "block": "Block GateDecision",
    "constraints": "Constraints",
    "errors": "ArgumentTypeError ArgumentValueError BatchError BudgetError ChatFileError ConversationError "
              "GatekeeperError LibraryError SessionNotFoundError SettingsError StoreBusyError StoreCorruptError "
              "StoreError StoreSettingsError StoreVersionError TurnError",
    "gatekeeper": "ContextGatekeeper",
    "messages": "fit_messages",
    "settings": "Settings",
    "store": "open",
    "tokens": "estimate_tokens",
    "topic_gate": "gate_topic",
}  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name, or one of the modules above, loaded at first use."""
        from importlib import import_module

        if name in _NAMES:
            return import_module(f"gatekeeper.{name}")
        for module, names in _NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(f"gatekeeper.{module}"), name)
                return value
        raise AttributeError(f"module 'gatekeeper' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
