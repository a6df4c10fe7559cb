"""The template library on disk: what is read, what is written, what stays out."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from libraries import WORKSPACE, fill, names, settle, template, write

from gatekeeper.errors import LibraryError
from gatekeeper.spec.library import Library, template_id
from gatekeeper.spec.markdown import read_template, render_template
from gatekeeper.spec.model import GLOBAL, Template


def library(cwd: Path, **changes: object) -> Library:
    cwd.mkdir(exist_ok=True)
    return Library(cwd, settings=WORKSPACE.replace(**changes))


def root_of(cwd: Path) -> Path:
    return cwd / ".gatekeeper" / "spec"


# --- reading


def test_reading_makes_nothing(tmp_path: Path) -> None:
    one = library(tmp_path / "shop")
    assert one.load().templates == ()
    one.count_uses(["projects/x/tpl-0123456789"], "2025-01-01")
    assert os.listdir(tmp_path / "shop") == []


def test_what_is_written_is_read_by_every_instance(tmp_path: Path) -> None:
    one, two = library(tmp_path), library(tmp_path)
    assert names(two) == []
    write(one, "订单导出")
    write(one, "登录报错", scope=GLOBAL)
    assert names(one) == names(two) == ["登录报错", "订单导出"]
    assert {entry.template.scope for entry in two.load().entries if entry.template} == {"project", "global"}


def test_the_snapshot_stays_while_nothing_changes(tmp_path: Path) -> None:
    one = library(tmp_path)
    write(one, "订单导出")
    settle(tmp_path)
    first = one.load()
    assert one.load() is first
    write(one, "登录报错")
    assert one.load().version > first.version


def test_an_edit_in_place_is_seen(tmp_path: Path) -> None:
    one, two = library(tmp_path), library(tmp_path)
    path = write(one, "订单导出", trigger="甲甲")
    for settled in (True, False):
        if settled:
            settle(tmp_path)
        assert one.load().templates[0].trigger == two.load().templates[0].trigger
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("甲甲", "乙乙") if settled else text.replace("乙乙", "丙丙"), encoding="utf-8")
        assert one.load().templates[0].trigger == ("乙乙" if settled else "丙丙")
        assert two.load().templates[0].trigger == ("乙乙" if settled else "丙丙")


def test_an_edit_of_the_same_size_at_once_is_seen(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出", trigger="v00")
    for number in range(1, 50):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f"v{number - 1:02}", f"v{number:02}"), encoding="utf-8")
        assert one.load().templates[0].trigger == f"v{number:02}"
        assert library(tmp_path).load().templates[0].trigger == f"v{number:02}"


def test_removed_renamed_and_added_files_are_seen(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出")
    settle(tmp_path)
    assert names(one) == ["订单导出"]
    path.unlink()
    assert names(one) == []
    made = template("登录报错")
    (path.parent / f"{made.id}.md").write_text(render_template(made), encoding="utf-8")
    assert names(one) == ["登录报错"]
    settle(tmp_path)
    assert names(one) == ["登录报错"]
    os.rename(path.parent, path.parent.parent / "elsewhere")
    assert names(one) == []


def test_the_compiled_cache_gives_what_the_files_say(tmp_path: Path) -> None:
    fill(root_of(tmp_path), library(tmp_path).project.id, 30)
    settle(tmp_path)
    first = library(tmp_path)
    read = first.load()
    with sqlite3.connect(root_of(tmp_path) / ".state" / "state.db") as connection:
        assert connection.execute("SELECT count(*) FROM compiled").fetchone() == (30,)
    assert library(tmp_path).load().entries == read.entries
    next((root_of(tmp_path) / "projects").rglob("*.md")).unlink()
    assert len(library(tmp_path).load().entries) == 29
    path = next((root_of(tmp_path) / "projects").rglob("*.md"))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("补测试", "另一步"), encoding="utf-8")
    changed = {entry.template.id: entry.template for entry in library(tmp_path).load().entries if entry.template}
    assert "另一步" in changed[path.stem].approach


def test_a_foreign_cache_entry_is_not_used(tmp_path: Path) -> None:
    write(library(tmp_path), "订单导出")
    settle(tmp_path)
    library(tmp_path).load()
    database = root_of(tmp_path) / ".state" / "state.db"
    for entry in ("", "[]", "{", "[[], 1, 2, 3, 4, 5, 6, 7]", "null", '[[],[],[],[[],[],[]],0,0,"",false]'):
        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE compiled SET entry = ?", (entry,))
        assert names(library(tmp_path)) == ["订单导出"]


def test_an_older_fingerprint_is_made_anew_on_reading_and_the_file_stays(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出")
    old = path.read_text(encoding="utf-8").replace("fp_version: 2", "fp_version: 0")
    path.write_text(old, encoding="utf-8")
    (entry,) = one.load().entries
    assert entry.is_stale
    assert entry.template is not None
    assert entry.template.fingerprint == template("订单导出").fingerprint
    assert path.read_text(encoding="utf-8") == old


# --- what is broken


def test_one_broken_file_blocks_nothing_and_is_named(tmp_path: Path) -> None:
    one = library(tmp_path)
    folder = write(one, "订单导出").parent
    broken = {"tpl-aaaaaaaa.md": b"", "tpl-bbbbbbbb.md": b"\xff\xfe", "tpl-cccccccc.md": b"---\nname: [\n",
              "tpl-dddddddd.md": b"x" * 2_000_000}  # fmt: skip
    for name, data in broken.items():
        (folder / name).write_bytes(data)
    (folder / "README.md").write_text("mine")
    (folder / "tpl-eeeeeeee.md").mkdir()
    (folder / "tpl-ffffffff.md").symlink_to("/etc/passwd")
    os.mkfifo(folder / "tpl-gggggggg.md")
    profile = folder.parent / "profile.md"
    profile.write_bytes(b"\xff")
    for _ in range(2):
        snapshot = one.load()
        assert [found.name for found in snapshot.templates] == ["订单导出"]
        named = {Path(path).name for path, _ in snapshot.problems}
        assert named == {*(name[:-3] for name in broken), "tpl-eeeeeeee", "tpl-gggggggg", "profile.md"}
    settle(tmp_path)
    one.load()
    assert {Path(path).name for path, _ in library(tmp_path).load().problems} == named


def test_a_broken_state_file_costs_counts_only(tmp_path: Path) -> None:
    write(library(tmp_path), "订单导出")
    for data in (b"this is no database, but it is long enough for a header" * 100, b""):
        library(tmp_path).close()
        for path in (root_of(tmp_path) / ".state").glob("state.db*"):
            path.unlink()
        (root_of(tmp_path) / ".state" / "state.db").write_bytes(data)
        one = library(tmp_path)
        assert names(one) == ["订单导出"]
        one.count_uses([one.load().entries[0].key], "2025-01-01")
        assert bool(one.state.problem) == bool(data)
        assert names(one) == ["订单导出"]


def test_the_same_template_in_two_folders_is_used_once(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出")
    other = root_of(tmp_path) / "projects" / "000000000000" / "templates"
    other.mkdir(parents=True)
    (other / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    snapshot = one.load()
    assert len(snapshot.templates) == 1
    assert any("the same id as" in problem for _, problem in snapshot.problems)


# --- writing


def test_ids_follow_name_and_scope() -> None:
    assert template_id(" Order Export ", "project") == template_id("order export", "project")
    assert template_id("order export", "global") != template_id("order export", "project")
    assert template_id("\ud800", "project").startswith("tpl-")


def test_write_gets_the_old_template_and_keeps_what_the_file_counted(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出")
    made = template("订单导出")
    path.write_text(render_template(made, hits=7, last_used="2024-01-01"), encoding="utf-8")
    seen: list[Template | None] = []

    def change(old: Template | None) -> Template:
        seen.append(old)
        return replace(made, approach=("新的一步",))

    written = one.write("订单导出", "project", change)
    assert written.updated
    assert [found.name for found in seen if found] == ["订单导出"]
    file = read_template(path.read_text(encoding="utf-8"), id=made.id)
    assert (file.hits, file.last_used, file.template.approach) == (7, "2024-01-01", ("新的一步",))


def test_a_broken_file_is_not_written_over(tmp_path: Path) -> None:
    one = library(tmp_path)
    path = write(one, "订单导出")
    for data in (b"\xff", b"mine"):
        path.write_bytes(data)
        with pytest.raises(LibraryError, match="left alone"):
            write(one, "订单导出")
        assert path.read_bytes() == data


def test_a_failing_change_writes_nothing(tmp_path: Path) -> None:
    one = library(tmp_path)

    def change(old: Template | None) -> Template:
        raise LibraryError("no")

    with pytest.raises(LibraryError, match="no"):
        one.write("订单导出", "project", change)
    with pytest.raises(LibraryError, match="is not the id"):
        one.write("订单导出", "project", lambda old: template("登录报错"))
    assert list(tmp_path.rglob("*.md")) == []


def test_a_write_never_leaves_the_root(tmp_path: Path) -> None:
    one, outside = library(tmp_path / "shop"), tmp_path / "outside"
    outside.mkdir()
    root_of(tmp_path / "shop").mkdir(parents=True)
    (root_of(tmp_path / "shop") / "projects").symlink_to(outside)
    with pytest.raises(LibraryError, match="leads out"):
        write(one, "订单导出")
    with pytest.raises(LibraryError, match="leads out"):
        one.add_redlines(["不改接口"], "2025-01-01")
    assert os.listdir(outside) == []
    project = outside / one.project.id / "templates"
    project.mkdir(parents=True)
    made = template("订单导出")
    (project / f"{made.id}.md").write_text(render_template(made), encoding="utf-8")
    (project.parent / "profile.md").write_text("## 禁区\n- 甲\n", encoding="utf-8")
    snapshot = one.load()
    assert snapshot.templates == ()
    assert snapshot.redlines == ()
    assert len(snapshot.problems) == 2


READ_ONLY = """
import os, sys
from pathlib import Path
from filelock import FileLock
from gatekeeper.errors import LibraryError
from gatekeeper.spec.library import Library
from gatekeeper.spec.settings import SpecSettings
if os.geteuid() == 0:  # the superuser writes everywhere
    os.setgid(65534), os.setuid(65534)
