"""What must work after an install, away from the checkout: import, choose, prompt, scipy, command."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import gatekeeper
from gatekeeper import ContextGatekeeper

TURNS = (
    ("Redis 的惰性删除和定期删除有什么区别？", "惰性删除是被动的：访问时才检查。定期删除是主动的：后台抽样。"),
    ("How do I read EXPLAIN ANALYZE?", "It runs the query. Compare the estimated rows with the actual rows."),
    ("git rebase 和 merge 怎么选？", "rebase 得到线性历史，merge 保留分叉。Never rebase a shared branch."),
)
LEAST_SAVED = 0.977


def check_the_install() -> None:
    folder = Path(gatekeeper.__file__).parent
    assert folder.is_relative_to(sys.prefix), f"imported from {folder}, not from the installed package"
    assert version("context-gatekeeper") == gatekeeper.__version__
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    kernels = {name.removesuffix(".pyi") for name in names if name.endswith(".pyi")}
    assert kernels == {"_core/bm25", "_core/fingerprint", "_core/term_matrix", "_core/vocabulary"}, kernels
    assert {"py.typed", "_core/vocabulary.pxd", "cli/demo_conversation.jsonl", "lexicon/chinese.txt",
            "templates/report.html"} <= names  # fmt: skip
    assert not [name for name in names if name.endswith((".pyx", ".c"))]


def check_the_choice() -> None:
    gate = ContextGatekeeper(token_budget=400)
    assert list(gate.add_turns(TURNS)) == [0, 1, 2]
    for query, turn_id in (("惰性删除是什么", 0), ("EXPLAIN ANALYZE actual rows", 1), ("git rebase 区别", 2)):
        assert [block["turn_id"] for block in gate.select(query)][:1] == [turn_id], query
        prompt = gate.build_prompt(query)
        assert prompt.endswith(f"[query] {query}")
        assert f"[{turn_id} " in prompt
    assert not {"numpy", "scipy"} & set(sys.modules), "choosing loads numpy or scipy"
    explained = gate.explain("惰性删除是什么")
    assert explained["turns"]
    assert explained.to_html().startswith("<!doctype html>")


def check_scipy() -> None:
    from gatekeeper.sparse import score_matrix

    gate = ContextGatekeeper(token_budget=400)
    gate.add_turns(TURNS)
    by_turn, by_term = gate.to_scipy("assistant", "csr"), gate.to_scipy("assistant", "csc")
    assert (by_turn.format, by_term.format) == ("csr", "csc")
    assert by_turn.shape[0] == len(TURNS)
    assert (by_turn.toarray() == by_term.toarray()).all()
    columns = by_turn[[1], :].indices[:3]
    scores = score_matrix(by_turn, columns)
    assert (scores == score_matrix(by_term, columns)).all()
    assert scores.argmax() == 1


def check_the_demo() -> None:
    command = Path(sys.executable).with_name("gatekeeper")
    run = subprocess.run([command, "demo", "--json"], capture_output=True, encoding="utf-8", check=True)
    figures = json.loads(run.stdout)
    assert figures["foreign_turns"] == 0, figures
    assert figures["git_coverage"] == 1.0, figures
    assert figures["tokens_saved_ratio"] >= LEAST_SAVED, figures
    assert figures["alternation_clean"] == figures["alternation_queries"] == 5, figures
    assert figures["window_recall"] == {"git": 1.0, "redis": 1.0}, figures


check_the_install()
check_the_choice()
check_scipy()
check_the_demo()
versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "click", "rich", "jinja2"))
print(f"smoke passed: Python {sys.version.split()[0]}, {versions}")
