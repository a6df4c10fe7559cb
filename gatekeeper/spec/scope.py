"""How far a requirement reaches: architecture, refactoring, migration, tables, many modules; what blocks one step."""

from __future__ import annotations

import re

from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.request import TABLE_TAIL, Request, Token

_VERSION = r"(?<![\w.])[vV]\d+(?:\.\w+)*|(?<![\w.])\d+\.\w+(?:\.\w+)*|(?<=[A-Za-z] )\d+(?![\w%])"
_TABLE_HEAD = frozenset("列报图代发手仪量外钟水电气秒怀腕课程")
_INNER = r"[A-Za-z0-9_\u4e00-\u9fff ]*"
_UI = frozenset(
    {"button", "column", "route", "dialog", "tab", "page", "card", "component", "operation", "api", "field"}
)


def find_large_scope(request: Request) -> str | None:
    """architecture, refactor, migration, ddl or cross-cutting; None for less."""
    if not request.has(*_SCOPE_TAGS) and "表" not in request.hidden and "table" not in request.hidden.lower():
        return None
    for name, holds in _RULES:
        if holds(request):
            return name
    return None


def has_connective(request: Request) -> bool:
    """Whether the text joins several tasks."""
    return request.has("connective")


def has_broad_word(request: Request) -> bool:
    """Whether the text reaches for everything: 所有, 批量; not 批量删除 as the name of a feature or 全部 as a label."""
    for token in request.with_tag("broad"):
        i = request.tokens.index(token)
        following = request.tokens[i + 1] if i + 1 < len(request.tokens) else None
        before = request.tokens[i - 1] if i else None
        if "feature-follows" in token.tags and following and _is_feature(request, i + 1):
            continue
        if before and before.end == token.start and "become" in before.tags:
            continue  # 改成批量上传: a value
        if _is_label(token, before, following):
            continue
        return True
    return False


def _is_feature(request: Request, i: int) -> bool:
    """改一下批量删除按钮的文案: a purpose and a thing follow, and another verb says what to do."""
    purpose = request.tokens[i]
    thing = request.tokens[i + 1] if i + 1 < len(request.tokens) else None
    if "purpose" not in purpose.tags or purpose.start != request.tokens[i - 1].end or thing is None:
        return False
    is_thing = thing.start == purpose.end and thing.tags & {"button", "route", "column", "dialog", "api", "adjective"}
    return bool(is_thing) and any(token is not purpose and token.tags & _VERBS for token in request.tokens)


_VERBS = frozenset({"add", "remove", "change", "become", "rename-verb", "adjust"})


def _is_label(token: Token, before: Token | None, following: Token | None) -> bool:
    """加个全部选项, an All tab: the word names the new thing."""
    if token.word.lower() not in ("全部", "all") or following is None or following.start > token.end + 1:
        return False
    if following.tags & {"tab"} or following.word in ("选项", "标签", "option"):
        return True
    return bool(
        before
        and before.end >= token.start - 1
        and before.tags & {"quantity", "add"}
        and following.tags & {"button", "route"}
        and before.word not in ("the", "这些", "那些")
    )


def _plain(request: Request, *tags: str) -> list[Token]:
    """The tokens with one of the tags that no negation forbids."""
    return [token for token in request.with_tag(*tags) if not request.is_negated(token)]


def _is_near(request: Request, token: Token, *tags: str, reach: int = 12) -> bool:
    """Whether a word with one of the tags stands in the same clause within reach, on either side."""
    reach = 60 if request.is_english else reach
    return any(
        other.clause == token.clause
        and other is not token
        and (0 <= other.start - token.end <= reach or 0 <= token.start - other.end <= reach)
        for other in request.with_tag(*tags)
    )


# --- the rules, in order


def _is_architecture(request: Request) -> bool:
    if _plain(request, "architecture"):
        return True
    return any(
        _is_near(request, noun, "change", "rebuild", "upgrade", reach=4)
        for noun in _plain(request, "architecture-noun")
    )


def _is_refactor(request: Request) -> bool:
    if _plain(request, "rebuild-whole"):
        return True
    for verb in _plain(request, "rebuild"):
        if _is_near(request, verb, "big") or _names_module(request, verb):
            return True
        if request.is_english and verb.word.lower() != "rewrite" and not _is_near(request, verb, "small"):
            return True
    return any(_is_near(request, verb, "big") and _says_into(request, verb) for verb in _plain(request, "split"))


def _says_into(request: Request, verb: Token) -> bool:
    return any(
        token.word.lower() == "into" and token.clause == verb.clause
        for token in request.tokens
        if token.start > verb.end
    )


_MODULE_NAME = r"[A-Za-z_$]\w*(?:Service|Module|System|Engine|Server|Manager|Gateway|Center)$|^[a-z]+-service$"


def _names_module(request: Request, verb: Token) -> bool:
    """A module by its name: 重构 OrderService."""
    return any(
        "latin" in token.tags
        and token.clause == verb.clause
        and re.search(_MODULE_NAME, token.word)
        and abs(token.start - verb.end) <= 30
        for token in request.tokens
    )


def _is_technology(token: Token) -> bool:
    terms = word_list("terms")
    return bool(terms.tags.get(token.word.lower(), frozenset()) & {"backend", "frontend", "store", "language"})


def _is_migration(request: Request) -> bool:
    if _plain(request, "migrate-whole"):
        return True
    technologies = [token for token in request.tokens if "latin" in token.tags and _is_technology(token)]
    for verb in _plain(request, "migrate", "upgrade"):
        arrow = _arrow_behind(request, verb)
        if arrow is not None and _reaches_system(request, verb, arrow, technologies):
            return True
        if "migrate" in verb.tags and (
            _is_near(request, verb, "system-noun", reach=6)
            or (request.is_english and not _is_near(request, verb, "small"))
        ):
            return True
    return False


