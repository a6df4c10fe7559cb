"""Which project a folder belongs to: by git, read from its files; git itself is never run."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import NamedTuple

NO_REPO = "no-repo"
_REMOTE_SECTION = re.compile(r'\s*\[\s*remote\s+"(.*)"\s*\]')
_URL = re.compile(r"\s*url\s*=\s*(.*)")
_SCHEME_URL = re.compile(r"(?:ssh|git|https?|git\+ssh)://(?:[^/@]*@)?([^/:]+)(?::\d+)?/(.*)", re.IGNORECASE)
_SCP_URL = re.compile(r"(?:[^/@:]+@)?([^/:@]+):(?!//|:)(.*)")
MAX_CONFIG_BYTES = 1_000_000


class Project(NamedTuple):
    """The project of a folder.

    top: the folder that stands for it: of a git worktree its own top; else the folder itself; "" for none.
    home: where its library lies by default: the top, or of a linked worktree the top of its main checkout.
    ids: 12 hex digits each. The first is its name; the others are what it may have been called before.
    name: for people.
    """

    top: str
    home: str
    ids: tuple[str, ...]
    name: str

    @property
    def id(self) -> str:
        return self.ids[0]


def find_project(cwd: str) -> Project:
    """The project of a folder: named by the remote of its git repository, else by the top of its main checkout.

    Clones of one remote, linked worktrees and subfolders are one project. A folder without git stands for itself.
    """
    if not cwd:
        return Project("", "", (NO_REPO,), "")
    folder = os.path.realpath(cwd)
    top, common = _repository_of(folder)
    if not common:
        return Project(folder, folder, _distinct(_hash("path:" + folder), legacy_id(cwd), legacy_id(folder)),
                       os.path.basename(folder))  # fmt: skip
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else top
    remote = _remote_of(common)
    ids = [_hash("git:" + remote)] if remote else []
    ids += [_hash("path:" + main), legacy_id(cwd), legacy_id(top), legacy_id(main)]
    return Project(top, main, _distinct(*ids), os.path.basename(remote or main))


def legacy_id(cwd: str) -> str:
    """What an older layout calls a folder: its path in lower case, which merges distinct ones."""
    path = cwd.replace("\\", "/").lower().rstrip("/")
    return _hash(path) if path else NO_REPO


def normal_remote(url: str) -> str:
    """One form for every way to write a remote: host/path, without user, password, port or .git; "" for none."""
    url = url.strip().strip('"')
    found = _SCHEME_URL.match(url) or (_SCP_URL.match(url) if "://" not in url and url[1:3] != ":\\" else None)
    if found:
        host, path = found[1].lower(), found[2]
    elif url.startswith(("/", "file://")):
        host, path = "", url.removeprefix("file://")
    else:
        return ""  # a relative path means another place in every checkout
    path = path.rstrip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}" if path else ""


def _repository_of(folder: str) -> tuple[str, str]:
    """The top of the worktree that holds a folder, and the common folder of its git data; "" without git."""
    while True:
        found = _git_folder(os.path.join(folder, ".git"))
        if found:
            return folder, _common_folder(found)
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def _git_folder(path: str) -> str:
    """The git folder a `.git` is or points to; "" when it is none."""
    if os.path.isfile(path):
        target = _first_line(path)
        if not target.startswith("gitdir:"):
            return ""
        path = os.path.normpath(os.path.join(os.path.dirname(path), target[7:].strip()))
    return path if os.path.isfile(os.path.join(path, "HEAD")) else ""


def _common_folder(git_folder: str) -> str:
    """What a linked worktree shares with its main checkout; of any other repository its own git folder."""
    shared = _first_line(os.path.join(git_folder, "commondir"))
    return os.path.realpath(os.path.join(git_folder, shared)) if shared else git_folder


def _remote_of(common: str) -> str:
    """The normal form of the remote `origin`, or of the only one."""
    urls: dict[str, str] = {}
    name = None
    for line in _read(os.path.join(common, "config")).split("\n"):
        if line.lstrip().startswith("["):
            section = _REMOTE_SECTION.match(line)
            name = section[1] if section else None
        elif name is not None and name not in urls:
            value = _URL.match(line)
            if value:
                urls[name] = value[1]
    url = urls.get("origin") or (next(iter(urls.values())) if len(urls) == 1 else "")
    return normal_remote(url)


def _first_line(path: str) -> str:
    return _read(path).partition("\n")[0].strip()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_CONFIG_BYTES)
    except (OSError, ValueError):
        return ""


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _distinct(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))
