"""Libraries on disk for the tests."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatekeeper.spec.library import Library, template_id
from gatekeeper.spec.markdown import render_template
from gatekeeper.spec.model import GLOBAL, PROJECT, Fingerprint, Template
from gatekeeper.spec.settings import FP_VERSION, SpecSettings
from gatekeeper.spec.tokenizing import template_fingerprint


def template(name: str, **values: Any) -> Template:
    """A template as a library writes it."""
    scope = values.get("scope", PROJECT)
    made = Template(template_id(name, scope), name, **values)
    fingerprint = template_fingerprint(made, topic_only=made.scope != GLOBAL)
    return replace(made, fingerprint=Fingerprint(fingerprint.weights), fp_version=FP_VERSION)


def write(library: Library, name: str, **values: Any) -> Path:
    """Write a template through the library; its file."""
    made = template(name, **values)
    return Path(library.write(name, made.scope, lambda old: made).path)


def settle(folder: Path) -> None:
    """Make every file and folder old enough for its signature to be trusted."""
    then = time.time_ns() - 10**9
    for path in [folder, *folder.rglob("*")]:
        if ".state" not in path.parts:
            os.utime(path, ns=(then, then), follow_symlinks=False)


def names(library: Library) -> list[str]:
    return sorted(template.name for template in library.load().templates)


def fill(root: Path, project: str, n_templates: int) -> Path:
    """A project with many templates as files; its folder of templates."""
    folder = root / "projects" / project / "templates"
    folder.mkdir(parents=True)
    for number in range(n_templates):
        made = template(
            f"模板 {number} 订单导出 {number % 37}", category="feature/export", tags=("export", f"tag{number}", "订单"),
            trigger=f"用户说「导出第 {number} 种订单」，要求后端分页，失败能重试。",
            clarify=("导出哪些列？", "谁能导出？"),
            approach=("看现有接口", "流式生成 src/order/export.ts", "前端给下载链接", "补测试"),
            redlines=("不改公共请求封装",), prompt="给订单加导出",
            acceptance=("导出 1 万行不超时", "没有权限时看不到按钮"),
            created="2025-01-01", updated="2025-01-01")  # fmt: skip
        (folder / f"{made.id}.md").write_text(render_template(made), encoding="utf-8")
    return folder


WORKSPACE = SpecSettings()
