"""Grading: every rule as a kind, its traps, and that more specific words never lower the grade."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.classifying import classify
from gatekeeper.spec.lexicon import word_list
from gatekeeper.spec.triaging import decide

CONTAINERS = (
    "按钮",
    "图标",
    "一列",
    "搜索项",
    "筛选项",
    "路由",
    "菜单项",
    "弹窗",
    "抽屉",
    "卡片",
    "tab",
    "开关",
    "下拉",
    "输入框",
    "字段",
    "接口",
)


def grade(text: str) -> int:
    """0 ask for a gap or for everything, 1 implement with defaults, 2 in one step."""
    decision = decide(text)
    return {"confirm": 0, "implement": 1, "none": 1, "triage": -1}[
        decision.next_step.step
    ] + decision.classification.fast_track


# --- fast-track words


@pytest.mark.parametrize(
    "word", ["直接做", "速做", "不用问", "别问", "不要问", "极速模式", "just do it", "no questions", "don't ask"]
)
@pytest.mark.parametrize("task", ["加个按钮", "把订单模块重构", "add a button"])
def test_a_fast_word_beats_every_gate(word: str, task: str) -> None:
    found = classify(f"{word}，{task}")
    assert (found.level, found.fast_track, found.gap) == (1, True, None)
    assert found.skip_trigger == word


@pytest.mark.parametrize(
    "text",
    [
        "快速做一个页面",
        "高速做",
        "加个问卷，不要问卷标题",
        "这里别问号结尾",
        "级别问题改一下",
        "分别问一下",
        "特别问过产品",
        "不用弹窗，直接做成抽屉",
        "把提示改成「直接做」",
        "用不用问产品",
        "要不要问清楚",
    ],
)
def test_what_only_looks_like_a_fast_word(text: str) -> None:
    assert classify(text).skip_trigger is None


@pytest.mark.parametrize(
    "text", ["别直接做", "先别直接做，等我", "不直接做", "不要直接做", "请勿直接做", "别用极速模式", "don't just do it"]
)
def test_a_negated_fast_word_wishes_to_be_asked(text: str) -> None:
    decision = decide(f"{text}，在 src/a.vue 里把 remark 字段加上")
    assert not decision.classification.fast_track
    assert decision.classification.skip_trigger is None
    assert "skip-trigger-negated" in decision.classification.signals
    assert decision.next_step.step == "confirm"


# --- level 3


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("架构变更", "architecture"),
        ("技术选型", "architecture"),
        ("整体架构要调整", "architecture"),
        ("重构订单服务", "refactor"),
        ("订单服务重构一下", "refactor"),
        ("对整体代码进行重构", "refactor"),
        ("拆分支付模块", "refactor"),
        ("重写整个首页", "refactor"),
        ("重构 OrderService", "refactor"),
        ("rewrite the backend in Go", "refactor"),
        ("split the order service into modules", "refactor"),
        ("从 SQLite 迁移到 MySQL", "migration"),
        ("vue2 升级到 vue3", "migration"),
        ("升级到 Spring Boot 3.2", "migration"),
        ("整体升级", "migration"),
        ("迁移到新服务器", "migration"),
        ("upgrade to React 19", "migration"),
        ("建一张用户表", "ddl"),
        ("新增订单表", "ddl"),
        ("新建用户表结构", "ddl"),
        ("给订单表加列 remark", "ddl"),
        ("修改表结构", "ddl"),
        ("修改用户表结构", "ddl"),
        ("drop table users", "ddl"),
        ("跨模块调整", "cross-cutting"),
        ("多处修改", "cross-cutting"),
        ("across modules rename the id", "cross-cutting"),
    ],
)
def test_large_scope(text: str, family: str) -> None:
    found = classify(text)
    assert (found.level, found.family) == (3, family)


@pytest.mark.parametrize(
    "text",
    [
        "新增法定代表人字段",
        "支持发表评论",
        "新增手表分类",
        "加一个量表",
        "增加代表作品",
        "创建仪表盘",
        "新增里程表读数",
        "建议把代表图换掉",
        "新增报表页面",
        "新建设备列表页面",
        "新增表单",
        "建库存页面",
        "加列宽",
        "表格加列",
        "加列表",
        "给用户表的查询加个导出按钮",
        "新增课程表页面",
        "导航升级到新版提示语",
        "把升级到时间改一下",
        "会员升级到黄金等级的文案",
        "把工具函数迁移到 src/utils",
        "列表那块重构一下",
        "重构这个函数",
        "拆分这个字符串",
        "refactor this function",
        "split the string by commas",
        "支持上传多个文件",
        "多个文件上传失败",
        "不要重构服务，只改标题",
        "不动表结构，加个备注列",
        "把标题改成「架构变更」",
        "架构图按钮换个颜色",
    ],
)
def test_what_only_looks_large(text: str) -> None:
    assert classify(text).level != 3


# --- small edits


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("改首页标题", "copy"),
        ("标题换成欢迎", "copy"),
        ("change the label to Save", "copy"),
        ("改 index.html 的标题", "copy"),
        ("@a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/index.vue 改标题", "copy"),
        ("调一下间距", "style"),
        ("字号太小", "style"),
        ("make the font bigger", "style"),
        ("改一下按钮", "button-attr"),
        ("按钮位置不对", "button-attr"),
        ("超时改成 30s", "constant"),
        ("默认值改成草稿", "constant"),
        ("set the timeout to 30s", "constant"),
        ("字段名改为 total", "rename"),
        ("变量 foo 重命名为 bar", "rename"),
        ("rename foo to bar", "rename"),
        ("版本号小改一下", "tiny"),
        ("加个导出按钮", "button"),
        ("加一列备注", "column"),
        ("加个手机号搜索项", "column"),
        ("新增一个路由指向考勤页", "route"),
        ("增加 status 字段，下拉", "crud"),
        ("参考用户页新建一个角色页面", "self-contained"),
    ],
)
def test_one_step(text: str, family: str) -> None:
    found = classify(text)
    assert (found.level, found.fast_track, found.family) == (1, True, family)


@pytest.mark.parametrize(
    "text", ["调整列宽", "调整排序", "调整菜单顺序", "调整表头顺序", "表头加粗", "排序改成倒序", "adjust menu order"]
)
def test_an_attribute_of_an_old_thing_is_decided(text: str) -> None:
    assert grade(text) == 2


@pytest.mark.parametrize("word", word_list("grading").sections["connective"][:9])
def test_a_connective_blocks(word: str) -> None:
    assert classify(f"改标题，{word}加个按钮").level == 2
    assert classify(f"加个按钮{word}一列").gap is None


@pytest.mark.parametrize(
    "text",
    ["所有按钮的文案都统一", "整体字号调大", "每个按钮加图标", "批量修改标题", "change every label",
     "全部按钮换成蓝色"],
)
def test_a_broad_word_blocks(text: str) -> None:
    assert classify(text).level == 2


@pytest.mark.parametrize(
    "text",
    [
        "同时段的标题改一下",
        "所有者的标题改一下",
        "还有效期的标题改一下",
        "改一下批量删除按钮的文案",
        "把「全部」标签改名",
        "加个批量删除按钮",
    ],
)
def test_what_only_looks_broad(text: str) -> None:
    assert grade(text) == 2 or "L2:broad" not in classify(text).signals


def test_the_length_gate_is_48_without_the_path() -> None:
    text = "甲" * 44 + "改标题"
    assert classify(text).level == 1
    assert classify("甲" + text).level == 1
    assert classify("甲甲" + text).level == 2
    assert classify("src/views/a/b/c.vue " + text).level == 1


def test_the_content_gate_has_no_length() -> None:
    assert classify("甲" * 80 + "加个按钮").content_gap == "button"


# --- content


@pytest.mark.parametrize("noun", CONTAINERS)
@pytest.mark.parametrize(
    "form",
    ["加个{}", "登录页新增一个{}", "页面上加一个新{}", "加个漂亮的{}", "加个这样的{}吧", "src/views/a.vue 加个{}"],
)
def test_a_new_thing_without_content_is_asked_for(form: str, noun: str) -> None:
    if noun == "一列":
        form = form.replace("加个", "加").replace("一个", "").replace("新{", "{")
    decision = decide(form.format(noun))
    assert decision.classification.gap is not None
    assert (decision.next_step.step, decision.next_step.reason) == ("confirm", "gap")


@pytest.mark.parametrize("noun", CONTAINERS)
def test_a_named_thing_is_not_asked_for(noun: str) -> None:
    assert classify(f"加个手机号{noun.removeprefix('一')}").gap is None


@pytest.mark.parametrize(
    "text",
    [
        "加个按钮，点击打开帮助页",
        "加个按钮「返回」",
        "加个按钮，用来导出",
        "加个按钮，导出当前列表",
        "加个导出按钮",
        "列表加一列，显示手机号",
        "加一列：手机号",
        "加个菜单项，跳到订单列表",
        "加个路由 /user/list",
        "加个弹窗，里面放确认内容",
        "加个开关控制是否启用",
        "加个接口查询库存",
        "add a button that exports the list",
        "add an Export button",
        "add a button to export the list",
        "add a column for the phone number",
        "add a route to the users page",
        'add a "Save" button',
    ],
)
def test_content_in_every_form(text: str) -> None:
    assert classify(text).gap is None


@pytest.mark.parametrize(
    "text",
    [
        "加个可点击的按钮",
        "表格加一列吧",
        "加个路由，到时候再说",
        "加个按钮，谢谢",
        "加个红色的按钮",
        "加两个按钮",
        "加个右上角的按钮",
        "加一列放最后",
        "add a button to the login page",
        "add a nice button",
        "add a column to the table",
        "add a route",
    ],
)
def test_what_only_looks_like_content(text: str) -> None:
    assert classify(text).gap is not None


@pytest.mark.parametrize(
    "text", ["去掉这个按钮", "删除按钮", "把按钮去掉", "删除一列", "remove the button", "删掉弹窗"]
)
def test_removing_an_unnamed_thing_asks_which(text: str) -> None:
    gap = classify(text).gap
    assert gap is not None
    assert gap.deleting


@pytest.mark.parametrize(
    "text", ["去掉导出按钮", "导出按钮去掉", "删除备注列", "去掉右上角的按钮", "remove the Export button"]
)
def test_removing_a_named_thing_is_one_step(text: str) -> None:
    assert grade(text) == 2


# --- inference


@pytest.mark.parametrize(
    ("text", "part", "value"),
    [
        ("updateTime 字段改名", "component", None),
        ("adoption 字段加上", "component", None),
        ("加个日期字段", "component", "date"),
        ("在 index.vue 列表里加个下拉", "field", None),
        ("字段 remark 加上", "field", "remark"),
        ("add a field called remark", "field", "remark"),
        ("改 style.css 的颜色", "file", "style.css"),
        ("package.json 改一下", "file", "package.json"),
        ("改 a.cpp", "file", "a.cpp"),
        ("x.md 和 src/b.ts 都改", "file", "src/b.ts"),
        ("用 Vue.js 写", "file", None),
        ("默认值改成草稿", "default", "草稿"),
        ("默认为「启用」", "default", "启用"),
        ("默认值改一下", "default", None),
        ("default to 5", "default", "5"),
    ],
)
def test_inference(text: str, part: str, value: str | None) -> None:
    assert getattr(classify(text).inferred, part) == value


# --- chat


@pytest.mark.parametrize(
    "text",
    [
        "",
        "你好",
        "谢谢",
        "好的，继续",
        "今天几号？",
        "什么是闭包",
        "解释一下这段代码",
        "为什么要用 redis",
        "hello",
        "what is a closure",
        "ok",
        "thanks, looks great",
    ],
)
def test_chat_is_no_coding_request(text: str) -> None:
    assert decide(text).next_step.step == "none"


@pytest.mark.parametrize(
    "text",
    [
        "你好，帮我加个按钮",
        "为什么登录报错",
        "谢谢，再把标题改一下",
        "fix the login bug",
        "解释一下并修复这个报错",
        "新增备注字段",
    ],
)
def test_a_request_behind_a_greeting_counts(text: str) -> None:
    assert decide(text).next_step.step != "none"


# --- monotony: more specific never grades lower

NAMES = ("导出", "忘记密码", "手机号", "订单状态", "批量删除", "回到顶部")


@given(
    st.sampled_from(CONTAINERS[:1] + CONTAINERS[3:]),
    st.sampled_from(NAMES),
    st.sampled_from(["", "注册页", "列表里", "右上角"]),
)
def test_a_name_never_lowers_the_grade(noun: str, name: str, place: str) -> None:
    assert grade(f"{place}加个{name}{noun}") >= grade(f"{place}加个{noun}")


SMALL = (
    "改标题",
    "调一下间距",
    "加个导出按钮",
    "加个按钮",
    "加一列",
    "超时改成 30s",
    "去掉导出按钮",
    "新增备注字段",
    "加个弹窗",
    "调整列宽",
)


@given(st.sampled_from(SMALL), st.sampled_from(["src/views/order/index.vue ", "@app/login.tsx ", "在 a.css 里"]))
def test_a_path_never_lowers_the_grade(task: str, path: str) -> None:
    assert grade(path + task) >= grade(task)


@given(
    st.sampled_from(SMALL),
    st.sampled_from(["，点击导出订单", "，文案是「完成」", "，默认值为 1", "，谢谢", "，字段是 remark"]),
)
def test_content_never_lowers_the_grade(task: str, content: str) -> None:
    assert grade(task + content) >= grade(task)


# --- any input


@given(st.text() | st.text(alphabet="加个按钮列路由改标题，。「」{}[]\"'@/.\\\ud800ａＢ \n"))
def test_any_text_has_a_grade(text: str) -> None:
    decision = decide(text)
    assert decision.classification.level in (1, 2, 3)
    assert decision == decide(text)


@pytest.mark.parametrize(
    "unit", ["改标题", "[", '{"a":', "「", '"a', "/a", "a.", "\ud800", "加个", "新建表代", "'", "@a", "升级到 "]
)
def test_a_megabyte_is_graded(unit: str) -> None:
    assert decide(unit * (1_000_000 // len(unit))).classification.level in (1, 2, 3)


def test_a_project_adds_words() -> None:
    words = word_list("grading").with_words({"button": ["磁贴"]})
    assert classify("加个磁贴").gap is None
    gap = classify("加个磁贴", words).gap
    assert gap is not None
    assert gap.key == "button"
    with pytest.raises(ValueError, match="unknown tag 'x'"):
        word_list("grading").with_words({"x": ["y"]})


def test_traditional_characters_are_read_and_shown_as_written() -> None:
    found = decide("新增 status 欄位，下拉，默認值為審核").classification
    assert (found.level, found.inferred.field, found.inferred.default) == (1, "status", "審核")
    gap = decide("登錄頁加個開關").classification.gap
    assert gap is not None
    assert (gap.key, gap.words) == ("component", "加個開關")
    assert "quote:儲存並繼續" in decide("「儲存並繼續」要顯示兩次").triage.anchors
