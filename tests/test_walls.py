"""The walls of the house: which module imports which, what stays unloaded, what the package names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import gatekeeper
from gatekeeper import errors

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gatekeeper"
# from left to right
STAGES = ("anchor", "topic_gate", "corpus", "sparse", "context", "recall", "pruning", "selector", "prompt")
GROUND = {"block", "settings", "errors", "lexicon", "stems", "_core"}  # what every stage may import
CHAINS = {"__init__", "gatekeeper", "report"}  # what may import any stage, besides cli and integrations
BORROWS = {"constraints": {"prompt"}}  # recalled text and constraints are escaped alike
COMMAND_ONLY = {"__main__", "chat_file", "printable", "report_html"}  # what only the command line and a page load
HEAVY = {"numpy", "scipy", "click", "rich", "jinja2", "markupsafe", "dataclasses", "typing", "re", "json",
         "enum", "sqlite3", "pyarrow"}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))
INNER = ["lexicon/__init__", *sorted(f"messages/{path.stem}" for path in PACKAGE.glob("messages/*.py"))]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def names_of(node: ast.AST) -> list[str]:
    """The full names that an import statement gives: `from a import b` may mean the module a.b, or a alone."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "the package imports by full names"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imports_of(path: Path, *, for_types: bool = True, in_functions: bool = True) -> list[str]:
    """Every name that a file imports; on demand without what is for type checkers or within a function."""
    found: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        found += names_of(node)
        if is_type_checking(node) and not for_types:
            waiting += node.orelse
        elif in_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return found


def siblings_of(module: str, **options: bool) -> set[str]:
    """The modules of the package, by their first name, that a module imports."""
    names = [name.split(".") for name in imports_of(PACKAGE / f"{module}.py", **options)]
    return {parts[1] for parts in names if parts[0] == "gatekeeper" and len(parts) > 1}


def run_python(code: str) -> str:
    """What a new interpreter prints that finds the same package as this one."""
    folder = Path(gatekeeper.__file__).parents[1]
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout


# --- who imports whom


def test_the_reader_finds_every_kind_of_import(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        "import a.b\nfrom c import d\nif TYPE_CHECKING:\n    import e\nelse:\n    import f\n"
        "def g():\n    import h\nclass I:\n    import j\ntry:\n    import k\nexcept ImportError:\n    import l\n"
    )
    assert set(imports_of(source)) == {"a.b", "c.d", "e", "f", "h", "j", "k", "l"}
    assert set(imports_of(source, for_types=False, in_functions=False)) == {"a.b", "c.d", "f", "j", "k", "l"}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_only_what_stands_to_its_left(stage: str) -> None:
    allowed = GROUND | set(STAGES[: STAGES.index(stage)])
    assert siblings_of(stage) <= allowed, f"{stage} reaches over a wall: {sorted(siblings_of(stage) - allowed)}"


@pytest.mark.parametrize("module", [m for m in MODULES if m not in STAGES and m not in CHAINS])
def test_only_the_gatekeeper_chains_stages(module: str) -> None:
    stages = siblings_of(module, for_types=False) & set(STAGES)
    assert stages <= BORROWS.get(module, set()), f"{module} chains stages: {sorted(stages)}"


def test_no_stage_imports_the_gatekeeper() -> None:
    assert all("gatekeeper" not in siblings_of(stage) for stage in STAGES)


