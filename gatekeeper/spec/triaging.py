"""The four dimensions of a requirement, and the one next step."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from gatekeeper.spec.classifying import classify_request
from gatekeeper.spec.content import essence
from gatekeeper.spec.decision import (
    ASKED,
    CHAT,
    COVERED,
    DEFAULTS,
    FAST,
    GAP,
    L3,
    MISSING,
    PARTIAL,
    UNACTIONABLE,
    Classification,
    Decision,
    NextStep,
    Triage,
)
from gatekeeper.spec.families import OTHER_CONTAINERS, find_other_container
from gatekeeper.spec.request import LONGEST, Request, Token
from gatekeeper.spec.routing import ROUTES
from gatekeeper.spec.settings import SHORT_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.spec.lexicon import WordList

PATH_SENSITIVE = ("approach", "context")
_REACH = 12  # characters between a module and the operation in it
_MIN_ENTITY = 2  # characters of a named thing before an operation or a kind of page

_HINTS = {
    "goal": (
        "验收 效果 测试 通过 达到 完成标准 期望 预期",
        "test tests testing mvn npm build passed pass acceptance expected should so_that",
    ),
    "approach": (
        "组件 页面 接口 新增 增加 添加 修改 实现 优化",
        "controller service mapper component page endpoint api use using add change implement fix update",
    ),
    "boundary": (
        "不要 不能 禁止 别动 除了 保留 不影响 兼容 不动 避免 不改 只允许 不碰 别改",
        "only keep except without don't do_not must_not avoid compatible unchanged",
    ),
    "context": ("仓库 项目 模块 小程序", "java vue spring react typescript miniprogram repo repository project module"),
}


_LAYER = r"[a-z0-9](?:Controller|Service|Mapper)(?![a-z])"
_USE = r"(?<![使采信适引占禁启通常作可专费公商民家军药食实利器应运惯])用(?![户途例法量处品于词工餐车料具水电户])"


@lru_cache(maxsize=1)
def _hints() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {
        key: (tuple(chinese.split()), tuple(word.replace("_", " ") for word in english.split()))
        for key, (chinese, english) in _HINTS.items()
    }


def _has_hint(request: Request, key: str) -> bool:
    """A hint of a dimension: Chinese words anywhere, Latin ones as words of their own."""
    chinese, english = _hints()[key]
    if any(word in request.text for word in chinese):
        return True
    words = {token.word.lower() for token in request.tokens if "latin" in token.tags}
    return bool(words) and any(word in words or (" " in word and word in request.text.lower()) for word in english)


def triage(text: str, words: WordList | None = None) -> Triage:
    """The four-dimension check of a raw requirement. Never fails, linear in the text."""
    return decide(text, words).triage


def next_step(text: str, words: WordList | None = None) -> NextStep:
    """The one next step of a raw requirement."""
    return decide(text, words).next_step


def decide(text: str, words: WordList | None = None) -> Decision:
    """Grade, dimensions and next step of a raw requirement: what recall and the per-turn note both stand on."""
    request = Request(text, words)
    classification = classify_request(request)
    checked = triage_request(request, classification)
    return Decision(classification, checked, choose_step(classification, checked))


def triage_request(request: Request, classification: Classification) -> Triage:
    """Check a requirement that has been read and graded."""
    dimensions = {key: _status(request, key) for key in _HINTS}
    is_short = request.length + _path_length(request) < SHORT_LENGTH
    anchors = find_anchors(request, classification)
    n_missing = sum(status == MISSING for status in dimensions.values())
    is_unactionable = is_short and n_missing >= 2 and not anchors
    is_open = any(status != COVERED for status in dimensions.values())
    level, gap = classification.level, classification.gap
    return Triage(
        dimensions, request.length, is_short, anchors, is_unactionable,
        ready=(level == 1 and gap is None) or (not is_open and not is_short and level != 3),
        needs_clarify=level == 3 or gap is not None or classification.wants_asking or (level == 2 and is_unactionable),
        has_path=request.has_path)  # fmt: skip


def choose_step(classification: Classification, checked: Triage) -> NextStep:
    """The first row that holds. See the table in docs/spec.md."""
    reason = _reason(classification, checked)
    return ROUTES[reason].next_step(reason)


def _reason(classification: Classification, checked: Triage) -> str:
    if not classification.is_coding:
        return CHAT
    if classification.level == 3:
        return L3
    if classification.fast_track:
        return FAST
    if classification.gap is not None:
        return GAP
    if checked.unactionable:
        return UNACTIONABLE
    return ASKED if classification.wants_asking else DEFAULTS


def _path_length(request: Request) -> int:
    return sum(len(span.path) for span in request.spans)


def _status(request: Request, key: str) -> str:
    has_hint = _has_hint(request, key)
    if key == "approach" and not has_hint:
        has_hint = (request.has("add", "change", "become") and _acts(request)) or (
            "用" in request.hidden and bool(re.search(_USE, request.hidden))
        )
        has_hint = has_hint or any(
            re.search(_LAYER, name)
            for name in (*(span.path for span in request.spans), *(t.word for t in request.tokens if "latin" in t.tags))
        )
    if key not in PATH_SENSITIVE:
        return COVERED if has_hint else MISSING
    if key == "context" and not has_hint:
        has_hint = any(span.path.lower().endswith((".java", ".vue", ".ts", ".tsx", ".jsx")) for span in request.spans)
    if has_hint and request.has_path:
        return COVERED
    return PARTIAL if has_hint or request.has_path else MISSING


def _acts(request: Request) -> bool:
    """Whether a word that adds or changes stands for itself: 加 and 改, not the 加 of 加载."""
    return any(token.word[0] in "加改" for token in request.with_tag("add", "change", "become"))


# --- anchors


def find_anchors(request: Request, classification: Classification) -> tuple[str, ...]:
    """What a requirement gives to start from: what can be inferred, quoted text, a named field, thing or page."""
    inferred = classification.inferred
    anchors = [
        f"{kind}:{value}"
        for kind, value in (
            ("file", inferred.file),
            ("field", inferred.field),
            ("component", inferred.component),
            ("default", inferred.default),
        )
        if value
    ]
    if request.quotes:
        anchors.append(f"quote:{request.quotes[0]}")
    for find in (_named_field, _named_thing, _named_page, _named_operation, _identifier):
        name = find(request)
        if name:
            anchors.append(name)
    return tuple(anchors)


def _before(request: Request, start: int) -> str:
    """The words directly before a place in its clause, without noise: at most 8 characters."""
    bounds = next((bounds for bounds in request.clause_bounds if bounds[0] <= start <= bounds[1]), (0, 0))
    return essence(request, _phrase_start(request, bounds[0], start), start)


def _phrase_start(request: Request, least: int, start: int) -> int:
    """Where the noun phrase that ends at `start` begins: behind the last verb or noise word before it."""
    edge = max(least, start - 8)
    first, last = bisect_left(request.tokens, (edge - LONGEST,)), bisect_left(request.tokens, (start,))
    for token in request.tokens[first:last]:
        if token.end <= start and token.end > edge and token.tags & _EDGES:
            edge = token.end
        elif token.start < edge < token.end:
            edge = token.start
    return edge


_EDGES = frozenset(
    {
        "add",
        "remove",
        "change",
        "create",
        "quantity",
        "courtesy",
        "edit",
        "negation",
        "connective",
        "broad",
        "reference",
        "ask",
        "click",
    }
)


def _named_field(request: Request) -> str | None:
    """备注字段, 手机号列: a field by its Chinese name."""
    for noun in request.with_tag("field", "column"):
        name = _before(request, noun.start)
        if len(name) >= _MIN_ENTITY:
            return f"named:{name}{noun.word}"
    return None


def _named_thing(request: Request) -> str | None:
    """A container whose content is given: 确认弹窗."""
    found = find_other_container(request)
    if found and found.has_content and found.family in OTHER_CONTAINERS:
        return f"named:{found.words}"
    for noun in request.with_tag("button", "route"):
        name = _before(request, noun.start)
        if len(name) >= _MIN_ENTITY:
            return f"named:{name}{noun.word}"
    return None


def _named_page(request: Request) -> str | None:
    """订单列表页面: an entity and a kind of page."""
    for kind in request.with_tag("page-kind"):
        name = _before(request, kind.start)
        if len(name) >= _MIN_ENTITY:
            return f"page:{name}{kind.word}"
    return None


def _named_operation(request: Request) -> str | None:
    """订单导出: an entity and an operation."""
    for operation in request.with_tag("operation"):
        name = _before(request, operation.start) or _module_before(request, operation)
        if len(name) >= _MIN_ENTITY:
            return f"operation:{name}{operation.word}"
        start, _ = request.clause_of(operation)
        subject = next(
            (
                token
                for token in request.with_tag("add")
                if token.end <= operation.start and token.clause == operation.clause
            ),
            None,
        )
        if subject and len(essence(request, start, subject.start)) >= _MIN_ENTITY:
            return f"operation:{essence(request, start, subject.start)}{operation.word}"
    return None


def _module_before(request: Request, operation: Token) -> str:
    """库存模块支持盘点: a page or module with a name of its own, earlier in the clause."""
    for kind in reversed(request.tokens[: bisect_left(request.tokens, (operation.start,))]):
        if kind.clause != operation.clause or operation.start - kind.end > _REACH:
            break
        if kind.tags & {"page", "page-kind", "big"}:
            name = _before(request, kind.start)
            if len(name) >= _MIN_ENTITY:
                return name + kind.word
    return ""


def _identifier(request: Request) -> str | None:
    """A name of the code: camelCase, snake_case, or in back-ticks."""
    for token in request.tokens:
        if token.tags == {"latin"} and (re.search(r"[a-z][A-Z]|\w_\w", token.word)):
            return f"identifier:{token.word}"
    return None
