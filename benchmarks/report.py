"""Reports of the measurements: a JSON file for each part, one Markdown page and charts of all parts, and the tables of the
docs."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import tables
from benchmarks.large import Point

CHARTS = {
    "workload": "performance-workload.svg", "growth": "performance-growth.svg", "peers": "performance-peers.svg",
    "errors": "performance-errors.svg",
}  # fmt: skip
PARTS: dict[str, Callable[[Any], str]] = {
    "workload": tables.workload,
    "limits": tables.limits,
    "fixed": tables.fixed,
    "wide": tables.wide,
    "large": tables.large,
    "growth": tables.growth,
    "clients": tables.clients,
    "unprepared": tables.unprepared,
    "tpch_times": tables.tpch_times,
    "cold": tables.cold,
    "exports": tables.exports,
    "peers": tables.peers,
    "errors": tables.errors,
    "ranks": tables.errors,
    "accuracy": tables.accuracy,
    "coverage": tables.coverage,
    "combinations": tables.combinations,
    "estimates": tables.estimates,
    "quantiles": tables.quantiles,
    "tpch": tables.tpch,
}
"""Part -> its tables as Markdown."""
OF_ACCURACY = frozenset({"coverage", "combinations", "estimates", "quantiles", "ranks", "tpch"})
"""Parts shown in docs/evidence/accuracy.md; all others are shown in docs/evidence/performance.md."""


def machine() -> dict[str, str]:
    """Return the properties of the machine on which the numbers depend besides the code."""
    packages = {name: version(name) for name in ("duckdb", "sqlglot", "numpy", "pyarrow", "sqlalchemy")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {"cores": str(os.cpu_count()), "memory": f"{memory:.0f} GB", "machine": platform.machine()}
    return facts | {"python": platform.python_version()} | packages


def write(out: Path, part: str, command: str, load: tuple[float, float] | None, found: Any) -> Path:
    """Write `PART.json` to the folder `out`. `load`: runnable processes before and after, None if not recorded."""
    out.mkdir(parents=True, exist_ok=True)
    whole = {"part": part, "command": command, "machine": machine(), "load": load, "found": found}
    path = out / f"{part}.json"
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(out: Path) -> dict[str, dict[str, Any]]:
    """Return all measured parts in the order of `PARTS`."""
    return {part: json.loads(path.read_text()) for part in PARTS if (path := out / f"{part}.json").exists()}


def render(out: Path) -> list[Path]:
    """Write `results.md` and the charts from all JSON files in `out`; charts only if matplotlib is installed."""
    parts = read(out)
    page = out / "results.md"
    page.write_text(
        "\n\n".join(f"## {part}\n\n{section(whole)}" for part, whole in parts.items()) + "\n", encoding="utf-8"
    )
    return [page, *charts(parts, out)]


def section(whole: Mapping[str, Any]) -> str:
    """Return the command, the machine and the tables of one part."""
    facts = ", ".join(f"{name} {value}" for name, value in whole["machine"].items())
    load = "load not recorded"
    if whole["load"] is not None:
        before, after = whole["load"]
        load = f"load {before:.1f} before and {after:.1f} after"
    measured = fill(f"Measured with {facts}; {load}.", 100)
    return f"```sh\n{whole['command']}\n```\n\n{measured}\n\n{PARTS[whole['part']](whole['found'])}"


def charts(parts: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw charts of the parts that have one."""
    if find_spec("matplotlib") is None:
        return []
    from benchmarks import chart

    found = []
    for part, name in CHARTS.items():
        if part not in parts:
            continue
        measured = parts[part]["found"]
        if part == "workload":
            chart.draw_workload(measured["timings"], folder / name)
        elif part == "growth":
            chart.draw_growth([Point(**point) for point in measured], folder / name)
        elif part == "errors":
            chart.draw_errors(measured, folder / name)
        else:
            chart.draw_peers(measured, folder / name)
        found.append(folder / name)
    return found


def rewrite_docs(out: Path, page: Path) -> list[Path]:
    """Put the tables of all parts in `out` into the page, between `<!-- PART -->` and `<!-- end of PART -->`."""
    parts = read(out)
    accurate = {part: whole for part, whole in parts.items() if part in OF_ACCURACY}
    rest = {part: whole for part, whole in parts.items() if part not in accurate}
    accuracy = page.with_name("accuracy.md")
    for place, some in ((page, rest), (accuracy, accurate)):
        _rewrite(place, some)
    return [page, *([accuracy] if accurate else []), *charts(parts, page.parent)]


def _rewrite(page: Path, parts: Mapping[str, Any]) -> None:
    if not parts:
        return
    text = page.read_text(encoding="utf-8")
    for part, whole in parts.items():
        marks = re.compile(rf"(<!-- {part} -->\n).*?(<!-- end of {part} -->)", re.DOTALL)
        body = section(whole)
        text, times = marks.subn(lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}", text)
        if times != 1:
            raise ValueError(f"{page.name} has no place, or several, for {part}")
    page.write_text(text, encoding="utf-8")
