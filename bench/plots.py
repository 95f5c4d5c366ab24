"""Plots of the proofs: both arms over time, one figure each, as PNG."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.arm import Arm
from bench.experience import due, ttfts
from bench.generator import percentile

COLOURS = ("#9a9a9a", "#1f6fb4", "#d1495b", "#3a7d44")
"""Of the arms: without the rule in grey, with it in colour."""
WIDTH_IN, PANEL_IN, DPI = 8.0, 2.1, 110

Line = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity over time, a line for each arm."""

    title: str
    line: Callable[[Arm], Line]
    arms: Sequence[Arm]
    mark: float | None = None
    """A line across: a target or a limit."""
    log: bool = False


def draw(path: Path, panels: Sequence[Panel], *, seconds: float, shaded: tuple[float, float] | None = None) -> None:
    """Write one figure; what was disturbed is shaded."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(panels), figsize=(WIDTH_IN, PANEL_IN * len(panels) + 0.5), sharex=True, squeeze=False)
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        for arm, colour in zip(panel.arms, COLOURS, strict=False):
            points = panel.line(arm)
            axis.plot([at for at, _ in points], [value for _, value in points], color=colour, label=arm.name, linewidth=1.4)
        if panel.mark is not None:
            axis.axhline(panel.mark, color="black", linewidth=0.7, linestyle="--")
        if shaded:
            axis.axvspan(*shaded, color="#f2e3c2", alpha=0.6, linewidth=0)
        axis.set_yscale("log" if panel.log else "linear")
        axis.set_title(panel.title, fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.yaxis.set_major_formatter("{x:g}")
    axes[-1, 0].set_xlim(0, seconds)
    axes[-1, 0].set_xlabel("seconds", fontsize=8)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, fontsize=8, frameon=False, loc="upper right", ncols=len(names))
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    plt.close(figure)


def ttft_p95_s(seconds: float) -> Callable[[Arm], Line]:
    """p95 of the time to the first token, of those who came in each second; a second without any is left out."""

    def line(arm: Arm) -> Line:
        times = [(second, ttfts(due(arm.report.calls, second, second + 1))) for second in range(math.ceil(seconds))]
        found = [(second + 0.5, percentile(of, 0.95)) for second, of in times if of]
        return [(at, value) for at, value in found if math.isfinite(value)]

    return line


def per_second(moments: Callable[[Arm], list[float]], seconds: float) -> Callable[[Arm], Line]:
    """How many of these moments fall into each second."""

    def line(arm: Arm) -> Line:
        of = [math.floor(moment) for moment in moments(arm)]
        return [(second + 0.5, of.count(second)) for second in range(math.ceil(seconds))]

    return line
