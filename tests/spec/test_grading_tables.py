"""Every word of the families: each verb with each noun, each form, graded as the family says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from gatekeeper.spec.triaging import decide


def words(text: str) -> list[str]:
    return text.split()


def wrong(texts: Iterable[str], *, level: tuple[int, ...], **wanted: object) -> Iterator[str]:
    """The texts that are graded otherwise, with what they got."""
    for text in texts:
        found = decide(text).classification
        got = {"level": found.level, "family": found.family, "content_gap": found.content_gap}
        if found.level not in level or any(got[key] != value for key, value in wanted.items()):
            yield f"{text}: {got}"


COPY = words("文案 文字 标题 副标题 标签 提示语 提示文字 占位符 placeholder label")
STYLE = words(
    "样式 颜色 配色 间距 边距 内边距 外边距 字号 字体 字重 宽度 高度 圆角 背景色 对齐 图标大小 css style scss less"
)
COPY_FORMS = words("换一下 改一下 改成甲乙 改为甲乙 换成甲乙 更新 统一")
REFERENCES = words("参考 参照 仿照 按照 照搬 对标 类似 同款 依据 基于")
PAGES = words("页面 组件 弹窗 对话框 表单 列表页 详情页 卡片 视图")
BUTTON = words("按钮 图标 icon")
ITEM = words("搜索项 筛选项 查询项 查询条件")
ROUTE = words("路由 菜单项 菜单 导航项 子菜单")
CONSTANT = words("默认值 初始值 默认 常量 阈值 上限 下限 超时时间")
NAMED = words("字段 列 属性 参数 变量 方法 函数 字段名 列名 属性名 参数名 变量名 方法名 函数名")
ADD, REMOVE = words("加 新增 增加 添加"), words("删 删除 去掉 移除")
PURPOSES = words(
    "提交 重置 保存 删除 导出 下载 导入 上传 打印 刷新 返回 跳转 打开 关闭 登录 注册 退出 切换 复制 分享 发送 "
    "确认 取消 编辑 查看 绑定 解绑 重试 同步 清空 展开 收起 扫码 预览"
)
TABLES = {
    "copy": (
        *(f"{verb}首页{noun}" for verb, noun in product(words("改 换 修改 调整 更新 优化 统一"), COPY)),
        *(f"弹窗{noun}{verb}" for noun, verb in product(COPY, COPY_FORMS)),
    ),
    "style": (
        *(f"{verb}侧栏{noun}" for verb, noun in product(words("调 改 调整 修改 优化 微调"), STYLE)),
        *(f"侧栏{noun}{verb}" for noun, verb in product(
            STYLE, words("调整 微调 改一下 调一下 调大 调小 问题 错位 不统一 太大 太小"))),
    ),
    "button": (
        *(f"{verb}导出{noun}" for verb, noun in product(ADD + REMOVE, BUTTON)),
        *(f"页面加个{purpose}按钮" for purpose in PURPOSES),
    ),
    "button-attr": [f"{verb}{middle}{noun}" for verb, middle, noun in product(
        words("改 换 修改 调整 优化 调"), ("", "一下", "个", "这个"), BUTTON)],
    "column": [f"{verb}状态{noun}" for verb, noun in product(ADD + REMOVE, ITEM)],
    "route": (
        *(f"{verb}{noun}指向订单页" for verb, noun in product(ADD, ROUTE)),
        *(f"{verb}考勤{noun}" for verb, noun in product(REMOVE, ROUTE)),
    ),
    "constant": (
        *(f"{verb}{noun}" for verb, noun in product(words("改 修改 调整 换 改一下"), CONSTANT)),
        *(f"{noun}{verb}" for noun, verb in product(CONSTANT, words("改 改成5 改为5 换成5 调成5 调整为5"))),
    ),
    "tiny": [f"{word}下头部" for word in words("小改 微调 小调整 只改 仅改 只调整 改个小")],
    "skip": [f"{head}{word}" for head, word in product(("", "重构整个系统，", "加个按钮，"), words(
        "直接做 速做 不用问 别问 不要问 极速模式"))],
    "self-contained": [f"{reference}订单页新建一个售后{noun}" for reference, noun in product(
        REFERENCES, PAGES)],
}  # fmt: skip


@pytest.mark.parametrize("family", TABLES)
def test_one_step(family: str) -> None:
    assert list(wrong(TABLES[family], level=(1,), family=family, content_gap=None)) == []


def test_a_new_name() -> None:
    texts = [f"{noun}{verb}userId" for noun, verb in product(NAMED, words("改成 改为 改名 重命名 换成 替换成 更名"))]
    assert list(wrong(texts, level=(1,))) == []


@pytest.mark.parametrize(
    ("gap", "texts"),
    [
        ("button", [f"{verb}{middle}{noun}" for verb, middle, noun in product(ADD, ("", "一个"), BUTTON)]),
        ("button", [f"{verb}{noun}" for verb, noun in product(REMOVE, BUTTON)]),
        ("column", [f"{verb}{noun}" for verb, noun in product(ADD, ["一列", "表头", *ITEM])]),
        ("column", [f"{verb}{noun}" for verb, noun in product(REMOVE, ITEM)]),
        ("route", [f"{verb}{noun}" for verb, noun in product(ADD + REMOVE, ROUTE)]),
    ],
)
def test_gaps(gap: str, texts: list[str]) -> None:
    assert list(wrong(texts, level=(2,), family=gap, content_gap=gap)) == []


def test_several_tasks_and_broad_words() -> None:
    joined = [f"改标题{word}加个返回按钮" for word in words("以及 同时 顺便 还有 另外 并且 然后 一并 一起")]
    broad = [f"{word}页面标题改一下" for word in words("整体 全局 所有 全部 批量 每个 各个 多处 整个 全站 全量")]
    assert list(wrong(joined + broad, level=(2,), content_gap=None)) == []


def test_large_scope() -> None:
    patterns = words(
        "架构变更 架构调整 整体架构 技术选型 技术栈调整 模块重构 服务重构 代码重构 建表 建库 建索引 减列 修改表结构 "
        "新增表 删除表 新增索引 新增数据库 跨文件 跨模块 跨服务 跨组件 多个文件 多个模块 多处修改 整体迁移 整体升级"
    )
    texts = [
        *patterns,
        *(f"订单这块{pattern}的事" for pattern in patterns),
        *("重写整个订单页", "重做整个后台", "整体前端重构", "拆分用户和权限服务"),
        *("从 MySQL 迁移 到 TiDB", "升级至 Spring Boot 3", "加列 remark", "DROP TABLE t", "新建用户表"),
        *("创建一张用户登录日志表", "新增退货表，字段有单号", "建用户标签表结构"),
    ]
    assert list(wrong(texts, level=(3,))) == []


def test_words_that_only_hold_a_table() -> None:
    tails = [f"表{tail}" for tail in "单格头尾示现明演决情面率白达盘针带记稿述扬层"]
    heads = words("列表 报表 图表 代表 发表 手表 仪表 量表 外表 钟表")
    texts = [f"{verb}{word}" for verb, word in product(words("新增 新建 创建 删除 建"), tails + heads)]
    assert list(wrong(texts, level=(1, 2))) == []
