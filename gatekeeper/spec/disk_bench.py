"""What the disk and the process cost: loading a library, and one turn of the hook."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from json import dumps

from gatekeeper.spec.bench import Row, synthetic_library
from gatekeeper.spec.files import SETTLED_NS
from gatekeeper.spec.library import Library
from gatekeeper.spec.markdown import render_template
from gatekeeper.spec.settings import SpecSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

N_FILES = 300
N_ROUNDS = 15
HOOK = "from gatekeeper.spec.hook import run; run()"


def disk_rows() -> list[Row]:
    """Cold loads of 300 files and the hook's process, each the best of some rounds, against their targets."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SpecSettings(storage_home=os.path.join(folder, "spec"))
        _fill(os.path.join(folder, "spec"))
        read = _best_ms(lambda: _forget(folder), lambda: _load(folder, settings))
        compiled = _best_ms(lambda: None, lambda: _load(folder, settings))
        library = Library(folder, settings=settings)
        library.load()
        checked = _best_ms(lambda: None, library.load)
        library.close()
        bare, hook = _hook_ms(folder)
    return [
        Row(f"cold load of {N_FILES} files, compiled", f"{compiled:.1f} ms", "<= 10 ms", compiled <= 10),
        Row(f"cold load of {N_FILES} files, read", f"{read:.1f} ms", "<= 60 ms", read <= 60),
        Row(f"seeing that none of {N_FILES} files changed", f"{checked:.2f} ms", "", True),
        Row("hook process over bare Python", f"{hook - bare:.0f} ms", "<= 60 ms", hook - bare <= 60),
    ]


def _fill(root: str) -> None:
    """A global library whose files are old enough for their signatures to be trusted."""
    folder = os.path.join(root, "global", "templates")
    os.makedirs(folder)
    then = time.time_ns() - 2 * SETTLED_NS
    for template in synthetic_library(N_FILES):
        path = os.path.join(folder, f"{template.id}.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(render_template(template))
        os.utime(path, ns=(then, then))
    os.utime(folder, ns=(then, then))


def _load(folder: str, settings: SpecSettings) -> Library:
    library = Library(folder, settings=settings)
    if len(library.load().templates) != N_FILES:
        raise RuntimeError(f"{library.load().problems[:1]}")
    return library


def _forget(folder: str) -> None:
    state = os.path.join(folder, "spec", ".state")
    for name in os.listdir(state) if os.path.isdir(state) else ():
        os.unlink(os.path.join(state, name))


def _best_ms(prepare: Callable[[], object], run: Callable[[], Library | object]) -> float:
    times = []
    for _ in range(N_ROUNDS):
        prepare()
        start = time.perf_counter()
        opened = run()
        times.append(time.perf_counter() - start)
        if isinstance(opened, Library):
            opened.close()
    return min(times) * 1000


def _hook_ms(folder: str) -> tuple[float, float]:
    """The best time of a bare interpreter, and of one that answers for a turn."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "cwd": folder, "prompt": "登录页加个按钮"}
    environment = {**os.environ, "GATEKEEPER_HOME": os.path.join(folder, "home"),
                   "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}  # fmt: skip
    bare: list[float] = []
    hook: list[float] = []
    for turn in range(N_ROUNDS):
        data = dumps({**event, "prompt_id": str(turn)}).encode()
        for code, times in (("pass", bare), (HOOK, hook)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], input=data, env=environment, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
    return min(bare) * 1000, min(hook) * 1000
