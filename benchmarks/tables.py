"""Results of each part as Markdown tables."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.coverage import surely
from benchmarks.coverage_questions import COMBINATIONS
from benchmarks.errors import answers_nothing
from benchmarks.large import Point, slope
from benchmarks.order_statistics import ORDER

TITLES = {
    "row": "row", "row_copy": "row, prepared",
    "unprepared": "user, unprepared", "copy": "user, prepared: copy", "in_place": "user, prepared: in place",
}  # fmt: skip


LEAST_COVERED = 0.94
"""Least share of 95 % bars that must hold: the nominal share minus one percentage point."""


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with numeric columns aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def workload(found: Mapping[str, Any]) -> str:
    """Return one table per size: milliseconds of plain DuckDB, then of each way with its ratio; then the cost of preparing."""
    parts = ["Milliseconds are medians; a ratio is the median of dpsql / plain DuckDB within each round."]
    timings = found["timings"]
    for rows in dict.fromkeys(one["rows"] for one in timings):
        of_size = [one for one in timings if one["rows"] == rows]
        ways = list(dict.fromkeys(one["way"] for one in of_size))
        head = [f"{rows:,} rows", "plain", *(TITLES[way] for way in ways)]
        parts.append(grid(head, [_line(of_size, name, ways) for name in dict.fromkeys(o["question"] for o in of_size)]))
    if found["prepared"]:
        parts.append(_prepared(found["prepared"]))
    return "\n\n".join(parts)


def _line(timings: Sequence[Mapping[str, Any]], question: str, ways: Sequence[str]) -> list[str]:
    own = {one["way"]: one for one in timings if one["question"] == question}
    first = next(iter(own.values()))
    raws = dict.fromkeys(f"{one['raw']:.1f}" for one in own.values() if not one["refused"])
    plain = " / ".join(list(raws)[:: max(1, len(raws) - 1)]) if raws else ""
    return [f"{question} {first['title']}", plain, *(_cell(own.get(way)) for way in ways)]


def _cell(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    return f"not answered ({one['refused']})" if one["refused"] else f"{one['median']:.1f} ({one['ratio']:.2f})"


def _prepared(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"{one['rows']:,}", TITLES[one["way"]], one["state"], f"{one['milliseconds'] / 1000:.1f}"] for one in found
    ]
    return grid(["preparing: rows", "way", "made", "seconds"], rows)


def limits(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the ladder: each step relative to SUM(x), over all rows and by region, in wall and processor time."""
    head = [f"{found[0]['rows']:,} rows", "does", "ms", "to SUM(x)", "processor", "by 50 regions", "processor"]
    rows = [
        [one["name"].replace("|", "\\|"), one["does"], f"{one['median']:.1f}"]
        + [f"{one[name]:.2f}" for name in ("ratio", "cpu", "grouped", "grouped_cpu")]
        for one in found
    ]
    return grid(head, rows)


def fixed(found: Sequence[Mapping[str, Any]]) -> str:
    """Return whole queries compared with plain DuckDB and the targets, then the time of each step."""
    rows = [
        [one["way"], *(f"{one[name]:.2f}" for name in ("raw", "median", "over")), f"{one['target']:.0f}",
         f"{one['raw_cpu']:.2f}", f"{one['cpu']:.2f}"]
        for one in found
    ]  # fmt: skip
    head = ["1,000 rows, ms", "plain", "dpsql", "above plain", "target", "plain, processor", "dpsql, processor"]
    labels = list(dict.fromkeys(label for one in found for label in one["steps"] if label != "total"))
    steps = [[label, *(_number(one["steps"].get(label)) for one in found)] for label in labels]
    steps.append(["**total**", *(_number(one["steps"]["total"]) for one in found)])
    return grid(head, rows) + "\n\n" + grid(["step, ms", *(one["way"] for one in found)], steps)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def wide(found: Sequence[Mapping[str, Any]]) -> str:
    """Return milliseconds, the ratio to plain DuckDB, processor time and the process's peak memory."""
    rows = [
        [f"{one['question']} keys to {one['sink']}", one["way"], f"{one['groups']:,}", f"{one['median']:.0f}",
         f"{one['ratio']:.2f}", f"{one['cpu']:.0f}", f"{one['peak']:.0f}"]
        for one in found
    ]  # fmt: skip
    return grid(["answer", "way", "groups", "ms", "ratio", "processor ms", "peak MB"], rows)


