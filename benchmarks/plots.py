"""Charts as SVG, by matplotlib, which is imported only when one is drawn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.results import Chart

OURS = "gatekeeper"
MARKERS = "osD^vPX*"


def draw_all(charts: list[Chart], folder: Path) -> None:
    """Draw every chart, or say that they stay as they are."""
    if find_spec("matplotlib") is None:
        print("matplotlib is not installed: the charts stay as they are")
        return
    for chart in charts:
        draw(chart, folder)


def draw(chart: Chart, folder: Path) -> Path:
    """Write one chart as folder/<name>.svg and return the path. The same numbers give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gatekeeper", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    for i, (name, points) in enumerate(sorted(chart.series.items(), key=lambda line: line[0] != OURS)):
        is_ours = name == OURS
        axes.plot(*zip(*points, strict=True), marker=MARKERS[i % len(MARKERS)], markersize=4, label=name,
                  linewidth=2.2 if is_ours else 1.0, color="black" if is_ours else None)
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted({x for points in chart.series.values() for x, _ in points}))
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{chart.name}.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
