"""Hygiene: redlines, near-duplicates, secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.spec.hygiene import (
    check_template,
    classify_redline,
    is_near_duplicate,
    is_task_scoped,
    merge_near_duplicates,
    polarity,
)
from gatekeeper.spec.model import GLOBAL, PROJECT, Template
from gatekeeper.spec.secrets import mask_secrets


@pytest.mark.parametrize(
    "redline",
    [
        "本次只动 lib/cache.py，不碰 app.py",
        "这次只改 src/a.vue",
        "仅限 Dockerfile",
        "本轮不要碰 `index.js`",
        "only touch src/a.ts this time",
        "此次只改 订单.vue",
    ],
)
def test_task_scoped(redline: str) -> None:
    assert is_task_scoped(redline)
    assert classify_redline(redline) == "task"


@pytest.mark.parametrize(
    "redline",
    [
        "只改用户点名的页面",
        "不要修改 common/Resp.java 的返回结构",
        "package.json 不新增依赖",
        "本次不做国际化",
        "调试脚本用后删除",
        "never edit dist/index.js",
    ],
)
def test_lasting(redline: str) -> None:
    assert not is_task_scoped(redline)


def test_class_by_words() -> None:
    assert classify_redline("不改公共 API 的调用逻辑") == "project"
    assert classify_redline("不新增依赖") == "project"
    assert classify_redline("不自行改动夜班的算法") == "topic"
    assert classify_redline("不改胶囊按钮") == "topic"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("不要修改 dist 目录，它由 git 跟踪", "它由 git 跟踪，不要修改 dist 目录"),
        ("不新增依赖", "不新增依赖（导出用原生能力）"),
        ("不自行改动夜班工时算法口径", "不要自行改动夜班工时的算法口径"),
        ("Never edit dist.", "never edit  dist"),
    ],
)
def test_near_duplicates(a: str, b: str) -> None:
    assert is_near_duplicate(a, b)
    assert is_near_duplicate(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("不改公共请求封装", "不改登录页样式"),
        ("允许在列表页直接编辑状态", "禁止在列表页直接编辑状态"),
        ("可以修改公共的接口地址", "不可以修改公共的接口地址"),
        ("改公共", "不改公共请求封装"),
        ("不要改 a.js 的导出逻辑", "不要改 b.js 的导出逻辑"),
        ("不改表", "不改表单"),
        ("上限为 100 条每页记录", "上限为 200 条每页记录"),
        ("must keep the old response shape", "must not keep the old response shape"),
    ],
)
def test_different_rules(a: str, b: str) -> None:
    assert not is_near_duplicate(a, b)
    assert not is_near_duplicate(b, a)


def test_polarity() -> None:
    assert [polarity(text) for text in ("禁止改", "允许改", "不得不改", "改", "类别改名")] == [-1, 1, 1, 0, 0]


def test_the_longer_wording_stays_in_the_first_place() -> None:
    assert merge_near_duplicates(["不新增依赖", " ", "不改封装", "不新增依赖（用原生）"]) == [
        "不新增依赖（用原生）",
        "不改封装",
    ]


@given(st.lists(st.text(alphabet="不要改公共接口请求封装 ab.js", max_size=14), max_size=8))
def test_merging_twice_changes_nothing(items: list[str]) -> None:
    once = merge_near_duplicates(items)
    assert len(merge_near_duplicates(once)) <= len(once) <= len(items)
    assert all(item.strip() for item in once)


SECRETS = {
    "sk-proj-" + "a1B2" * 8: "token",
    "ghp_" + "a1B2" * 8: "token",
    "AKIA" + "ABCD" * 4: "token",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl": "token",
    "Authorization: Bearer abc.def-123456789": "token",
    "password=hunter22!": "password",
    '"api_key": "xyz12345"': "password",
    "DB_PASSWORD: s3cret99": "password",
    "postgres://root:pw1234@db/x": "password",
    "密码是 Abc12345": "password",
    "Password=Str0ngPass;": "password",
    "dbPassword=tops3cret": "password",
    'password: "my long pass phrase 1"': "password",
    "curl -u admin:Passw0rd": "password",
    "login --token abcd1234efgh": "password",
    "AccountKey=abcd1234efgh;": "password",
    "密碼：Qwer1234": "password",
    "amqp://guest:gu3st@pw@mq/x": "password",
    "Cookie: session=9af3b2c1d4e5": "token",
    "Authorization: 0123456789abcdef": "token",
    "https://hooks.slack.com/services/T00000000/B00000000/X1X2X3X4X5X6": "token",
    "SG." + "a1B2" * 5 + "." + "c3D4" * 8: "token",
    "li.lei+x@mail.example.com": "email",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdG1\n-----END PGP PRIVATE KEY BLOCK-----": "private-key",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "private-key",
}


@pytest.mark.parametrize(("secret", "kind"), SECRETS.items())
@pytest.mark.parametrize("frame", ["{}", "日志里有 {} 请看", "x\n{}\ny"])
def test_secrets_are_masked(secret: str, kind: str, frame: str) -> None:
    masked, counts = mask_secrets(frame.format(secret))
    assert counts == {kind: 1}
    assert f"[{kind}]" in masked
    assert not any(
        part in masked for part in secret.replace("=", " ").replace(":", " ").split() if any(c.isdigit() for c in part)
    )
    assert mask_secrets(masked) == (masked, {})


@pytest.mark.parametrize(
    "text",
    [
        "密码输入框加校验",
        "password: string",
        "token 过期后跳登录页",
        "@src/a.vue 改标题",
        "vue@3.4.0",
        "改 secret.ts",
        "用户名和密码为空时提示",
        "password = ${PASSWORD}",
        "a@b",
        "max_tokens = 4096",
        "token = getToken()",
        "token：过期自动续",
        "apiKey: process.env.API_KEY",
        "修改 cookie：登录后写入",
        "Authorization: 必填",
        "https://host:8080/path/u@x",
    ],
)
def test_what_only_looks_like_a_secret(text: str) -> None:
    assert mask_secrets(text) == (text, {})


@pytest.mark.parametrize(
    "unit",
    ["a@", "password:", "sk-", "eyJ", "a.", "-----BEGIN PRIVATE KEY-----", "bearer ", "a://", "密码是", "cookie: a=",
     "authorization: ", "-u a:", 'password: "'],
)
def test_a_megabyte_is_masked(unit: str) -> None:
    assert mask_secrets(unit * (300_000 // len(unit)))[0]


def test_a_template_on_its_way_to_disk() -> None:
    redlines = ("本次只动 a.js", "不改公共接口", "不改跨天语义", "不改跨天语义（含夜班）")
    template = Template(
        "tpl-0000000000",
        "x",
        scope=PROJECT,
        redlines=redlines,
        prompt="token=abcd1234",
        clarify=tuple(f"第 {i} 问" for i in range(20)),
    )
    checked = check_template(template)
    assert checked.template.redlines == ("不改跨天语义（含夜班）",)
    assert (checked.dropped, checked.hoisted, checked.masked) == (
        ("本次只动 a.js",),
        ("不改公共接口",),
        {"password": 1},
    )
    assert len(checked.template.clarify) == 12
    assert checked.template.prompt == "token=[password]"
    kept = check_template(Template("tpl-0000000000", "x", scope=GLOBAL, redlines=redlines))
    assert (kept.template.redlines, kept.hoisted) == (("不改公共接口", "不改跨天语义（含夜班）"), ())
