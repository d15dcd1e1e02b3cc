"""Charts of the measurements, as SVG. Needs matplotlib (the extra `benchmark`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.large import Point, slope

NAMES = {
    "row": "row privacy", "row_copy": "row privacy, prepared",
    "copy": "user, prepared (copy)", "in_place": "user, prepared in place",
    "unprepared": "user, unprepared", "raw": "plain DuckDB", "prepare": "dpsql prepare",
    "raw users": "plain DuckDB, COUNT DISTINCT", "copy users": "user, prepared, COUNT DISTINCT", "dpsql": "dpsql",
}  # fmt: skip
COLOURS = {
    "row": "#1f77b4", "row_copy": "#aec7e8", "copy": "#2ca02c", "in_place": "#98df8a", "unprepared": "#d62728", "raw": "#7f7f7f",
    "prepare": "#9467bd", "raw users": "#bcbd22", "copy users": "#17becf", "dpsql": "#1f77b4", "smartnoise": "#ff7f0e",
    "opendp": "#2ca02c", "pipelinedp": "#9467bd", "qrlew": "#8c564b", "diffprivlib": "#e377c2",
}  # fmt: skip
TARGET = 1.3


def draw_workload(timings: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw bars of the ratio to plain DuckDB at the largest size, one group of bars per query (logarithmic)."""
    most = max(one["rows"] for one in timings)
    shown = [one for one in timings if one["rows"] == most and not one["refused"]]
    questions = list(dict.fromkeys(one["question"] for one in shown))
    ways = list(dict.fromkeys(one["way"] for one in shown))
    figure, axes = _figure(9, 4.2)
    width = 0.8 / len(ways)
    for at, way in enumerate(ways):
        of_way = {one["question"]: one["ratio"] for one in shown if one["way"] == way}
        places = [spot - 0.4 + width * (at + 0.5) for spot, name in enumerate(questions) if name in of_way]
        ratios = [of_way[name] for name in questions if name in of_way]
        bars = axes.bar(places, ratios, width * 0.92, label=NAMES[way], color=COLOURS[way])
        axes.bar_label(
            bars, [f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}" for ratio in ratios], fontsize=7, padding=1
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_xticks(range(len(questions)), questions)
    axes.set_ylabel("time as a multiple of plain DuckDB")
    axes.set_title(f"The workload at {most:,} rows (dotted: {TARGET})")
    axes.legend(fontsize=8, loc="upper right")
    axes.margins(y=0.15)
    _save(figure, path)


def draw_growth(points: Sequence[Point], path: Path) -> None:
    """Draw milliseconds against rows, groups and units, both logarithmic; the legend states the exponent of each curve."""
    axes_names = [axis for axis in ("rows", "groups", "units") if any(point.axis == axis for point in points)]
    figure, panels = _figure(4.6 * len(axes_names), 4.4, len(axes_names))
    for panel, axis in zip(panels if len(axes_names) > 1 else [panels], axes_names, strict=True):
        of_axis = [point for point in points if point.axis == axis]
        for way in dict.fromkeys(point.way for point in of_axis):
            curve = sorted((point for point in of_axis if point.way == way), key=lambda point: point.x)
            label = f"{NAMES[way]} (x^{slope(curve):.2f})"
            panel.plot([p.x for p in curve], [p.median for p in curve], "o-", ms=4, color=COLOURS[way], label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel({"units": "users"}.get(axis, axis))
        panel.set_ylabel("milliseconds")
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=7)
    _save(figure, path)


def draw_peers(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw time against error of every query and system, both logarithmic, one panel per privacy unit: low and left is good."""
    levels = list(dict.fromkeys(one["level"] for one in records))
    figure, panels = _figure(5.2 * len(levels), 4.6, len(levels))
    for panel, level in zip(panels if len(levels) > 1 else [panels], levels, strict=True):
        shown = [one for one in records if one["level"] == level and one.get("errors")]
        for system in dict.fromkeys(one["system"] for one in shown):
            own = [one for one in shown if one["system"] == system]
            x, y = [max(*one["errors"], 1e-7) for one in own], [one["median"] for one in own]
            panel.scatter(x, y, s=28, label=system, color=COLOURS.get(system))
            for one, across, up in zip(own, x, y, strict=True):
                panel.annotate(one["question"], (across, up), fontsize=6, xytext=(3, 3), textcoords="offset points")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("median relative error (the worst column)")
        panel.set_ylabel("milliseconds")
        panel.set_title(f"privacy unit: {level}")
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=8)
    _save(figure, path)


def draw_errors(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw dpsql's median error relative to each other system's, with its interval; one panel per case, left of 1 is good."""
    compared = [one for one in records if one["ratio"]]
    cases = list(dict.fromkeys(one["case"] for one in compared))
    across = 2
    figure, panels = _figure(6.2 * across, 2.9 * -(-len(cases) // across), across, -(-len(cases) // across))
    flat = list(panels.flat) if hasattr(panels, "flat") else [panels]
    for panel, case in zip(flat, cases, strict=False):
        own = [one for one in compared if one["case"] == case]
        columns = list(dict.fromkeys(f"{one['question']} {one['column']}" for one in own))
        systems = list(dict.fromkeys(one["system"] for one in own))
        for at, system in enumerate(systems):
            shown = [one for one in own if one["system"] == system]
            y = [columns.index(f"{o['question']} {o['column']}") + 0.16 * (at - (len(systems) - 1) / 2) for o in shown]
            middle, low, high = ([max(one["ratio"][part], 1e-3) for one in shown] for part in range(3))
            panel.hlines(y, low, high, color=COLOURS.get(system), linewidth=1.2)
            panel.scatter(middle, y, s=14, label=system, color=COLOURS.get(system))
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_yticks(range(len(columns)), columns, fontsize=7)
        panel.invert_yaxis()
        panel.set_xlabel("dpsql's error / the other's; left of 1 dpsql is better", fontsize=8)
        panel.set_title(f"privacy unit {case}", fontsize=9)
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(fontsize=6)
    for panel in flat[len(cases) :]:
        panel.set_axis_off()
    _save(figure, path)


def _figure(width: float, height: float, panels: int = 1, rows: int = 1) -> Any:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dpsql"  # equal numbers give equal files
    import matplotlib.pyplot as plt

    return plt.subplots(rows, panels, figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