def _arrow_behind(request: Request, verb: Token) -> Token | None:
    """The 到 or "to" of 升级到, 迁移 … 到."""
    if "to" in verb.tags:
        return verb
    return next(
        (
            token
            for token in request.with_tag("to", "become")
            if token.clause == verb.clause and 0 <= token.start - verb.end <= 30
        ),
        None,
    )


def _reaches_system(request: Request, verb: Token, arrow: Token, technologies: list[Token]) -> bool:
    """Whether what stands behind the arrow is a technology, a version or a system."""
    _, end = request.clause_of(arrow)
    end = min(end, arrow.end + 40)
    systems = (*technologies, *request.with_tag("system-noun"))
    if any(arrow.end <= token.start < end for token in systems):
        return True
    if request.hidden[arrow.end : end].rstrip(" 里中了吧").endswith(("表", "库")) and "migrate" in verb.tags:
        return True
    named = (*technologies, *request.with_tag("version-word"))
    has_technology = any(token.clause == verb.clause for token in named)
    if "migrate" in verb.tags and _leaves_technology(request, verb, technologies):
        return True
    version = re.search(_VERSION, request.hidden[arrow.end : end])
    number_follows = request.hidden[arrow.end : end].strip()[:1].isdigit()
    return bool(version) or (has_technology and number_follows)


def _leaves_technology(request: Request, verb: Token, technologies: list[Token]) -> bool:
    """从 Java 迁移到 …: away from a technology, wherever to."""
    return any(
        token.clause == verb.clause
        and token.end <= verb.start
        and request.text[max(0, token.start - 2) : token.start].strip() in ("从", "由")
        for token in technologies
    )


def _is_ddl(request: Request) -> bool:
    if _plain(request, "ddl", "ddl-column") or _opens_index(request) or _creates_table(request):
        return True
    if any(_is_near(request, noun, "change", "add", "remove", "ddl-verb") for noun in _plain(request, "ddl-noun")):
        return True
    return any(_opens_table(request, verb) for verb in _plain(request, "ddl-verb"))


_DATABASE = r"(?i)\b(?:database|db|schema|sql|mysql|postgres(?:ql)?|sqlite|oracle)\b"
_CREATES_TABLE = r"(?i)\b(?:create|add|drop|alter)\b[^,.;\n]{0,40}\btables?\b"
_OPENS_INDEX = r"(?:一?个|一?条)?(?:新的?)?(?:唯一|联合|普通|复合|组合|全文)?索引(?!页|栏|条|图|列表|器)"


def _opens_index(request: Request) -> bool:
    """加一个唯一索引: a creating verb and an index directly behind it."""
    text = request.hidden
    return "索引" in text and any(
        re.match(_OPENS_INDEX, text[verb.end : verb.end + 16]) for verb in _plain(request, "ddl-verb")
    )


def _creates_table(request: Request) -> bool:
    """Create a table, in English: of a database, which must be named, or it may be one of a page."""
    text = request.hidden
    return request.is_english and bool(re.search(_CREATES_TABLE, text) and re.search(_DATABASE, text))


def _opens_table(request: Request, verb: Token) -> bool:
    """A creating verb, at most 15 word characters, and 表 as a word of its own."""
    text = request.hidden
    end = min(request.clause_of(verb)[1], verb.end + 16)
    place = text.find("表", verb.end, end)
    while place >= 0:
        if _is_table_word(request, verb, place):
            return True
        place = text.find("表", place + 1, end)
    return False


def _is_table_word(request: Request, verb: Token, place: int) -> bool:
    text = request.hidden
    if not re.fullmatch(_INNER, text[verb.end : place]) or text[place - 1 : place] in _TABLE_HEAD:
        return False
    following = text[place + 1 : place + 2]
    if following in TABLE_TAIL and following:
        return False
    for token in request.tokens:
        if token.start <= place < token.end and token.word not in ("表",):
            return False  # part of a longer word: 代表, 报表
        if verb.end <= token.start < place and token.tags & _UI and "operation" not in token.tags:
            return False  # another thing is added
    is_end = (
        not following
        or not ("\u4e00" <= following <= "\u9fff")
        or any(text.startswith(word, place + 1) for word in word_list("grading").sections["ddl-end"])
    )
    return is_end and not _is_about_ui(request, place)


def _is_about_ui(request: Request, place: int) -> bool:
    """用户表的导出按钮: the table only says of what."""
    if request.hidden[place + 1 : place + 2] not in ("的", "里", "中"):
        return False
    return any(place < token.start <= place + 8 and token.tags & _UI for token in request.tokens)


def _is_cross_cutting(request: Request) -> bool:
    """跨模块, 多个文件; not 上传多个文件."""
    return any(
        not (token.word.endswith(("文件", "files")) and _is_near(request, token, "transfer", reach=6))
        for token in _plain(request, "cross")
    )


_SCOPE_TAGS = (
    "architecture",
    "architecture-noun",
    "rebuild",
    "rebuild-whole",
    "split",
    "migrate",
    "migrate-whole",
    "upgrade",
    "ddl",
    "ddl-column",
    "ddl-noun",
    "cross",
)
_RULES = (
    ("architecture", _is_architecture),
    ("refactor", _is_refactor),
    ("migration", _is_migration),
    ("ddl", _is_ddl),
    ("cross-cutting", _is_cross_cutting),
)
