"""Single files: whole or not at all, never outside their folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gatekeeper.errors import LibraryError
from gatekeeper.spec import files
from gatekeeper.spec.files import (
    is_inside,
    is_template_id,
    make_folder,
    read_text,
    remove_stale_temporaries,
    write_text,
)


@pytest.mark.parametrize("id", ["tpl-0123456789", "tpl-abcdefgh", "tpl-0123456789abcdef"])
def test_valid_ids(id: str) -> None:
    assert is_template_id(id)


@pytest.mark.parametrize("id", [
    "", "tpl-", "tpl-1234567", "tpl-0123456789abcdefg", "tpl-01234567/9", "../tpl-0123456789", "tpl-0123456789/..",
    "TPL-0123456789", "tpl-0123456789\n", "tpl-0123456789\0", "tpl-ABCDEFGHIJ", "tpl-０１２３４５６７８９",
    "tpl-01234 6789", "tpl-.123456789",
])  # fmt: skip
def test_other_ids_name_no_file(id: str) -> None:
    assert not is_template_id(id)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    path = str(tmp_path / "a.md")
    for text in ("", "甲\r\n乙\n", "😀" * 1000):
        write_text(path, text)
        assert read_text(path)[0] == text
        assert read_text(path)[1] == files.signature_of(os.stat(path))
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_signature_is_trusted_once_the_file_has_settled(tmp_path: Path) -> None:
    path = str(tmp_path / "a.md")
    write_text(path, "x")
    assert not read_text(path)[2]
    then = time.time_ns() - 2 * files.SETTLED_NS
    os.utime(path, ns=(then, then))
    assert read_text(path)[2]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = str(tmp_path / "a.md")
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    (tmp_path / "b.md").mkdir()
    with pytest.raises(OSError, match=r"b\.md"):
        write_text(str(tmp_path / "b.md"), "x")
    assert read_text(path)[0] == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.md", "b.md"]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gbk.md").write_bytes("订单".encode("gbk"))
    (tmp_path / "large.md").write_bytes(b"x" * (files.MAX_FILE_BYTES + 1))
    os.mkfifo(tmp_path / "pipe.md")
    for name, reason in {"gbk.md": "not UTF-8", "large.md": "larger than", "pipe.md": "not a regular file"}.items():
        with pytest.raises(ValueError, match=reason):
            read_text(str(tmp_path / name))
    with pytest.raises((OSError, ValueError)):
        read_text(str(tmp_path))


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "outside.md")
    with pytest.raises(OSError, match=r"link\.md"):
        read_text(str(link))
    write_text(str(link), "new")  # replaces the link itself
    assert (tmp_path / "outside.md").read_text() == "secret"
    assert not link.is_symlink()


def test_a_folder_that_leads_out_is_refused_and_not_made(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "projects").symlink_to(outside)
    for parts in (("projects", "a"), ("..", "outside", "b"), ("projects",)):
        with pytest.raises(LibraryError, match="leads out of"):
            make_folder(str(root), *parts)
    assert os.listdir(outside) == []
    (tmp_path / "alias").symlink_to(root)  # the root itself may be a link
    assert is_inside(str(tmp_path / "alias"), make_folder(str(tmp_path / "alias"), "global", "templates"))
    assert not is_inside(str(root), str(tmp_path / "root2"))


def test_only_old_temporaries_are_removed(tmp_path: Path) -> None:
    for name in (".a.md.0123.tmp", ".b.md.0123.tmp", "c.tmp", ".d.md"):
        (tmp_path / name).write_text("x")
    then = time.time() - 2 * files.STALE_TEMPORARY_SECONDS
    for name in (".a.md.0123.tmp", "c.tmp", ".d.md"):
        os.utime(tmp_path / name, (then, then))
    remove_stale_temporaries(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [".b.md.0123.tmp", ".d.md", "c.tmp"]
