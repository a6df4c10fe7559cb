"""Texts of every script and of every trap, and conversations made of them."""

from __future__ import annotations

from hypothesis import strategies as st

from gatekeeper import lexicon

QUOTES = "\"'`“”‘’「」『』《》＂＇｀"
MARKERS = "。！？；!?.,;:()[]（）】）\n\r\t \u3000\u00a0\u2028-_#+~/\\<>&=*|"
SCRIPTS = (
    "abcdeghinostuvwxyz", "ABCGINRUVZ", "0123456789", "éÉßñİıſKσςΣ", "дДжЖёЯя", "缓存删除策略数据库查询事务机",
    "緩資庫務機麼於",
    "のをカタカナひらがなーゝ", "가나다한국어각", "ไทยก็มีวรรณยุกต์", "العَرَبِيَّة", "हिन्दीकि\u094d\u093f",
    "\u0301\u0308\u20dd\u3099",
    "ＡＢｚ０９．－＿！＃＋，ａ", "ｶﾀｶﾅﾞ", "\U0001f469\u200d\U0001f4bb\ufe0f\u200b\u2060\ufeff", "\ud800\udfff\udc00",
    "\x00\x01\x1c\x7f\x85",
    "𝐀𝐛𝟘𐐀𐐨𠀀𪜶\U0003fffd", "²½Ⅳⅳ〇〡々㊀ªº",
)  # fmt: skip
SNIPPETS = (
    "```", "~~~", "````", "``", "`x`", "```py\nprint(1)\n```\n", "https://a.b/c?d=e!f.", "http://x.y/z). ", "v1.2.3",
    "3.11",
    "1.2.3-rc1", "v2", "1. ", "  2. ", "10.2", "e.g. ", "token_budget", "getUserName", "HTTPServer2X",
    "asyncio.gather", "happens-before",
    "__init__", "a.b-c_D", "C++", "c#", "F#x", "g++", ".NET", ".net", "．ＮＥＴ", "x.net", "don't", "O'Brien", "R",
    "I", "R's", "’s", "the ", "what ",
    "redis", "Redis惰性删除", "\n\n", "\r\n", "\n    ", ". ", "...", "?!", "。」", "!\")", "\"a b\"", "「惰性删」",
    "“lazy  free”", "'x y'", "``a``",
)  # fmt: skip
ENTRIES = (
    *lexicon.chinese_function_characters(), *lexicon.protected_words(), *lexicon.empty_words(),
    *lexicon.question_words(),
    *lexicon.english_words()[::9], *lexicon.traditional_pairs()[0][::40],
)  # fmt: skip

characters = st.one_of(*(st.sampled_from(script) for script in SCRIPTS), st.sampled_from(QUOTES + MARKERS))
words = st.sampled_from(SCRIPTS).flatmap(lambda script: st.text(st.sampled_from(script), min_size=1, max_size=6))
pieces = st.one_of(
    characters, words, words, st.sampled_from(SNIPPETS), st.sampled_from(ENTRIES), st.sampled_from(QUOTES),
    st.sampled_from(MARKERS), st.characters(),
)  # fmt: skip
texts = st.lists(pieces, max_size=30).map("".join)
cjk_texts = st.lists(
    st.one_of(st.sampled_from(ENTRIES), st.sampled_from("缓存删除策略緩機の한"), st.sampled_from(QUOTES)), max_size=20
).map("".join)
identifiers = st.lists(
    st.sampled_from(("a", "B", "xy", "HTTP", "Get", "1", "v", "_", ".", "-", "é", "\u0301", "#", "+", "'", "１", "Ж",
    " ")), max_size=14
).map("".join)
LAYOUT = (
    "a", "b.", ". ", "。", "!", "?", "；", "\n", "\n\n", " ", "\t", "\r", "    ", "`", "``", "```", "~~~", "~~~~",
    "://", "h://x",
    "1", "1. ", ")", "」", "\"", "'", "<", "]", ",", "字", "```py\n", "\n```\n",
)  # fmt: skip
layouts = st.lists(st.sampled_from(LAYOUT), max_size=24).map("".join)

# A small world, in which turns and queries share anchors.
WORLD = (
    "redis", "cache", "caches", "ttl", "git", "rebase", "rebasing",
    "token_budget", "getUserName", "v1.2.3", "1.2.3", "asyncio.gather",
    "惰性删除", "过期策略",
    "事务隔离级别", "缓存", "删", "数据库的索引", "可用性", "「惰性」", "“lazy free”", "lazy free", "'two words'",
    "two  words", "two", "words",
    "R", "C++", "のキャッシュ", "한국어", "the", "什么是", "怎么", "？", "…", "《删除》",
)  # fmt: skip
JOINTS = (" ", " ", "", "。", ". ", "\n", "! ", "，")
sides = st.lists(st.tuples(st.sampled_from(WORLD), st.sampled_from(JOINTS)), max_size=9).map(
    lambda parts: "".join(word + joint for word, joint in parts)
)
HEADS = ("", "", "", "", "这个", "继续", "it ", "what about ", " then what ", "그럼 ")
queries = st.tuples(st.sampled_from(HEADS), sides).map("".join)
turns = st.lists(st.tuples(sides, sides), max_size=8)