one = Library(Path(sys.argv[1]), settings=SpecSettings())
one.count_uses(["projects/x/tpl-0123456789"], "2025-01-01")
print([template.name for template in one.load().templates], bool(one.state.problem))
try:
    one.add_redlines(["x"], "2025-01-01")
except (LibraryError, OSError) as error:
    print("refused", error)
"""


def test_a_read_only_library_is_read() -> None:
    shop = Path(tempfile.mkdtemp())  # below pytest's own folder nobody else may read
    try:
        write(library(shop), "订单导出")
        for path in [shop, *shop.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        run = subprocess.run([sys.executable, "-c", READ_ONLY, str(shop)], capture_output=True, text=True)
        assert run.stderr == ""
        assert run.stdout.splitlines()[0] == "['订单导出'] True"
        assert run.stdout.splitlines()[1].startswith("refused")
    finally:
        for path in [shop, *shop.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(shop)


def test_redlines_go_to_the_profile_of_the_project(tmp_path: Path) -> None:
    one = library(tmp_path)
    assert one.add_redlines(["不改公共请求封装"], "2025-01-01") == ("不改公共请求封装",)
    assert one.add_redlines(["不改公共请求封装", "不新增依赖"], "2025-01-02") == ("不改公共请求封装", "不新增依赖")
    assert library(tmp_path).load().redlines == ("不改公共请求封装", "不新增依赖")
    (path,) = tmp_path.rglob("profile.md")
    assert f'repoName: "{tmp_path.name}"' in path.read_text(encoding="utf-8")


# --- counting


def test_two_instances_lose_no_count(tmp_path: Path) -> None:
    one, two = library(tmp_path), library(tmp_path)
    write(one, "订单导出")
    key = one.load().entries[0].key
    before = next(tmp_path.rglob("tpl-*.md")).stat()
    for _ in range(20):
        one.count_uses([key], "2025-01-02T00:00:00")
        two.count_uses([key], "2025-01-01T00:00:00")
    assert one.state.usage()[key] == two.state.usage()[key] == (40, "2025-01-02T00:00:00")
    after = next(tmp_path.rglob("tpl-*.md")).stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_counting_begins_in_several_processes_at_once(tmp_path: Path) -> None:
    write(library(tmp_path), "订单导出")
    key = library(tmp_path).load().entries[0].key
    for path in (root_of(tmp_path) / ".state").glob("state.db*"):
        path.unlink()
    code = ("import sys\nfrom gatekeeper.spec.library import Library\n"
            "from gatekeeper.spec.settings import SpecSettings\n"
            "one = Library(sys.argv[1], settings=SpecSettings()); input()\n"
            "[one.count_uses([sys.argv[2]], '2025-01-01') for _ in range(20)]")  # fmt: skip
    command = [sys.executable, "-c", code, str(tmp_path), key]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait() for process in started] == [0] * 4
    assert library(tmp_path).state.usage()[key][0] == 80


def test_git_does_not_see_the_state(tmp_path: Path) -> None:
    write(library(tmp_path), "订单导出")
    assert (root_of(tmp_path) / ".state" / ".gitignore").read_text() == "*\n"


# --- where a library lies


def test_the_folder_given_holds(tmp_path: Path) -> None:
    one = library(tmp_path / "shop", storage_home=str(tmp_path / "specs"))
    write(one, "订单导出")
    assert (tmp_path / "specs" / "projects" / one.project.id / "templates").is_dir()
    with pytest.raises(LibraryError, match="absolute"):
        library(tmp_path, storage_home="specs")


def test_the_home_folder_keeps_projects_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))
    one, two = (library(tmp_path / name, storage_root="home") for name in ("shop", "blog"))
    write(one, "订单导出")
    write(one, "登录报错", scope=GLOBAL)
    assert names(one) == ["登录报错", "订单导出"]
    assert names(two) == ["登录报错"]
    assert one.root == str(tmp_path / "home" / "spec")
    monkeypatch.setenv("GATEKEEPER_HOME", "home")
    with pytest.raises(LibraryError, match="GATEKEEPER_HOME"):
        library(tmp_path / "shop", storage_root="home")


def test_an_older_project_folder_is_read_and_written_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))
    one = library(tmp_path / "shop", storage_root="home")
    fill(tmp_path / "home" / "spec", one.project.ids[-1], 2)
    assert len(names(one)) == 2
    write(one, "订单导出")
    assert os.listdir(tmp_path / "home" / "spec" / "projects") == [one.project.ids[-1]]


def test_the_users_own_folder_is_no_project_that_owns_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / ".gatekeeper"))
    write(library(tmp_path / "shop", storage_root="home"), "订单导出")
    assert names(library(tmp_path)) == []
    assert library(tmp_path).root == str(tmp_path / ".gatekeeper" / "spec")


def test_a_moved_checkout_keeps_its_library(tmp_path: Path) -> None:
    write(library(tmp_path / "shop"), "订单导出")
    (tmp_path / "shop").rename(tmp_path / "moved")
    moved = library(tmp_path / "moved")
    assert names(moved) == ["订单导出"]
    assert write(moved, "登录报错").parent.parent.name != moved.project.id
    assert names(moved) == ["登录报错", "订单导出"]


def test_settings_are_read_and_the_workspace_may_not_name_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "spec").mkdir(parents=True)
    (tmp_path / "home" / "spec" / "settings.json").write_text('{"max_inject_templates": 3, "match_threshold": 0.2}')
    shop = tmp_path / "shop"
    root_of(shop).mkdir(parents=True)
    (root_of(shop) / "settings.json").write_text(
        '{"matchThreshold": 0.3, "storage_home": "/tmp/elsewhere", "nothing": 1, "pre_step_routing": "no"}')
    one = Library(shop)
    assert (one.settings.max_inject_templates, one.settings.match_threshold) == (3, 0.3)
    assert one.settings.pre_step_routing
    assert one.root == str(root_of(shop))
    assert len(one.config.warnings) == 3
    for text in ("{", "[]", "[" * 100_000):
        (root_of(shop) / "settings.json").write_text(text)
        assert Library(shop).settings.match_threshold == 0.2
        assert "is not used" in Library(shop).config.warnings[0]
