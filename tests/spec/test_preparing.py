"""Cleaning: what goes, what stays, and in which order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper import ArgumentTypeError
from gatekeeper.spec.preparing import effective_length, prepare, should_skip_matching
from gatekeeper.spec.settings import MAX_PREPARED_LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "把订单列表的导出按钮文案改成下载",
        "改 src/views/order/index.vue 的表头",
        "回退到 a1b2c3d",
        "颜色 #a1b2c3d4",
        "用 `getUser` 取",
        "{{ placeholder }} 换掉",
        "[待确认] 是否展示",
        "第一行\n第二行",
        '返回 {"no":"A"} 空白',
        "at the end of the page",
        "数组 [1, 2, 3, 4, 5, 6, 7, 8] 不对",
    ],
)
def test_plain_text_stays(text: str) -> None:
    found = prepare(text)
    assert (found.text, found.fields) == (text, ())
    assert not any(found.removed.values())


@pytest.mark.parametrize(
    ("text", "stays", "goes", "kind"),
    [
        ("看\n```js\nconst a = 1\n```\n改", "看 改", "const", "code"),
        ("看 ```x = 1``` 改", "看 改", "x =", "code"),
        ("看\n```js\nconst a = 1\n", "看", "const", "code"),
        ("看\n~~~\nlet b\n~~~\n改", "看 改", "let", "code"),
        ("坏了\nTypeError: x\n    at f (/a.js:1:2)\n修", "坏了 TypeError: 修", "a.js", "stack"),
        ("坏了\nCaused by: X\n\tat a.B.c(B.java:1)\n\t... 3 more\n修", "坏了 Caused 修", "more", "stack"),
        (
            "坏了\nTraceback (most recent call last):\n  File \"a.py\", line 1\n    f()\n    ^^^\nKeyError: k\n修",
            "坏了 KeyError 修",
            "line 1 Traceback ^",
            "stack",
        ),
        ("坏了 TypeError: x at f (/a.js:1:2) at g (/b.js:3:4) 修", "坏了 TypeError 修", "a.js b.js", "stack"),
        ("在 node_modules/vue/dist/vue.js:12:3 报错", "在 报错", "node_modules", "path"),
        ("(node:internal/modules/cjs/loader:936:19) 报错", "报错", "internal (", "path"),
        ("/usr/lib/python3/site-packages/x.py 报错", "报错", "site-packages", "path"),
        ("单号 3f2504e0-4f89-11d3-9a0c-0305e82c3301 查", "单号 查", "3f2504e0", "hex"),
        ("摘要 a94a8fe5ccb19ba6 查", "摘要 查", "a94a8", "hex"),
        ("值 {'status': 1, \"no\": 'A'} 改", "值 改 no", "{", "json"),
        ('值 [{"orderNo": 1}, 2] 改', "值 改 orderNo", "[", "json"),
        ("值 {a: {b: [1, {c: 2}]}} 改字段", "值 改字段", "{ }", "json"),
    ],
)
def test_noise_goes(text: str, stays: str, goes: str, kind: str) -> None:
    found = prepare(text)
    assert all(word in found.text for word in stays.split())
    assert not any(word in found.text for word in goes.split())
    assert found.removed[kind] >= 1


@pytest.mark.parametrize(
    "text",
    [
        '未闭合 {"orderNo": "A1", "pay": 1 然后改标题',
        "多出 } 的文字 ] 还在 这里",
        "照这个\n```\n然后把标题改成新的\n再调间距",
    ],
)
def test_what_does_not_pair_up_stays(text: str) -> None:
    assert prepare(text).text == text


def test_a_block_within_an_open_bracket_goes() -> None:
    assert prepare('状态 { 不对 {"orderNo":"A1","payWay":2} 改').text == "状态 { 不对 改 orderNo payWay"


def test_brackets_in_strings_do_not_count() -> None:
    found = prepare('日志 {"note":"a } b, x: y","deviceCode":"{[\\""} 要脱敏')
    assert found.fields == ("note", "deviceCode")
    assert found.text == "日志 要脱敏 note deviceCode"


def test_fields_are_eight_unique_and_not_generic() -> None:
    blob = json.dumps(
        [{"id": 1, "pageSize": 2, "page_num": 3, "TraceId": 4, **{f"column{i}": i for i in range(20)}}] * 2
    )
    assert prepare(f"看 {blob}").fields == tuple(f"column{i}" for i in range(8))


def test_it_cleans_first_and_truncates_last_at_both_ends() -> None:
    blob = json.dumps({f"column{i}": f"value{i}" for i in range(3000)})
    assert prepare(f"先看 {blob} 然后修复夜班工时").text.startswith("先看 然后修复夜班工时")
    long = prepare("开头的任务" + "字" * 5000 + "结尾的任务").text
    assert len(long) <= MAX_PREPARED_LENGTH
    assert long.startswith("开头的任务")
    assert long.endswith("结尾的任务")


PIECES = st.sampled_from(
    [
        "改标题",
        " ",
        "\n",
        "```",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "\\",
        '{"orderNo":"A1","b":2}',
        "    at f (/a.js:1:2)\n",
        "a94a8fe5ccb19ba6",
        "key:",
        ",",
        "(",
        ")",
        "node_modules/x.js",
        '  File "a.py", line 1\n',
        "\r\n",
        "\ud800",
        "\u3000",
        "~~~",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text())
def test_preparing_twice_changes_nothing(text: str) -> None:
    once = prepare(text)
    assert prepare(once.text).text == once.text
    assert len(once.text) <= MAX_PREPARED_LENGTH + 600


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "[",
        '{"a":',
        '"\\',
        '{"',
        "`" * 3 + "\n",
        "    at f (a:1)\n",
        "a94a8fe5ccb1 ",
        "node_modules/",
        "at (",
        "x",
        "{'a':'\\",
    ],
)
def test_a_megabyte_is_prepared(unit: str) -> None:
    assert len(prepare(unit * (1_000_000 // len(unit))).text) <= MAX_PREPARED_LENGTH + 600


def test_ten_thousand_levels_of_json() -> None:
    assert prepare('看 {"deep":' * 1 + '{"k":' * 10_000 + "1" + "}" * 10_001 + " 改").text == "看 改 deep k"


def test_only_text_is_taken() -> None:
    with pytest.raises(ArgumentTypeError, match="raw must be a str"):
        prepare(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "n_effective", "shows_image"),
    [
        ("改一下标题吧", 6, False),
        ("加个按钮", 4, False),
        ("@src/a/b.vue 看", 1, False),
        ("https://a.b/c 看", 1, False),
        ("[Image #1]改", 1, True),
        ("![x](y.png)", 0, True),
        ("看 a.png", 1, True),
        ("见截图", 3, True),
        ("ａＢ１", 3, False),
        ("！？ \n", 0, False),
        ("@张三 看看", 2, False),
    ],
)
def test_effective_length(text: str, n_effective: int, shows_image: bool) -> None:
    assert effective_length(text) == (n_effective, shows_image)


def test_an_image_raises_the_line() -> None:
    assert not should_skip_matching("改一下标题吧")
    assert should_skip_matching("改一下标题吧", True)
    assert should_skip_matching("改一下标题吧 [图片1]")
    assert not should_skip_matching("如图这里的颜色改一下，字也调大一点", True)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("````md\n```js\nx = 1\n```\n````\n改一下", "改一下"),
        ("~~~\n```\na\n~~~\n改", "改"),
        ("```\nx = 1\n```\n改 ```\n按钮改成蓝色", "改 ```\n按钮改成蓝色"),
        ('[背景：返回 {"aa":1,"bb":2,"cc":3} 少了，请修]', "[背景：返回 少了，请修] aa bb cc"),
        ("{...props, orderNo: 1, foo: 2} 少了", "少了 orderNo foo"),
        ('栈里有 File "/srv/a.py", line 3, in run 就断了', "栈里有 就断了"),
    ],
)
def test_what_stands_around_data_and_code_stays(text: str, left: str) -> None:
    assert prepare(text).text == left
