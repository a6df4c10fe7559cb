"""What a requirement gives by itself: component, field, default value, file."""

from __future__ import annotations

import re
from functools import lru_cache

from gatekeeper.spec.decision import Inferred
from gatekeeper.spec.request import Request, Token

# the first that matches wins; Latin words stand alone, so no identifier is cut
# compiled at first use
_COMPONENTS = (
    ("switch", r"开关|(?<![\w-])(?:switch|toggle)(?![\w-])"),
    ("select", r"下拉|选择框|(?<![\w-])(?:select|dropdown|options?)(?![\w-])"),
    ("radio", r"单选|(?<![\w-])radio(?![\w-])"),
    ("checkbox", r"多选|复选|勾选|(?<![\w-])check-?box(?:es)?(?![\w-])"),
    ("date", r"日期|时间选择|(?<![\w-])(?:date|date-?picker|date picker|datetime)(?![\w-])"),
    ("number", r"数字|数值|计数器|(?<![\w-])(?:number input|input-number|numeric)(?![\w-])"),
    ("textarea", r"多行文本|文本域|(?<![\w-])text-?area(?![\w-])"),
    ("input", r"输入框|文本框|(?<![\w-])(?:input|text ?box)(?![\w-])"),
)  # fmt: skip
_COMPONENT_HINT = re.compile(
    r"开关|下拉|选择|[单多复勾]选|日期|数[字值]|计数器|文本|输入框|switch|toggle|select|drop|option|radio|check|date|num|text|input",
    re.IGNORECASE,
)
_CONNECTOR = r"(?:改成|改为|换成|换为|变成|调成|调整为|设为|设成|设置为|为|是|取|等于|:|=)"
_VALUE = r"(?:[「『“‘\"'](?P<quoted>[^」』”’\"'\n]{1,24})[」』”’\"']|(?P<plain>[^\s,;。!?、「『“‘\"'()]{1,20}))"
_DEFAULTS = (
    rf"(?:默认|缺省|初始)值?\s?{_CONNECTOR}{{1,2}}\s?{_VALUE}",
    rf"(?:默认|初始)值\s{_VALUE}",
    r"默认(?:值)?\s?(?:(?P<quoted>[A-Za-z0-9_.%-]{1,20}))(?P<plain>)",
    rf"(?<![\u4e00-\u9fff])值{_CONNECTOR}\s?{_VALUE}",
    rf"(?:提交值|传入值|接口值)\s?{_CONNECTOR}?\s?{_VALUE}",
    rf"(?i:\bdefault(?:s|ing|ed)?(?: value)?(?: to| of| is| as|:| =)) ?{_VALUE}",
)
# a clause of nothing else: 性别单选，默认保密; its value stands in no quotes
_BARE_DEFAULT = (
    r"(?:^|[,;。\s])(?:默认|缺省)(?P<quoted>(?!))?(?P<plain>(?![按展显隐排由在从会])[\u4e00-\u9fff]{1,6})(?=$|[,;。!\s])"
)
_NO_VALUE = (*"改调换和与的没不也要怎需吗修更还或", "什么", "多少")
_TRAILING = r"(?:即可|就行|就好|好了|吧|了|呢|啊)+$"
_NO_FIELD = frozenset(
    {
        "vue",
        "react",
        "java",
        "api",
        "css",
        "html",
        "sql",
        "json",
        "url",
        "http",
        "tab",
        "ui",
        "the",
        "js",
        "ts",
        "python",
        "spring",
        "redis",
        "mysql",
    }
)


def infer(request: Request) -> Inferred:
    """Everything that the text gives. Identifiers are looked for without paths and file names."""
    return Inferred(_component(request.text), _field(request), _default(request), request.file)


def _component(text: str) -> str | None:
    if not _COMPONENT_HINT.search(text):
        return None
    return next((name for name, pattern in _component_patterns() if pattern.search(text)), None)


@lru_cache(maxsize=1)
def _component_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern, re.ASCII | re.IGNORECASE)) for name, pattern in _COMPONENTS)


def _field(request: Request) -> str | None:
    """An ASCII identifier next to a field noun, on either side."""
    if not request.has("crud-noun"):
        return None
    tokens = request.tokens
    for i, noun in enumerate(tokens):
        if "crud-noun" not in noun.tags:
            continue
        before = tokens[i - 1] if i else None
        if (
            before
            and _is_identifier(before, request)
            and not _is_compound(request, i - 1)
            and _is_next(request, before, noun)
        ):
            return before.word
        j, last = i + 1, min(len(tokens), i + _MAX_NAMING)
        while j < last and _names(tokens[j], request) and _is_next(request, tokens[j - 1], tokens[j]):
            j += 1
        if j < len(tokens) and _is_identifier(tokens[j], request) and _is_next(request, tokens[j - 1], tokens[j]):
            return tokens[j].word
    return None


_MAX_NAMING = 4  # words of naming in a row: 字段 名 为
_NAMING = frozenset({"behaviour", "crud-noun"})


def _names(token: Token, request: Request) -> bool:
    """Whether a name may follow: 字段名为, a field called."""
    return bool(token.tags & _NAMING) and (
        not request.is_english or token.word.lower() in ("called", "named", "labeled")
    )


def _is_compound(request: Request, i: int) -> bool:
    """Whether an English word is the last of several: no identifier in "phone number field"."""
    return (
        request.is_english
        and i > 0
        and _is_identifier(request.tokens[i - 1], request)
        and _is_next(request, request.tokens[i - 1], request.tokens[i])
    )


def _is_next(request: Request, left: Token, right: Token) -> bool:
    """Whether nothing but blanks, quotes and marks of naming stand between two words."""
    return left.clause == right.clause and not request.text[left.end : right.start].strip(" :=`(名为的\"'「」")


def _is_identifier(token: Token, request: Request) -> bool:
    """A Latin word that can be a name: in English text no function word, adjective or verb of the lists."""
    if "latin" not in token.tags or len(token.word) < 2 or token.word.lower() in _NO_FIELD:
        return False
    return not token.tags & (_NO_NAME if request.is_english else _COMPONENT)


_COMPONENT = frozenset({"component", "crud-noun", "fast"})
_NO_NAME = _COMPONENT | {
    "quantity",
    "adjective",
    "add",
    "remove",
    "change",
    "place",
    "page",
    "negation",
    "purpose",
    "behaviour",
    "to",
    "courtesy",
    "connective",
    "broad",
}


def _default(request: Request) -> str | None:
    text = request.text
    if "值" not in text and "默认" not in text and "default" not in text.lower() and "初始" not in text:
        return None
    patterns = (*_DEFAULTS, _BARE_DEFAULT) if request.has("crud-noun") else _DEFAULTS
    for pattern in patterns:
        for match in re.finditer(pattern, text):
            group = "quoted" if match["quoted"] is not None else "plain"
            value = match[group]
            if group == "plain" and (not value or value.startswith(_NO_VALUE)):
                continue
            value = re.sub(_TRAILING, "", value)
            if value:
                return request.written[match.start(group) : match.start(group) + len(value)]
    return None
