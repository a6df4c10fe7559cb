"""The token cost of every text that recall puts into a context, against its limit."""

from __future__ import annotations

from gatekeeper.spec.bench import Row
from gatekeeper.spec.rendering import render_context, render_triage
from gatekeeper.spec.routing import ROUTES, render_note, resident_text, skill_text
from gatekeeper.spec.schemas import TOOLS
from gatekeeper.spec.tokens import estimate_tokens
from gatekeeper.spec.triaging import decide

# one request of each kind, in both languages
_L1 = ("把首页标题文案改成「库存预警」", "change the title of the home page to Stock")
_DEFAULT = ("处理一下采购单在月底结算时候金额对不上的那个情况", "settle the purchase orders at the end of the month")
_GAP = ("注册页加个按钮", "add a button to the login page")
_L3 = ("把库存模块重构拆分成独立服务", "refactor the order service into separate modules")
_LANGUAGES = ("zh", "en")


def audit() -> list[Row]:
    """Every text with its tokens: CJK and full-width punctuation 1.0, other characters 0.25."""
    rows = [_row(f"resident text, {language}", resident_text(language == "en"), 489) for language in _LANGUAGES]
    rows.append(_row("four tool definitions", tool_definitions(), 2000))
    for language, default, l1, gap, l3 in zip(_LANGUAGES, _DEFAULT, _L1, _GAP, _L3, strict=True):
        rows += [
            _row(f"answer on a miss, {language}", render_context(decide(default), text=default), 60),
            _row(f"answer on an L1 miss, {language}", render_context(decide(l1), text=l1), 150),
            _row(f"answer on a gap without a hit, {language}", render_context(decide(gap), text=gap)),
            _row(f"note of a turn, L1, {language}", render_note(decide(l1)), 136),
            _row(f"note of a turn, gap, {language}", render_note(decide(gap)), 150),
            _row(f"note of a turn, defaults, {language}", render_note(decide(default)), 0),
            _row(f"note of a turn, L3, {language}", render_note(decide(l3)), 0),
            _row(f"triage report, L3, {language}", render_triage(decide(l3), l3).report),
            _row(f"skill, on demand, {language}", skill_text(language == "en")),
        ]
    trips = {"L1": ROUTES["fast"], "L2": ROUTES["defaults"], "gap": ROUTES["gap"], "L3": ROUTES["l3"]}
    asked = {"gap": " + a question"}
    value = "; ".join(f"{name} {route.n_round_trips}{asked.get(name, '')}" for name, route in trips.items())
    wanted = "L1 1; L2 1; gap 1 + a question; L3 4"
    return [*rows, Row("round trips", value, wanted, value == wanted)]


def tool_definitions() -> str:
    """What a model sees of the four tools: name, description and the schema of what goes in."""
    from json import dumps

    seen = [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in TOOLS]
    return dumps(seen, ensure_ascii=False, separators=(",", ":"))


def _row(name: str, text: str, most: int | None = None) -> Row:
    n_tokens = estimate_tokens(text)
    holds = most is None or n_tokens <= most
    return Row(name, f"{n_tokens:.0f} tokens", "" if most is None else f"<= {most} tokens", holds)
