"""Keeping a library in order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from libraries import WORKSPACE, template, write

from gatekeeper.errors import LibraryError
from gatekeeper.spec.library import Library
from gatekeeper.spec.maintenance import REMEDIES, examine, rebuild, rebuild_project_scope
from gatekeeper.spec.markdown import read_template, render_template
from gatekeeper.spec.model import GLOBAL, Fingerprint
from gatekeeper.spec.seeding import read_seeds
from gatekeeper.spec.settings import FP_VERSION
from gatekeeper.spec.tools import SpecTools

ONCE, PROJECT_WIDE, TOPIC = "本次只动 lib/cache.py，不碰 app.py", "不改公共 API 的调用逻辑", "导出文件名固定带日期"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path, settings=WORKSPACE)


def change(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def kinds(library: Library) -> list[tuple[str, str]]:
    return [(finding.kind, Path(finding.path).name) for finding in examine(library)]


# --- doctor


def test_a_library_in_order_has_no_findings(library: Library) -> None:
    assert examine(library) == []
    write(library, "订单导出", tags=("export",), trigger="用户说「导出」", redlines=(TOPIC,))
    write(library, "登录报错", scope=GLOBAL, trigger="用户说「登录不了」", redlines=(PROJECT_WIDE,))
    library.add_redlines([PROJECT_WIDE], "2025-01-01")
    assert examine(library) == []


def test_every_kind_of_fault_is_found_with_a_remedy(library: Library) -> None:
    good = write(library, "订单导出", trigger="用户说「导出」", redlines=(ONCE, PROJECT_WIDE, TOPIC))
    folder = good.parent
    stale = write(library, "登录报错", trigger="用户说「登录不了」")
    change(stale, ("fp_version: 2", "fp_version: 0"))
    broken = write(library, "分页参数", trigger="用户说「分页」")
    change(broken, ('fingerprint: ["', 'fingerprint: ["[object Object]", "'))
    copied = folder / "tpl-copied000.md"
    copied.write_text(good.read_text(encoding="utf-8"), encoding="utf-8")
    silent = write(library, "库存预警")
    common = write(library, "列表按钮", trigger="用户说「列表」")
    (folder / "notes.md").write_text("mine")
    (folder / "tpl-linked000.md").symlink_to(good)
    (folder / "tpl-broken000.md").write_text("---\n")
    (folder / "old").mkdir()
    (folder / "old" / "tpl-nested000.md").write_text("x")
    (folder.parent / "tpl-beside000.md").write_text("x")
    found = kinds(library)
    assert found == sorted(found, key=lambda one: [Path(f.path).name for f in examine(library)].index(one[1]))
    assert set(found) == {
        ("task-scoped redline", good.stem), ("project-level redline", good.stem),
        ("task-scoped redline", copied.stem), ("project-level redline", copied.stem), ("invalid id", copied.stem),
        ("stale fingerprint", stale.stem), ("broken fingerprint", broken.stem), ("stale fingerprint", broken.stem),
        ("no trigger", silent.stem), ("vocabulary only", common.stem), ("invalid id", "notes.md"),
        ("invalid id", "tpl-linked000.md"), ("unreadable", "tpl-broken000"), ("nested layout", "tpl-nested000.md"),
        ("nested layout", "tpl-beside000.md"),
    }  # fmt: skip
    assert all(finding.remedy == REMEDIES[finding.kind] for finding in examine(library))


def test_the_doctor_reads_only(library: Library) -> None:
    write(library, "登录报错", redlines=(ONCE,))
    before = {path: path.read_bytes() for path in Path(library.root).rglob("*.md")}
    examine(library)
    assert {path: path.read_bytes() for path in Path(library.root).rglob("*.md")} == before


def test_settings_and_state_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEKEEPER_HOME", str(tmp_path / "home"))
    one = Library(tmp_path)
    write(one, "登录报错", trigger="用户说「登录」")
    one.load()
    one.close()
    root = tmp_path / ".gatekeeper" / "spec"
    (root / "settings.json").write_text('{"matchThreshold": 0.35}')
    (root / "words").mkdir()
    (root / "words" / "terms.txt").write_text("no section\n")
    for path in (root / ".state").glob("state.db*"):
        path.write_bytes(b"nonsense " * 1000)
    assert kinds(Library(tmp_path)) == [
        ("state", "state.db"), ("settings", "settings.json"), ("unreadable", "terms.txt")]


# --- rebuild


def test_rebuild_writes_what_differs_and_a_dry_run_nothing(library: Library) -> None:
    path = write(library, "订单导出", tags=("export",), trigger="用户说「导出订单」")
    same = write(library, "登录报错", tags=("login",))
    made = replace(template("订单导出", tags=("export",), trigger="用户说「导出订单」"),
                   fingerprint=Fingerprint({"别的": 1.0, "导出": 3.0}), fp_version=0)  # fmt: skip
    path.write_text(render_template(made, hits=7, last_used="2024-01-01", digest="摘要"), encoding="utf-8")
    before, untouched = path.read_bytes(), same.stat().st_mtime_ns
    (planned,) = rebuild(library, dry_run=True)
    assert path.read_bytes() == before
    assert (planned.key.rpartition("/")[2], planned.removed) == (path.stem, ("别的",))
    assert {"export", "订单"} <= set(planned.added)
    assert planned.before < planned.after
    assert rebuild(library) == [planned]
    file = read_template(path.read_text(encoding="utf-8"), id=path.stem)
    assert (file.hits, file.last_used, file.digest, file.template.fp_version) == (7, "2024-01-01", "摘要", FP_VERSION)
    assert file.template.fingerprint.weights == library.fingerprint(file.template).weights
    assert rebuild(library) == []
    assert same.stat().st_mtime_ns == untouched


def test_project_templates_are_made_of_name_and_tags(library: Library) -> None:
    path = write(library, "订单导出", tags=("export",), trigger="用户说「下载报表」")
    everything = write(library, "登录报错", scope=GLOBAL, trigger="用户说「登录不了」")
    change(path, ('fingerprint: ["', 'fingerprint: ["报表|1", "'))
    change(everything, ('fingerprint: ["', 'fingerprint: ["别的|1", "'))
    (only,) = rebuild_project_scope(library)
    assert (only.key.rpartition("/")[2], only.removed, only.hoisted) == (path.stem, ("报表",), ())
    assert "别的|1" in everything.read_text(encoding="utf-8")


def test_hoisting_moves_project_level_redlines(library: Library) -> None:
    first = write(library, "订单导出", redlines=(PROJECT_WIDE, TOPIC))
    second = write(library, "登录报错", redlines=(TOPIC,))
    everywhere = write(library, "分页参数", scope=GLOBAL, redlines=(PROJECT_WIDE,))
    (planned,) = rebuild_project_scope(library, hoist=True, dry_run=True)
    assert planned.hoisted == (PROJECT_WIDE,)
    assert library.load().redlines == ()
    rebuild_project_scope(library, hoist=True)
    assert library.load().redlines == (PROJECT_WIDE,)
    assert read_template(first.read_text(encoding="utf-8")).template.redlines == (TOPIC,)
    assert read_template(second.read_text(encoding="utf-8")).template.redlines == (TOPIC,)
    assert read_template(everywhere.read_text(encoding="utf-8")).template.redlines == (PROJECT_WIDE,)
    assert rebuild_project_scope(library, hoist=True) == []


def test_words_of_the_project_change_fingerprints_on_rebuild(library: Library) -> None:
    write(library, "履约中台接入", trigger="用户说「接入履约中台」")
    words = Path(library.root) / "words"
    words.mkdir()
    assert rebuild(library) == []
    (words / "terms.txt").write_text("[backend]\n履约中台\n", encoding="utf-8")
    (only,) = rebuild(library)
    assert "履约中台" in only.added
    assert rebuild(library) == []


# --- seeds


def test_seeds_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"name": "甲"}\n\n{"name": "乙"}\n', encoding="utf-8")
    (tmp_path / "list.json").write_text('[{"name": "甲"}, {"name": "乙"}]', encoding="utf-8")
    (tmp_path / "one.json").write_text('{"name": "甲"}', encoding="utf-8-sig")
    made = template("订单导出", tags=("export",), trigger="用户说「导出」", redlines=(TOPIC,), approach=("一", "二"))
    (tmp_path / "old.md").write_text(render_template(made), encoding="utf-8")
    seeds = {path.name: read_seeds(path) for path in tmp_path.iterdir()}
    assert [one["name"] for one in seeds["lines.jsonl"]] == [one["name"] for one in seeds["list.json"]] == ["甲", "乙"]
    assert seeds["one.json"] == [{"name": "甲"}]
    (from_markdown,) = seeds["old.md"]
    tools = SpecTools(tmp_path, settings=WORKSPACE)
    assert tools.call("spec_retro", from_markdown)["saved"]
    (read,) = tools.library.load().templates
    assert replace(read, created="", updated="", repo="") == made


@pytest.mark.parametrize(("name", "data", "place"), [
    ("a.jsonl", b'{"name": "x"}\n{', "a.jsonl:2"), ("a.jsonl", b'{"name": "x"}\n[]', "a.jsonl:2"),
    ("a.json", b"[1]", "a.json, item 1"), ("a.json", b"\xff", "not UTF-8"), ("a.md", b"x", "no front matter"),
    ("a.json", b"[" * 100_000, "a.json:1"), ("a.json", b"null", "expected a JSON object"),
])  # fmt: skip
def test_a_broken_seed_names_its_place(tmp_path: Path, name: str, data: bytes, place: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LibraryError, match=place):
        read_seeds(tmp_path / name)
