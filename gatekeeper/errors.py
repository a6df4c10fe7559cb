"""What can go wrong.

GatekeeperError
├── ArgumentTypeError   (TypeError)   an argument of the wrong type
├── ArgumentValueError  (ValueError)  an argument out of range
│   ├── BudgetError                   the token budget is not a positive whole number
│   └── SettingsError                 a setting out of range
├── TurnError           (IndexError)  no such turn
├── ConversationError                 one conversation of many failed; it has the index and the cause
├── ChatFileError       (ValueError)  a chat file that cannot be read
└── LibraryError                      a template library that cannot be written
"""

from __future__ import annotations


class GatekeeperError(Exception):
    """Any error of this library."""


class ArgumentTypeError(GatekeeperError, TypeError):
    """An argument of the wrong type."""


class ArgumentValueError(GatekeeperError, ValueError):
    """An argument out of range."""


class BudgetError(ArgumentValueError):
    """The token budget is not a positive whole number."""


class SettingsError(ArgumentValueError):
    """A setting is out of range."""


class TurnError(GatekeeperError, IndexError):
    """No turn has this number."""


class ConversationError(GatekeeperError):
    """One conversation of many failed. index: which one, from 0; cause: the exception it failed with."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(f"conversation {index}: {type(cause).__name__}: {cause}")
        self.index = index
        self.cause = cause
        self.__cause__ = cause


class ChatFileError(GatekeeperError, ValueError):
    """A chat file cannot be read; the message names the file, the line and what was expected."""


class LibraryError(GatekeeperError):
    """A template library cannot be written, or a place in it may not be used; the message says why."""


def require_text(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless value is a str."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a str, got {type(value).__name__}: {value!r:.80}")


def require_whole_number(name: str, value: object) -> None:
    """Raise ArgumentTypeError unless value is an int and no bool."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, got {type(value).__name__}: {value!r:.80}")
