"""What was measured, as JSON for machines and as Markdown for `docs/performance.md`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks.fixed_cost import FixedCost
from benchmarks.measure import Timing


def machine() -> dict[str, str]:
    """What the numbers depend on besides the code."""
    packages = {name: version(name) for name in ("duckdb", "sqlglot", "numpy", "pyarrow", "sqlalchemy")}
    return {"cores": str(os.cpu_count()), "machine": platform.machine(), "python": platform.python_version()} | packages


def write(out: Path, command: str, timings: Sequence[Timing], costs: Sequence[FixedCost]) -> tuple[Path, Path]:
    """`results.json` and `results.md` in the folder `out`; returns their paths."""
    out.mkdir(parents=True, exist_ok=True)
    whole = {
        "command": command,
        "machine": machine(),
        "timings": [asdict(timing) for timing in timings],
        "fixed_cost": [asdict(cost) for cost in costs],
    }
    data, text = out / "results.json", out / "results.md"
    data.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    text.write_text(markdown(command, timings, costs), encoding="utf-8")
    return data, text


def markdown(command: str, timings: Sequence[Timing], costs: Sequence[FixedCost]) -> str:
    """The command, the machine, one table for each level and one of the fixed cost."""
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    parts = [
        f"```sh\n{command}\n```",
        f"Measured with {facts}. Milliseconds are medians; a ratio is the median of dpsql / raw.",
    ]
    for level in dict.fromkeys(timing.level for timing in timings):
        parts += [f"### Privacy unit: {level}", _table([timing for timing in timings if timing.level == level])]
    if costs:
        parts += ["### Fixed cost on 1,000 rows, milliseconds", _steps(costs)]
    return "\n\n".join(parts) + "\n"


def _table(timings: Sequence[Timing]) -> str:
    sizes = list(dict.fromkeys(timing.rows for timing in timings))
    head = ["question", *(f"{rows:,} rows: raw, dpsql (ratio)" for rows in sizes)]
    rows = []
    for name in dict.fromkeys(timing.question for timing in timings):
        of_size = {timing.rows: timing for timing in timings if timing.question == name}
        title = next(iter(of_size.values())).title
        rows.append([f"{name} {title}", *(_cell(of_size.get(size)) for size in sizes)])
    return _grid(head, rows)


def _cell(timing: Timing | None) -> str:
    if timing is None:
        return ""
    if timing.refused:
        return f"not answered ({timing.refused})"
    return f"{timing.raw:.1f}, {timing.private:.1f} ({timing.ratio:.2f})"


def _steps(costs: Sequence[FixedCost]) -> str:
    labels = list(dict.fromkeys(label for cost in costs for label in cost.steps if label != "total"))
    rows = [[label, *(f"{cost.steps[label]:.2f}" if label in cost.steps else "" for cost in costs)] for label in labels]
    rows.append(["**total**", *(f"{cost.steps['total']:.2f}" for cost in costs)])
    rows.append(["raw DuckDB", *(f"{cost.raw:.2f}" for cost in costs)])
    return _grid(["step", *(cost.way for cost in costs)], rows)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
