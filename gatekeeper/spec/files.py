"""Reading and writing single files of a library: whole or not at all, and never outside its folder."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from secrets import token_hex

from gatekeeper.errors import LibraryError

Signature = tuple[int, int, int]  # mtime_ns, size, inode

TEMPLATE_FILE = re.compile(r"(tpl-[a-z0-9]{8,16})\.md\Z")
MAX_FILE_BYTES = 1_000_000
SETTLED_NS = 100_000_000  # a younger file may change again without a new time: its signature is not trusted
STALE_TEMPORARY_SECONDS = 3600.0
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) \
    | getattr(os, "O_BINARY", 0)  # fmt: skip
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) \
    | getattr(os, "O_BINARY", 0)  # fmt: skip


def is_template_id(id: str) -> bool:
    """Whether an id may name a file: tpl- and 8 to 16 small letters or digits, so that it cannot leave its folder."""
    return TEMPLATE_FILE.match(id + ".md") is not None


def signature_of(status: os.stat_result) -> Signature:
    """What tells one state of a file from another."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_text(path: str) -> tuple[str, Signature, bool]:
    """A file's text, its signature, and whether it is old enough for the signature to be trusted.

    Raises OSError, or ValueError for what is no regular file, too large or not UTF-8. Never follows a link.
    """
    descriptor = os.open(path, _READ_FLAGS)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise ValueError("not a regular file")
        data = _read_up_to(descriptor, MAX_FILE_BYTES + 1)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
    is_settled = signature_of(before) == signature_of(after) and time.time_ns() - after.st_mtime_ns > SETTLED_NS
    try:
        return data.decode("utf-8"), signature_of(after), is_settled
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None


def _read_up_to(descriptor: int, n_bytes: int) -> bytes:
    """The bytes of a file, at most so many. Without a file object: making one costs as much as reading."""
    data = os.read(descriptor, n_bytes)
    more = data
    while more and len(data) < n_bytes:
        more = os.read(descriptor, n_bytes - len(data))
        data += more
    return data


def write_text(path: str, text: str) -> None:
    """Replace a file as a whole: a temporary one beside it, to the disk, then renamed. Raises OSError."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{token_hex(8)}.tmp")
    try:
        with open(os.open(temporary, _WRITE_FLAGS, 0o644), "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    _sync_folder(folder)


def make_folder(root: str, *parts: str) -> str:
    """The folder below root, made where it is missing. Raises LibraryError when a link leads out of root."""
    folder = os.path.join(root, *parts)
    if not is_inside(root, folder):
        raise LibraryError(f"{folder} leads out of {root}")
    os.makedirs(folder, exist_ok=True)
    return folder


def is_inside(root: str, path: str) -> bool:
    """Whether a path, all links followed, lies below root."""
    real_root, real = os.path.realpath(root), os.path.realpath(path)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)


def remove_stale_temporaries(folder: str) -> None:
    """Remove what a writer that was killed left behind."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(".") and entry.name.endswith(".tmp")):
                continue
            try:
                is_stale = time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE_TEMPORARY_SECONDS
            except OSError:
                continue
            if is_stale:
                _remove(entry.path)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Bring the renaming to the disk, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)
