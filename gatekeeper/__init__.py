"""Pick the smallest set of past turns worth sending to an LLM."""

try:
    from gatekeeper.anchor import extract_anchors
except ModuleNotFoundError as error:
    if (error.name or "").startswith("gatekeeper._core."):
        raise ImportError(
            f"the compiled core of gatekeeper is missing ({error.name}). In a checkout build it with "
            "'pip install -e .'; elsewhere install it with 'pip install context-gatekeeper'."
        ) from error
    raise

from gatekeeper.batch import select_many
from gatekeeper.block import Block, GateDecision
from gatekeeper.constraints import Constraints
from gatekeeper.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetError,
    ChatFileError,
    ConversationError,
    GatekeeperError,
    LibraryError,
    SettingsError,
    TurnError,
)
from gatekeeper.gatekeeper import ContextGatekeeper
from gatekeeper.settings import Settings
from gatekeeper.tokens import estimate_tokens
from gatekeeper.topic_gate import gate_topic

__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "Block",
    "BudgetError",
    "ChatFileError",
    "Constraints",
    "ContextGatekeeper",
    "ConversationError",
    "GateDecision",
    "GatekeeperError",
    "LibraryError",
    "Settings",
    "SettingsError",
    "TurnError",
    "estimate_tokens",
    "extract_anchors",
    "gate_topic",
    "select_many",
]
