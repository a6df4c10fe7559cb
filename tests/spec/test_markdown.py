"""Template and profile files: what is written reads back, and every older form is read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from json import dumps

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.front_matter import read_front_matter, whole_text
from gatekeeper.spec.markdown import (
    clean_items,
    list_items,
    normal_template,
    read_profile,
    read_sections,
    read_template,
    render_profile,
    render_template,
)
from gatekeeper.spec.model import Fingerprint, Profile, Template

EXPORT = Template(
    id="tpl-0123456789", name="订单导出", category="feature/export", tags=("export", "订单, 导出"),
    trigger="用户说「导出订单」\n或者「下载报表」", clarify=("导出哪些列？",),
    approach=("后端流式生成文件", "前端只给链接"),
    redlines=("不改公共请求封装",), prompt="给订单加导出\n## 禁区\n```js\na()\n```", acceptance=("导出 1 万行不超时",),
    fingerprint=Fingerprint({"src/order.vue": 4, "a|b": 2, "导出": 3}), fp_version=1,
    repo="0123456789ab", created="2025-01-02", updated="2025-01-03T04:05:06",
)  # fmt: skip
TEXT = st.text(max_size=60)
MARKED = st.sampled_from(["- ", "1. ", "[ ] ", "（", "）", "## 禁区", "```", "~~~", "---", "\\", "# ",
                          "\n", "\r\n", "| ", ": ", "甲", "，", "a", " ", "\u2028", "\x85", "\ud800", "\0",
                          "\ufeff", '"', "'", "[", "]"])  # fmt: skip
HARD = st.lists(MARKED, max_size=12).map("".join) | TEXT
ITEMS = st.lists(HARD, max_size=4).map(tuple)
TEMPLATES = st.builds(
    Template, id=st.just("tpl-0123456789"), name=HARD.filter(lambda name: whole_text(name).strip()), category=HARD,
    tags=ITEMS, trigger=HARD, clarify=ITEMS, approach=ITEMS, redlines=ITEMS, prompt=HARD, acceptance=ITEMS, repo=HARD,
    fingerprint=st.dictionaries(HARD.filter(bool), st.integers(1, 4).map(float), max_size=4).map(Fingerprint),
    created=HARD, updated=HARD, fp_version=st.integers(0, 9),
)  # fmt: skip


# --- round trip


def test_a_template_reads_back_the_same() -> None:
    assert read_template(render_template(EXPORT), id=EXPORT.id).template == EXPORT


def test_check_boxes_do_not_stack() -> None:
    text = render_template(EXPORT)
    for _ in range(3):
        text = render_template(read_template(text, id=EXPORT.id).template)
    assert "- [ ] 导出 1 万行不超时" in text
    assert "[ ] [ ]" not in text


@given(TEMPLATES)
def test_any_template_reads_back(template: Template) -> None:
    once = normal_template(template)
    assert normal_template(once) == once
    text = render_template(template)
    text.encode()
    assert read_template(text, id=template.id).problems == ()
    for name in ("clarify", "redlines", "acceptance"):
        assert list(getattr(once, name)) == clean_items(map(whole_text, getattr(template, name)))
    assert list(once.approach) == clean_items(map(whole_text, template.approach), numbered=True)


@given(TEMPLATES)
def test_no_text_is_lost_on_the_way(template: Template) -> None:
    marks = " \n\r\t（）()"
    once = normal_template(template)
    for name in ("trigger", "prompt"):
        kept, given_text = (whole_text(getattr(value, name)).replace("\r\n", "\n").replace("\r", "\n")
                            for value in (once, template))  # fmt: skip
        assert [c for c in kept if c not in marks] == [c for c in given_text if c not in marks and not c.isspace()] \
            or kept.split() == given_text.split()
    assert once.name == whole_text(template.name).strip()
    assert once.tags == tuple(whole_text(tag) for tag in template.tags if whole_text(tag).strip())


@given(TEMPLATES)
def test_front_matter_is_yaml(template: Template) -> None:
    yaml = pytest.importorskip("yaml")
    text = render_template(template).split("---\n", 1)[1].partition("\n---\n")[0]
    values = yaml.safe_load(text)
    assert values["name"] == whole_text(template.name)
    assert values == read_front_matter(text)


def test_empty_sections_have_a_placeholder_that_reads_as_nothing() -> None:
    text = render_template(Template("tpl-0123456789", "空"))
    sections = read_sections(text)
    for title in ("触发场景", "需求澄清清单", "标准改法", "禁区", "提示词模板", "验收标准"):
        assert sections[title].strip() == "（暂无）"
    template = read_template(text, id="tpl-0123456789").template
    assert (template.trigger, template.clarify, template.approach, template.redlines, template.prompt,
            template.acceptance) == ("", (), (), (), "", ())  # fmt: skip


def test_a_profile_reads_back_the_same() -> None:
    profile = Profile("订单: #1", ("不改公共请求封装", "「甲」, 乙"), "2025-01-02")
    assert read_profile(render_profile(profile)) == profile
    assert read_profile("\ufeff" + render_profile(profile).replace("\n", "\r\n")) == profile
    assert read_profile("## 禁区\n- 甲\n") == Profile("", ("甲",), "")


@given(HARD, ITEMS)
def test_any_profile_reads_back(name: str, redlines: tuple[str, ...]) -> None:
    profile = read_profile(render_profile(Profile(name, redlines)))
    assert profile.redlines == tuple(clean_items(map(whole_text, redlines)))
    assert profile.repo_name == whole_text(name)


# --- older forms


OLD = """---
id: tpl-0123456789
name: 登录: 报错 #12
category: bugfix/login
scope: project
tags: [a-switch, "订单, 导出", '引''号', 登录]
fingerprint: [src/a.vue|4, a|b|2, 登录|3]
repo: 0123456789ab
hitCount: 7
created: 2024-05-06
updated: 2024-05-06T07:08:09.000Z
lastUsed: 2024-06-01
---