@pytest.mark.parametrize("path", sorted((ROOT / "_core").glob("*.p[yx][xd]")), ids=lambda path: path.name)
def test_only_the_vocabulary_sees_str(path: Path) -> None:
    code = re.sub(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*', "", path.read_text(encoding="utf-8"))
    assert path.stem == "vocabulary" or not re.search(r"\b(?:str|unicode|PyUnicode_\w+)\b", code)


@pytest.mark.parametrize("stub", sorted((PACKAGE / "_core").glob("*.pyi")), ids=lambda path: path.name)
def test_only_the_vocabulary_takes_str(stub: Path) -> None:
    names = {node.id for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
    assert ("str" in names) == (stub.stem == "vocabulary")


def test_every_kernel_is_looked_at() -> None:
    kernels = {path.stem for path in (ROOT / "_core").glob("*.pyx")}
    assert kernels == {path.stem for path in (PACKAGE / "_core").glob("*.pyi")}
    assert kernels


# --- what stays unloaded

LOAD_ALL = "import gatekeeper; [getattr(gatekeeper, name) for name in gatekeeper.__all__]"


@pytest.mark.parametrize("module", [m for m in MODULES if m not in COMMAND_ONLY] + INNER)
def test_nothing_heavy_is_imported_at_the_top(module: str) -> None:
    names = imports_of(PACKAGE / f"{module}.py", for_types=False, in_functions=False)
    assert not {name.split(".")[0] for name in names} & HEAVY


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys; before = set(sys.modules); {LOAD_ALL}; print(*sorted(set(sys.modules) - before))"
    loaded = {name.split(".")[0] for name in run_python(code).split()}
    assert "gatekeeper" in loaded
    assert not loaded & HEAVY


def test_import_loads_no_command_and_no_report() -> None:
    loaded = run_python(f"import sys; {LOAD_ALL}; print(*sorted(sys.modules))").split()
    assert not {"gatekeeper.cli", "gatekeeper.chat_file", "gatekeeper.report"} & set(loaded)
    assert {name for name in loaded if name.startswith(("gatekeeper.messages", "gatekeeper.integrations"))} == {
        "gatekeeper.messages"}


def test_the_live_path_loads_neither_numpy_nor_scipy() -> None:
    loaded = run_python(
        "import sys; from gatekeeper import ContextGatekeeper\n"
        "gate = ContextGatekeeper(4000)\n"
        "gate.add_turn('Redis 的过期策略是什么？', '惰性删除加上定期删除。')\n"
        "gate.add_turn('What does EXPLAIN ANALYZE show?', 'It runs the query and shows the real times.')\n"
        "assert gate.select('惰性删除是什么') and 'EXPLAIN' in gate.build_prompt('EXPLAIN ANALYZE')\n"
        "assert gate.build_prompt('[go] on with \"it runs\"')\n"
        "gate.add_messages([{'role': 'user', 'content': 'a lock'}, {'role': 'assistant', 'content': 'ok'}])\n"
        "assert gate.select_messages('a lock') and gate.select_messages([{'role': 'user', 'content': 'a lock'}])\n"
        "print(*sorted(sys.modules))"
    ).split()
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "scipy"}


# --- what the package names


def test_all_is_complete_and_sorted() -> None:
    lazy = [name for names in gatekeeper._NAMES.values() for name in names.split()]
    assert gatekeeper.__all__ == sorted(lazy)
    typed = [name.rpartition(".")[2] for name in imports_of(PACKAGE / "__init__.py", in_functions=False)
             if name not in imports_of(PACKAGE / "__init__.py", for_types=False)]  # fmt: skip
    assert sorted(typed) == gatekeeper.__all__


def test_every_public_name_is_there() -> None:
    for module, names in gatekeeper._NAMES.items():
        assert isinstance(getattr(gatekeeper, module), ModuleType)
        for name in names.split():
            assert getattr(gatekeeper, name) is getattr(getattr(gatekeeper, module), name)
            assert name in dir(gatekeeper)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gatekeeper.nothing


def tree_of(text: str) -> dict[str, tuple[str | None, str | None]]:
    """Each class of a drawn tree with (the class above it, the base in parentheses)."""
    tree: dict[str, tuple[str | None, str | None]] = {}
    above: list[str] = []
    for line in text.splitlines():
        drawn = re.match(r"([ │├└─]*)(\w+Error)\b\s*(?:\((\w+)\))?", line)
        if drawn:
            depth = len(drawn[1]) // 4
            del above[depth:]
            tree[drawn[2]] = (above[-1] if above else None, drawn[3])
            above.append(drawn[2])
    return tree


def test_every_error_stands_in_the_tree() -> None:
    classes = {name: value for name, value in vars(errors).items()
               if isinstance(value, type) and value.__module__ == errors.__name__}
    tree = tree_of(errors.__doc__ or "")
    assert set(tree) == set(classes)
    for name, (parent, base) in tree.items():
        drawn = [parent or "Exception", *([base] if base else [])]
        assert [kind.__name__ for kind in classes[name].__bases__] == drawn


def test_every_error_is_public() -> None:
    assert set(tree_of(errors.__doc__ or "")) <= set(gatekeeper.__all__)
