"""What can go wrong.

GatekeeperError
├── ArgumentTypeError   (TypeError)   an argument of the wrong type
├── ArgumentValueError  (ValueError)  an argument out of range
│   ├── BudgetError                   the token budget is not a positive whole number
│   └── SettingsError                 a setting out of range
├── TurnError           (IndexError)  no such turn
├── ConversationError                 one conversation of many failed; it has the index and the cause
├── BatchError          (ValueError)  a file of conversations that cannot be answered
├── ChatFileError       (ValueError)  a chat file that cannot be read
├── LibraryError                      a template library that cannot be written
└── StoreError                        a session file that cannot be used; it has the path
    ├── StoreCorruptError             it is damaged, or no session file at all
    ├── StoreBusyError                another process kept it locked too long
    ├── StoreVersionError             it was made by a newer version
    ├── StoreSettingsError            the session was made with other settings
    └── SessionNotFoundError          it holds no such session
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


class BatchError(GatekeeperError, ValueError):
    """A file of conversations cannot be answered; the message names the file and what was expected."""


class ChatFileError(GatekeeperError, ValueError):
    """A chat file cannot be read; the message names the file, the line and what was expected."""


class StoreError(GatekeeperError):
    """A session file cannot be used. path: the file; problem: what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class StoreCorruptError(StoreError):
    """A session file is damaged, or is none; `gatekeeper session recover` saves what can be saved."""


class StoreBusyError(StoreError):
    """Another process kept a session file locked too long. Nothing was changed; the call can be made again."""


class StoreVersionError(StoreError):
    """A session file was made by a newer version of this library."""


class StoreSettingsError(StoreError):
    """A session was made with other settings that decide how its turns are indexed."""


class SessionNotFoundError(StoreError):
    """A session file holds no such session, or it was forgotten since it was opened."""


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
