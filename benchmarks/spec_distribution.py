"""Draw the pairwise distribution of the bench library: `python -m benchmarks.spec_distribution` (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path

from gatekeeper.spec.bench import bench_library, bench_requests
from gatekeeper.spec.calibrating import calibrate

PATH = Path(__file__).resolve().parents[1] / "docs" / "img" / "spec_pairwise.svg"
N_BINS = 20


def main() -> None:
    """Write the chart. The same numbers give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gatekeeper", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    found = calibrate(bench_library())
    sixteen, everyday = bench_requests()
    own = [pair.lexical for pair in found.pairs if pair.is_own] + [one.lexical for one in sixteen if one.expected]
    other = [pair.lexical for pair in found.pairs if not pair.is_own]
    unrelated = [one.lexical for one in [*sixteen, *everyday] if not one.expected]
    figure, axes = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
    bins = [i / N_BINS for i in range(N_BINS + 1)]
    axes.hist([own, other, unrelated], bins=bins, label=[
        f"own template ({len(own)})", f"another template ({len(other)})", f"unrelated, its best ({len(unrelated)})"],
        color=["black", "#999999", "#cc3311"])  # fmt: skip
    axes.axvline(found.proposed, color="#0077bb", linestyle="--", linewidth=1, label=f"threshold {found.proposed:g}")
    axes.set(xlabel="lexical score", ylabel="requests", yscale="symlog", ylim=(0, None))
    axes.legend(fontsize=7, frameon=False)
    figure.savefig(PATH, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