# 登录报错

## 触发场景

用户说"登录没反应"

## 需求澄清清单

- （暂无）

## 标准改法

1. 看接口
2、改前端
- 补测试

## 禁区
- [ ] 不改接口
1. 不是条目

## 提示词模板

```text
照做
## 禁区
- 这里不是
```

## 验收标准

- [x] 能登录
* [ ] 错误有提示
"""


def test_the_older_form_is_read() -> None:
    pytest.importorskip("yaml")
    file = read_template(OLD, id="tpl-0123456789")
    template = file.template
    assert template.name == "登录: 报错 #12"
    assert template.tags == ("a-switch", "订单, 导出", "引'号", "登录")
    assert template.fingerprint.weights == {"src/a.vue": 4, "a|b": 2, "登录": 3}
    assert (file.hits, file.last_used, template.created) == (7, "2024-06-01", "2024-05-06")
    assert template.clarify == ()
    assert template.approach == ("看接口", "改前端", "补测试")
    assert template.redlines == ("不改接口",)
    assert template.prompt == "照做\n## 禁区\n- 这里不是"
    assert template.acceptance == ("能登录", "错误有提示")
    assert template.fp_version == 0
    assert file.problems == ()


@pytest.mark.parametrize(("text", "values"), [
    ("name: yes\ntags:\n  - a\n  - 2024-01-01\n", {"name": "yes", "tags": ["a", "2024-01-01"]}),
    ("name: 'it''s'\ntags: [a,\n  b]", {"name": "it's", "tags": ["a", "b"]}),
    ("name: true\nn: 1e3", {"name": "true", "n": "1e3"}),
    ('name: "a"\nn: 3', {"name": "a", "n": 3}),
    ("name: @a/b\ntags: [@c, `d`]", {"name": "@a/b", "tags": ["@c", "`d`"]}),
    ("name: a: b\ntags:\n- c\n- 'd'", {"name": "a: b", "tags": ["c", "d"]}),
    ("name: !!python/object/apply:os.system [echo]\n", {"name": ["echo"]}),
    ("- a\n- b", {}),
    ("", {}),
])  # fmt: skip
def test_front_matter_in_every_form(text: str, values: dict[str, object]) -> None:
    pytest.importorskip("yaml")
    assert read_front_matter(text) == values


def test_a_lone_surrogate_in_a_file_is_replaced() -> None:
    file = read_template('---\nname: "a\\ud800"\ntags: ["\\udc00b"]\n---\n')
    assert (file.template.name, file.template.tags) == ("a\ufffd", ("\ufffdb",))


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    text = "\ufeff" + render_template(EXPORT).replace("\n", "\r\n")
    assert read_template(text, id=EXPORT.id).template == EXPORT


@pytest.mark.parametrize("text", [
    "", "# 订单导出\n", "---\nid: a\n", "---\nid: a\n---\n", "---\nname: ''\n---\n", "---\n---\n"])
def test_no_template_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="front matter"):
        read_template(text)


def test_a_broken_fingerprint_is_reported_and_not_used() -> None:
    prints = "['[object Object]', 'b|0', 'c|nan', 'd|2']"
    file = read_template(f"---\nname: a\nfingerprint: {prints}\n---\n", id="tpl-00000000")
    assert file.template.fingerprint == Fingerprint({})
    assert file.problems == ("3 broken fingerprint entries", "the id inside is '', not that of the file")


@given(st.lists(MARKED | TEXT, max_size=30).map("".join))
def test_no_text_breaks_a_reader(text: str) -> None:
    read_sections(text)
    list_items(text, numbered=True)
    read_profile(text)
    for read in (text, f"---\n{text}\n---\n", f"---\nname: a\n---\n{text}", f'---\nname: "a"\n{text}\n---\n'):
        with suppress(ValueError):
            read_template(read)


def test_deep_and_long_front_matter_is_read_in_time() -> None:
    for text in ("name: " + "[" * 100_000, "name: {" * 5000, "a: &a [" + "*a," * 10_000 + "]",
                 "name:" + " \t" * 200_000 + "x"):
        read_front_matter(text)


# --- lists and sections


@pytest.mark.parametrize(("text", "items", "numbered"), [
    ("- [ ] 甲\n1. 乙\n- 丙\n- （暂无）", ["甲", "丙"], ["甲", "乙", "丙"]),
    ("- [ ] [x] 甲\n-\n- \n-乙", ["甲"], ["甲"]),
    ("- 甲\n  接着说\n\n乙", ["甲 接着说"], ["甲 接着说"]),
    ("  - 甲\n\t* 乙\n+ 丙\n• 丁", ["甲", "乙", "丙", "丁"], ["甲", "乙", "丙", "丁"]),
    ("1) 甲\n10. 乙\n3、丙\n1.5 倍\n1234. 丁", [], ["甲", "乙", "丙"]),
    ("- [链接](x)\n- [ ]甲", ["[链接](x)", "[ ]甲"], ["[链接](x)", "[ ]甲"]),
])  # fmt: skip
def test_list_items(text: str, items: list[str], numbered: list[str]) -> None:
    assert list_items(text) == items
    assert list_items(text, numbered=True) == numbered


def test_a_bracketed_item_is_written_so_that_it_is_kept() -> None:
    template = replace(EXPORT, clarify=("（可选）导出哪些列？（全部）", "（没写完"))
    assert normal_template(template).clarify == ("(可选)导出哪些列？（全部）", "(没写完")


def test_sections_are_fence_aware() -> None:
    text = "## 甲\n````\n## 乙\n```\n## 丙\n````\n## 丁 ##\nx\n### 戊\n~~~\n```\n~~~\n## 甲\ny"
    assert list(read_sections(text)) == ["甲", "丁"]
    assert read_sections(text)["甲"].endswith("y")
    assert dumps(read_sections(text)["丁"]) == dumps("x\n### 戊\n~~~\n```\n~~~", ensure_ascii=True)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("name: 甲\ntags: [a, 'b\nx: :", "the front matter is broken at line 2: tags: [a, 'b"),
        ("name: 甲\n  half a thought: [\n", "the front matter is broken at line 2: half a thought: ["),
        ("name: 'not closed\nx: [", "the front matter is broken at line 1: name: 'not closed"),
    ],
)
def test_torn_front_matter_is_read_and_reported(lines: str, problem: str) -> None:
    assert problem in read_template(f"---\n{lines}\n---\n").problems