def large(found: Mapping[str, Any]) -> str:
    """Return the tables of the out-of-core workload."""
    facts = (
        f"{found['rows']:,} rows, {found['file_gb']:.2f} GB of Parquet, memory limit of the engine {found['memory']}, "
    )
    facts += f"peak of the whole process (four engines) {found['peak_mb']:,.0f} MB."
    return facts + "\n\n" + workload(found)


def growth(found: Sequence[Mapping[str, Any]]) -> str:
    """Return one table per axis, with the exponent of the last three points below."""
    points = [Point(**one) for one in found]
    parts = []
    for axis in dict.fromkeys(point.axis for point in points):
        own = [point for point in points if point.axis == axis]
        ways = list(dict.fromkeys(point.way for point in own))
        rows = []
        for x in sorted({point.x for point in own}):
            at = {point.way: point.median for point in own if point.x == x}
            rows.append([f"{x:,}", *(f"{at[way]:.1f}" if way in at else "" for way in ways)])
        rows.append(["exponent", *(f"{slope([p for p in own if p.way == way]):.2f}" for way in ways)])
        parts.append(grid([f"{axis}, ms", *ways], rows))
    return "\n\n".join(parts)


def clients(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of queries per second."""
    rows = [
        [one["way"], str(one["clients"]), f"{one['per_second']:.1f}", f"{one['share']:.2f}", f"{one['cpu']:.1f}"]
        for one in found
    ]
    return grid(["way", "clients", "questions a second", "share of plain", "processor ms a question"], rows)


def cold(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the times of new processes, then the slowest imports of each."""
    rows = [[one["command"], f"{one['median']:.0f}", f"{one['least']:.0f}", _target(one["target"])] for one in found]
    parts = [grid(["command, ms", "median", "least", "target"], rows)]
    for one in found:
        if one["imports"]:
            told = ", ".join(f"{name} {milliseconds:.0f}" for name, milliseconds in one["imports"])
            whole = f"Imports of `{one['command']}`, own milliseconds (with the importer's own clock on): {told}."
            parts.append(textwrap.fill(whole, 100, break_long_words=False, break_on_hyphens=False))
    return "\n\n".join(parts)


def exports(found: Sequence[Mapping[str, Any]]) -> str:
    """Return wall and processor milliseconds next to plain DuckDB's, with their ratios."""
    rows = [
        [f"{one['case']}, {one['how']}", f"{one['rows']:,}"]
        + [f"{one[name]:.0f}" for name in ("raw", "median", "raw_cpu", "cpu")]
        + [f"{one[name]:.2f}" for name in ("ratio", "cpu_ratio")]
        for one in found
    ]
    head = ["columns, ms", "rows", "as they are", "randomised", "processor", "processor", "ratio", "of processor time"]
    return grid(head, rows)


def unprepared(found: Sequence[Mapping[str, Any]]) -> str:
    """Return processor times of first and later questions as multiples of plain DuckDB's."""
    head = [
        "source",
        "rows per person",
        "keys",
        "`max_rows`",
        "asked",
        "of people with more",
        "plain, ms",
        "first",
        "later",
    ]
    rows = [
        [
            *(
                one["source"],
                one["people"],
                one["key"],
                f"{one['most']:,}",
                one["asked"],
                f"{100 * one['share']:.0f} %",
            ),
            *(f"{one['plain']:.0f}", *(f"{one[name] / one['plain']:.1f}" for name in ("first", "later"))),
        ]
        for one in found
    ]
    return grid(head, rows)


def tpch_times(found: Sequence[Mapping[str, Any]]) -> str:
    """Return processor times of five questions of TPC-H as multiples of plain DuckDB's, beside published ones."""
    ways = ("prepared", "later", "first")
    rows = []
    for cell in found:
        times = (f"{cell[way] / cell['plain']:.2f}" for way in ways)
        rows.append([cell["question"], f"{cell['plain']:.0f}", *times, f"{cell['published']:.2f}"])
    head = ["question", "plain, ms", "prepared", "later, not prepared", "first, not prepared", "DP-Bounded, published"]
    return grid(head, rows)


def _target(target: float) -> str:
    return f"{target:.0f}" if target else ""


def peers(found: Sequence[Mapping[str, Any]]) -> str:
    """Return one table of times per privacy unit, and the reasons for missing measurements."""
    parts = []
    for level in dict.fromkeys(one["level"] for one in found):
        own = [one for one in found if one["level"] == level]
        systems = list(dict.fromkeys(one["system"] for one in own))
        parts.append(f"Privacy unit {level}, milliseconds (median):")
        parts.append(_by_system(own, systems, lambda one: f"{one['median']:.0f}"))
    problems = dict.fromkeys(
        f"- {one['system']}, privacy unit {one['level']} {one['question']}: {one['problem']}"
        for one in found if "problem" in one
    )  # fmt: skip
    return "\n\n".join([*parts, *(["Not measured:\n\n" + "\n".join(problems)] if problems else [])])


def _by_system(
    found: Sequence[Mapping[str, Any]], systems: Sequence[str], show: Callable[[Mapping[str, Any]], str]
) -> str:
    rows = []
    for question in dict.fromkeys(one["question"] for one in found if one["question"]):
        own = {one["system"]: one for one in found if one["question"] == question}
        cells = [show(own[s]) if s in own and "problem" not in own[s] else "-" for s in systems]
        rows.append([f"{question} {next(iter(own.values()))['title']}", *cells])
    return grid(["question", *systems], rows)


def errors(found: Sequence[Mapping[str, Any]]) -> str:
    """Return for each case a table of errors against the exact answer, and one against the answer expected after bounding, where
    it differs."""
    parts = [_verdict([one for one in found if one["ratio"]])]
    for case in dict.fromkeys(one["case"] for one in found):
        own = [one for one in found if one["case"] == case and one["question"]]
        parts.append(f"**Privacy unit {case}**, error to the answer over all rows:")
        parts.append(_by_column(own, "error", "ratio"))
        if case.startswith("user") and ORDER not in case:  # no one has more rows than the bound there
            parts.append(f"Privacy unit {case}, error to what is expected after bounding (noise alone):")
            parts.append(_by_column(own, "noise", "noise_ratio"))
    notes = dict.fromkeys(f"- {one['system']} {one['question']}: {one['note']}" for one in found if one["note"])
    missing = dict.fromkeys(
        f"- {one['system']}, privacy unit {one['case']} {one['question']}: {one['problem']}"
        for one in found if one["problem"]
    )  # fmt: skip
    for title, lines in (("Not what was asked:", notes), ("Not measured:", missing)):
        if lines:
            parts.append(title + "\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _verdict(compared: Sequence[Mapping[str, Any]]) -> str:
    """Return how many comparisons with other systems dpsql wins and loses. Systems that answer another query, or nothing, are
    listed separately."""
    compared = [one for one in compared if not one["system"].startswith("dpsql")]
    nothing = [one for one in compared if answers_nothing(one)]
    other = [one for one in compared if one["note"] and not answers_nothing(one)]
    answered = [one for one in compared if not (one["note"] or answers_nothing(one))]
    below = sum(one["ratio"][2] < 1 for one in answered)
    above = [one for one in answered if one["ratio"][1] > 1]
    told = "; ".join(f"{o['case']} {o['question']} {o['column']} beside {o['system']}" for o in above)
    apart = f" In {len(nothing)} more the other answers nothing (zeros, or groups not shown)." if nothing else ""
    apart += f" In {len(other)} more it does not do what it was asked to (see below)." if other else ""
    return (
        f"{len(answered)} comparisons: dpsql's error is below the other's beyond chance in {below}, above it in "
        f"{len(above)}{f' ({told})' if told else ''}, and in the others the interval holds 1.{apart}"
    )


def _by_column(found: Sequence[Mapping[str, Any]], error: str, ratio: str) -> str:
    systems = list(dict.fromkeys(one["system"] for one in found))
    rows = []
    for question, column in dict.fromkeys((one["question"], one["column"]) for one in found):
        own = {one["system"]: one for one in found if (one["question"], one["column"]) == (question, column)}
        rows.append([f"{question} {column}", *(_compared(own.get(system), error, ratio) for system in systems)])
    return grid(["column", *systems], rows)


def _compared(one: Mapping[str, Any] | None, error: str, ratio: str) -> str:
    if one is None or one["problem"]:
        return "-"
    told = f"{one[error] * 100:.3g} %"
    if not one[ratio]:
        return told
    middle, low, high = one[ratio]
    return f"{told}; {'**' if low > 1 else ''}{middle:.2g}{'**' if low > 1 else ''} [{low:.2g}, {high:.2g}]"


def accuracy(found: Mapping[str, Any]) -> str:
    """Return AVG and VAR next to their composition by hand, and SUM over users with a heavy tail under several bounds."""
    rows = [
        [one["aggregate"], f"{one['own']:.4g}", f"{one['naive']:.4g}", f"{one['own'] / one['naive']:.2f}"]
        for one in found["composition"]
    ]
    tails = [[one["bound"], f"{one['error'] * 100:.2f} %", f"{one['bias'] * 100:+.2f} %"] for one in found["heavy"]]
    return (
        grid(["by 50 regions", "median error", "by hand from SUM and COUNT", "ratio"], rows)
        + "\n\n"
        + grid(["heavy tails: SUM by 50 regions", "median relative error", "bias"], tails)
    )


def coverage(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how often bars contain the exact answer, in a table per setting."""
    settings = dict.fromkeys(one["setting"] for one in found)
    return "\n\n".join(_covered(setting, [one for one in found if one["setting"] == setting]) for setting in settings)


def combinations(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how often 95 % bars hold in every combination: a row for each, a column for each class with its 99 % Clopper-Pearson
    interval, in bold if it is below the required share; then the combinations that did not run."""
    classes = list(dict.fromkeys(one["question"] for one in found))
    measured: dict[str, dict[str, Mapping[str, Any]]] = {}
    for one in found:
        measured.setdefault(_combination(one["facts"]), {})[one["question"]] = one
    rows = [[head, *(_surely(own.get(name)) for name in classes)] for head, own in measured.items()]
    missing = [head for setting in COMBINATIONS if (head := _combination(setting.facts)) not in measured]
    table = grid(["unit, accountant, keys, epsilon, groups", *classes], rows)
    lines = "\n".join(f"- {head}" for head in missing)
    return f"{table}\n\nNot run:\n\n{lines}" if missing else table


def _combination(facts: Mapping[str, Any]) -> str:
    unit, keys = "person" if facts["entity"] else "row", "private" if facts["private"] else "public"
    head = f"{unit}, {facts['accountant']}, {keys} keys, epsilon {facts['epsilon']:g}"
    return f"{head}, {facts['groups']:,} of {facts['rows']:,} rows"


def _surely(one: Mapping[str, Any] | None) -> str:
    """Return the share of 95 % bars that hold, its interval, and the number of bars."""
    if one is None or not one["bars"]:
        return "nothing shown"
    share = one["shares"][1]
    low, high = surely(round(share * one["bars"]), one["bars"])
    few = "**" if high < LEAST_COVERED else ""
    return f"{few}{share:.3f}{few} [{low:.3f}, {high:.3f}] of {one['bars']:,}"


def estimates(found: Sequence[Mapping[str, Any]]) -> str:
    """Return mean squared errors of estimates relative to those of plain formulas, and the biases of both."""
    squares = _by_rows(found, lambda cell: f"**{(cell['estimate'] / cell['plain']) ** 2:.2f}** of {cell['plain']:.3g}")
    biased = [cell for cell in found if cell["aggregate"] in ("AVG", "VAR_SAMP", "CORR")]
    biases = _by_rows(biased, lambda cell: f"{cell['plain_bias']:+.2g}, {cell['bias']:+.2g}")
    return f"{squares}\n\nBias of the plain formula, and of the estimate:\n\n{biases}"


def tpch(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the relative errors of dpsql and R2T for each question, and how many times smaller the first is."""
    rows = [
        [
            cell["question"], cell["unit"], f"{cell['exact']:,.0f}", f"{cell['dpsql']:.2g} %", f"{cell['published']:.3g} %",
            f"{cell['published'] / cell['dpsql']:.2g}",
        ]
        for cell in found
    ]  # fmt: skip
    return grid(["question", "unit", "exact answer", "error of dpsql", "published for R2T", "R2T / dpsql"], rows)


def quantiles(found: Sequence[Mapping[str, Any]]) -> str:
    """Return mean rank errors of each set of quantiles with their standard deviations, and those of the worst quantile of a set;
    a column for each way."""
    ways = sorted({cell["way"] for cell in found}, key=("together", "apart", "OpenDP").index)
    cells = {(cell["quantiles"], cell["epsilon"], cell["rows"], cell["way"]): cell for cell in found}

    def text(cell: Mapping[str, Any] | None) -> str:
        return "-" if cell is None else f"{cell['mean']:.3g} +- {cell['deviation']:.1g}; {cell['largest']:.3g}"

    rows = [
        [name, f"{epsilon:g}", f"{size:,}", *(text(cells.get((name, epsilon, size, way))) for way in ways)]
        for name, epsilon, size in dict.fromkeys(setting[:3] for setting in cells)
    ]
    return grid(["quantiles", "epsilon", "n", *ways], rows)


def _by_rows(found: Sequence[Mapping[str, Any]], text: Callable[[Mapping[str, Any]], str]) -> str:
    """Return a row for each aggregate, accountant and epsilon, with a column for each number of rows."""
    sizes = tuple(dict.fromkeys(cell["rows"] for cell in found))
    cells = {(cell["aggregate"], cell["accountant"], cell["epsilon"], cell["rows"]): cell for cell in found}
    lines = [
        f"| aggregate | accountant | epsilon | {' | '.join(f'n = {size:,}' for size in sizes)} |",
        "| --- " * (3 + len(sizes)) + "|",
    ]
    for name, accountant, epsilon in sorted({setting[:3] for setting in cells}):
        parts = (cells[name, accountant, epsilon, size] for size in sizes)
        texts = " | ".join(text(cell) if cell["numbers"] else "-" for cell in parts)
        lines.append(f"| {name} | {accountant} | {epsilon:g} | {texts} |")
    return "\n".join(lines)


def _covered(setting: str, found: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"**{setting}**",
        "",
        "| output | 50 % bars | 95 % bars | +- | 99 % bars | unknown | bars | remark |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        half, most, nearly_all = one["shares"]
        told = f"{half:.2f} | {most:.3f} | {2 * one['error']:.3f} | {nearly_all:.3f} | {one['unknown']:.2f}"
        lines.append(f"| {one['question']} | {told} | {one['bars']:,} | {_remark(one)} |")
    return "\n".join(lines)


def _remark(row: Mapping[str, Any]) -> str:
    """Return a remark with the reason if too few bars hold, or more than .99 of the 95 % bars that carry information."""
    half, most, nearly_all = row["shares"]
    few = [word for word, share, least in (("50 %", half, 0.49), ("95 %", most, 0.94), ("99 %", nearly_all, 0.98))
           if share < least]  # fmt: skip
    if few:
        return f"**too few: {', '.join(few)}**{row['narrow'] and ': '}{row['narrow']}"
    if row["unknown"] > 0.9:
        return "no information"
    informed = (most - row["unknown"]) / (1 - row["unknown"])  # unknown bars always hold
    return f"wide: {row['wide'] or 'not explained'}" if informed > 0.99 else ""
