"""`gatekeeper spec`: the four tools on the command line, and why a template matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from gatekeeper.cli.spec_maintenance import add_maintenance
from gatekeeper.cli.spec_options import TEXT, SpecRun, read_argument, spec_command
from gatekeeper.cli.spec_setup import init
from gatekeeper.cli.spec_setup import text as standing_text
from gatekeeper.cli.spec_views import print_explanations
from gatekeeper.errors import LibraryError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def spec() -> None:
    """Recall spec templates for coding requests, and keep them.

    TEXT is a request as the user wrote it; - is stdin.

    \b
    Exit codes: 0 done; 1 refused, not written, or a check found a problem; 2 wrong usage.

    \b
    Example:
      gatekeeper spec recall "登录页加个忘记密码按钮"
    """


@spec.command()
@TEXT
@spec_command
def recall(run: SpecRun, text: str) -> None:
    """Print what an agent gets for TEXT.

    The next step, the project's redlines and the templates that match.

    \b
    Example:
      gatekeeper spec recall "订单列表加导出"
    """
    answer = run.tools.recall(read_argument(text))
    run.show(answer, answer["context"] + ("\n\n" + answer["notice"] if answer["notice"] else ""))


@spec.command()
@TEXT
@spec_command
def triage(run: SpecRun, text: str) -> None:
    """Print the four-dimension check of TEXT.

    \b
    Example:
      gatekeeper spec triage "把库存模块重构拆分成独立服务"
    """
    answer = run.tools.triage(read_argument(text))
    run.show(answer, answer["report"])


@spec.command()
@TEXT
@click.argument("template", required=False)
@spec_command
def explain(run: SpecRun, text: str, template: str | None) -> None:
    """Print why templates match TEXT or not.

    TEMPLATE is an id or a name; without it every template is listed, the nearest first.

    \b
    Example:
      gatekeeper spec explain "订单列表加导出"
      gatekeeper spec explain "订单列表加导出" tpl-0a1b2c3d4e
    """
    explained = run.tools.explain(read_argument(text), template)
    if run.as_json:
        run.output.json(explained)
    else:
        print_explanations(run.output, explained, in_full=template is not None)


@spec.command()
@TEXT
@click.option("--clarified", multiple=True, help="What was asked and answered.")
@click.option("--file", "files", multiple=True, help="A file in range.")
@click.option("--constraint", "constraints", multiple=True, help="What must not change.")
@click.option("--stack", default="", help="The tech stack.")
@click.option("--acceptance", multiple=True, help="How it is checked.")
@spec_command
def distill(run: SpecRun, text: str, clarified: tuple[str, ...], files: tuple[str, ...], constraints: tuple[str, ...],
            stack: str, acceptance: tuple[str, ...]) -> None:
    """Print one implementation prompt for TEXT.

    Each option may be given several times.

    \b
    Example:
      gatekeeper spec distill "拆分库存服务" --constraint "不改对外接口" --acceptance "npm test 通过"
    """
    answer = run.tools.distill(read_argument(text), clarifications=clarified, files=files, constraints=constraints,
                               stack=stack, acceptance=acceptance)  # fmt: skip
    run.show(answer, answer["prompt"])


@spec.command()
@click.argument("file", type=click.Path())
@click.option("--scope", type=click.Choice(["project", "global"]), help="Where it holds.  [default: what FILE says]")
@spec_command
def retro(run: SpecRun, file: str, scope: str | None) -> int:
    """Write or update one template from FILE.

    FILE is a JSON object with the arguments of the tool spec_retro; - is stdin. Exit code 1 when nothing was written.

    \b
    Example:
      echo '{"name": "订单导出", "tags": ["export"], "approach": ["后端流式生成"]}' | gatekeeper spec retro -
    """
    arguments = _object_of(read_argument("-") if file == "-" else Path(file).read_text(encoding="utf-8-sig"), file)
    answer = run.tools.call("spec_retro", arguments | ({"scope": scope} if scope else {}))
    run.show(answer, answer["message"])
    return 0 if answer["saved"] else 1


def _object_of(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LibraryError(f"{name}: {error}") from None
    if not isinstance(value, dict):
        raise LibraryError(f"{name}: expected a JSON object")
    return value


add_maintenance(spec)
spec.add_command(init)
spec.add_command(standing_text)
