"""What may be asked, and what is decided instead: gaps, dimensions and conservative defaults, in both languages."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gatekeeper.spec.decision import Gap, Triage


class Text(NamedTuple):
    """One sentence in both languages."""

    zh: str
    en: str

    def of(self, is_english: bool) -> str:
        return self.en if is_english else self.zh


# dimension: default, and the words that switch it
CONSERVATIVE_DEFAULTS = (
    (
        Text("列表不展示", "not shown in lists"),
        ("列表展示", "表格里显示", "列表显示", "列表里显示", "show in list", "in the list"),
    ),
    (Text("仅必填校验", "no validation but required"), ("校验", "唯一", "必填", "valid", "unique", "required")),
    (
        Text("后端已支持，只改前端", "front end only, back end assumed ready"),
        ("接口还没", "后端不支持", "新建接口", "新增接口", "后端", "backend", "back end", "endpoint", "controller"),
    ),
)

DIMENSIONS = {
    "goal": Text("目标与验收", "goal and acceptance"),
    "approach": Text("范围与技术做法", "range and technical way"),
    "boundary": Text("不能动什么", "what must not change"),
    "context": Text("仓库、技术栈、文件", "repository, stack, files"),
}


class GapText(NamedTuple):
    """How to ask for one kind of gap. candidates: the first is recommended."""

    thing: Text
    ask: Text
    candidates: Text


GAPS = {
    "button": GapText(
        Text("按钮", "button"),
        Text("按钮的文案和用途（点了做什么）", "the button's label and what a click does"),
        Text("提交当前表单 / 跳转到某页 / 打开弹窗", "submit this form / go to a page / open a dialog"),
    ),
    "column": GapText(
        Text("列", "column"),
        Text("这一列（项）对应哪个字段", "which field it shows or filters"),
        Text("状态 / 创建时间 / 备注", "status / created at / remark"),
    ),
    "route": GapText(
        Text("路由", "route"),
        Text("路由（菜单）的路径和目标页面", "its path and target page"),
        Text("已有的列表页 / 新建空页面 / 外部链接", "an existing list page / a new empty page / an external link"),
    ),
    "dialog": GapText(
        Text("弹窗", "dialog"),
        Text("弹窗的内容和何时弹出", "what it shows and when it opens"),
        Text("操作前二次确认 / 编辑表单 / 详情展示", "confirm an action / edit form / details"),
    ),
    "card": GapText(
        Text("卡片", "card"),
        Text("展示什么内容", "what it shows"),
        Text("汇总数字 / 最近记录 / 详情信息", "a total / recent records / details"),
    ),
    "tab": GapText(
        Text("标签页", "tab"),
        Text("标签页的名称和内容", "its name and content"),
        Text("按状态分组 / 详情分块 / 全部", "by status / parts of the details / all"),
    ),
    "component": GapText(
        Text("控件", "control"),
        Text("控件对应哪个字段、控制什么", "which field it sets and what for"),
        Text("是否启用 / 状态 / 类型", "enabled / status / type"),
    ),
    "field": GapText(
        Text("字段", "field"),
        Text("字段名和含义", "its name and meaning"),
        Text("备注 / 状态 / 类型", "remark / status / type"),
    ),
    "api": GapText(
        Text("接口", "endpoint"),
        Text("接口做什么（入参与返回）", "what it does (input and result)"),
        Text("分页查询 / 保存 / 状态变更", "paged query / save / change of status"),
    ),
}
WHICH = Text("要去掉的是哪一个{thing}", "which {thing} to remove")
WHICH_CANDIDATES = Text("说出文案 / 说出位置 / 都去掉", "name its label / name its place / all of them")


def ask_for_gap(gap: Gap, is_english: bool) -> str:
    """What to ask for, in one phrase."""
    text = GAPS[gap.key]
    return WHICH.of(is_english).format(thing=text.thing.of(is_english)) if gap.deleting else text.ask.of(is_english)


def candidates_of(gap: Gap, is_english: bool) -> str:
    """Two or three answers to choose from, the recommended one first."""
    return (WHICH_CANDIDATES if gap.deleting else GAPS[gap.key].candidates).of(is_english)


def open_dimensions(triage: Triage, is_english: bool, *statuses: str) -> str:
    """The names of the dimensions that have one of the statuses."""
    names = [DIMENSIONS[key].of(is_english) for status in statuses for key in triage.having(status)]
    return (", " if is_english else "、").join(names)
