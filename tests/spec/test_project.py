"""Which project a folder belongs to."""

from __future__ import annotations

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.project import find_project, legacy_id, normal_remote

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


# --- without git


def test_a_folder_without_git_stands_for_itself(tmp_path: Path) -> None:
    project = find_project(str(tmp_path))
    assert project.top == project.home == os.path.realpath(tmp_path)
    assert project.name == tmp_path.name
    (tmp_path / "below").mkdir()
    assert find_project(str(tmp_path / "below")).id != project.id


def test_folders_that_differ_in_case_are_two_projects(tmp_path: Path) -> None:
    assert find_project(str(tmp_path / "a")).id != find_project(str(tmp_path / "A")).id
    assert legacy_id(str(tmp_path / "a")) == legacy_id(str(tmp_path / "A"))


def test_no_folder_is_no_project() -> None:
    assert find_project("").ids == ("no-repo",)


def test_the_older_name_is_an_alias(tmp_path: Path) -> None:
    assert legacy_id("C:\\Work\\Shop\\") == sha256(b"c:/work/shop").hexdigest()[:12]
    assert legacy_id("/") == "no-repo"
    folder = tmp_path / "Shop"
    folder.mkdir()
    assert sha256(str(folder).lower().encode()).hexdigest()[:12] in find_project(str(folder)).ids


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir: nowhere", "gitdir:", "\0\xff"])
def test_a_broken_git_file_is_no_repository(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_bytes(content.encode("latin-1"))
    assert find_project(str(tmp_path)).top == os.path.realpath(tmp_path)


# --- with git


@needs_git
def test_subfolders_are_one_project(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    (top / "src" / "deep").mkdir(parents=True)
    project = find_project(str(top / "src" / "deep"))
    assert project.top == project.home == os.path.realpath(top)
    assert project.id == find_project(str(top)).id
    assert legacy_id(str(top)) in project.ids


@needs_git
def test_a_moved_checkout_with_a_remote_keeps_its_name(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop", "git@Example.com:team/shop.git")
    before = find_project(str(top))
    top.rename(tmp_path / "moved")
    after = find_project(str(tmp_path / "moved"))
    assert after.id == before.id
    assert after.name == "shop"


@needs_git
def test_clones_of_one_remote_are_one_project(tmp_path: Path) -> None:
    one = repository(tmp_path / "one", "https://user:token@example.com/team/shop")
    two = repository(tmp_path / "two", "ssh://git@example.com:22/team/shop.git")
    fork = repository(tmp_path / "fork", "https://example.com/other/shop")
    assert find_project(str(one)).id == find_project(str(two)).id != find_project(str(fork)).id


@needs_git
def test_a_remote_added_later_leaves_the_earlier_name_an_alias(tmp_path: Path) -> None:
    top = repository(tmp_path / "shop")
    before = find_project(str(top))
    git(top, "remote", "add", "upstream", "https://example.com/team/shop")
    after = find_project(str(top))
    assert after.id != before.id
    assert before.id in after.ids
    git(top, "remote", "add", "origin", "https://example.com/me/shop")
    assert find_project(str(top)).id not in (before.id, after.id)


@needs_git
@pytest.mark.parametrize("remote", ["", "https://example.com/team/shop"])
def test_a_linked_worktree_is_the_project_of_its_main_checkout(tmp_path: Path, remote: str) -> None:
    top = repository(tmp_path / "shop", remote)
    git(top, "worktree", "add", str(tmp_path / "feature"))
    main, linked = find_project(str(top)), find_project(str(tmp_path / "feature"))
    assert linked.id == main.id
    assert linked.home == main.home
    assert linked.top == os.path.realpath(tmp_path / "feature")


@needs_git
def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    part, top = repository(tmp_path / "part"), repository(tmp_path / "shop")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", str(part), "lib")
    project = find_project(str(top / "lib"))
    assert project.top == project.home == os.path.realpath(top / "lib")
    assert project.id != find_project(str(top)).id


# --- remotes


@pytest.mark.parametrize("url", [
    "https://example.com/team/shop", "https://example.com/team/shop.git", "https://Example.COM/team/shop/",
    "https://user:password@example.com:8443/team/shop.git", "ssh://git@example.com/team/shop.git",
    "git@example.com:team/shop.git", "example.com:team/shop", "git://example.com/team/shop", '"https://example.com/team/shop"',
])  # fmt: skip
def test_every_way_to_write_a_remote_is_one(url: str) -> None:
    assert normal_remote(url) == "example.com/team/shop"


@pytest.mark.parametrize(("url", "normal"), [
    ("/srv/git/shop.git", "/srv/git/shop"), ("file:///srv/git/shop", "/srv/git/shop"), ("../shop", ""), ("", ""),
    ("shop", ""), ("C:\\git\\shop", ""), ("https://example.com/", ""), ("ext::sh -c x", ""),
])  # fmt: skip
def test_other_remotes(url: str, normal: str) -> None:
    assert normal_remote(url) == normal


@given(st.text(max_size=40))
def test_no_remote_shows_a_password(text: str) -> None:
    assert "secret" not in normal_remote(f"https://me:secret@example.com/{text.replace('secret', '')}")
    normal_remote(text)
