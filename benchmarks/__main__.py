"""The command `python -m benchmarks`. It writes results to the folder of --out and progress to stderr."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks import (
    accuracy,
    audit_peers,
    clients,
    cold,
    compare,
    coverage,
    coverage_questions,
    errors,
    estimates,
    exports,
    fixed_cost,
    large,
    limits,
    measure,
    rank_errors,
    report,
    timing,
    tpch,
    tpch_times,
    unprepared,
    wide,
)
from benchmarks.data import WAYS
from benchmarks.peers.drive import PEERS
from benchmarks.workload import WORKLOAD

SIZES = (1_000, 1_000_000, 10_000_000)
PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "performance.md"


def _say(line: str) -> None:
    click.echo(line, err=True)


def _peers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    names = tuple(value.split(",")) if value else ()
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: known are {', '.join(PEERS)}")
    return names


@click.command()
@click.option("--workload", is_flag=True, help="Q1 to Q8 at every size and in every way [when no part is named]")
@click.option("--limits", "limits_", is_flag=True, help="scale, clamp and cast alone in plain DuckDB: what is possible")
@click.option("--fixed", is_flag=True, help="fixed cost on 1,000 rows, step by step [when no part is named]")
@click.option("--wide", "wide_", is_flag=True, help="a million groups to Arrow, CSV, Parquet; memory")
@click.option("--large", "large_", is_flag=True, help="100 million rows of Parquet under 4 GiB (needs 20 GB of disk)")
@click.option("--growth", is_flag=True, help="growth with rows, groups, units, aggregates and columns")
@click.option("--clients", "clients_", type=click.IntRange(min=1), help="so many clients at once, e.g. 16")
@click.option("--unprepared", "unprepared_", is_flag=True, help="first and later questions over what nobody prepared")
@click.option("--cold", "cold_", is_flag=True, help="cold start of the command line")
@click.option(
    "--exports", "exports_", is_flag=True, help="tables of randomised rows beside Parquet of the rows as they are"
)
@click.option("--peers", callback=_peers, help=f"time beside other systems, with commas: {','.join(PEERS)}")
@click.option("--errors", "errors_", callback=_peers, help="the error beside them, which a busy machine may measure")
@click.option(
    "--audit",
    "audit_",
    callback=_peers,
    help="audit them from outside, and dpsql: samples over databases of neighbours",
)
@click.option(
    "--gate", is_flag=True, help="--errors: exit with 1 where another system's error is smaller, measured twice"
)
@click.option(
    "--case", "case_", multiple=True, help="--errors: cases with these words in their name; may be repeated [all]"
)
@click.option("--seconds", default=errors.SECONDS, show_default=True, help="--errors: for each question and system")
@click.option("--accuracy", "accuracy_", is_flag=True, help="AVG and VAR beside the composition by hand; heavy tails")
@click.option(
    "--coverage", "coverage_", is_flag=True, help="how often error bars hold the exact answer, for every class"
)
@click.option(
    "--combinations",
    "combinations_",
    is_flag=True,
    help="the same for COUNT, SUM, AVG, VAR in every combination of settings",
)
@click.option(
    "--estimates", "estimates_", is_flag=True, help="the error of AVG, VAR, CORR ... beside that of plain ratios"
)
@click.option(
    "--quantiles", "quantiles_", is_flag=True, help="rows between released and exact quantiles; beside OpenDP"
)
@click.option("--tpch", "tpch_", is_flag=True, help="the six TPC-H questions of R2T, with its published errors")
@click.option(
    "--tpch-times", "tpch_times_", is_flag=True, help="five TPC-H questions of customers, beside published times"
)
@click.option("--timing", "timing_", is_flag=True, help="what the time of an answer tells of one person's bit")
@click.option("--docs", is_flag=True, help="afterwards rewrite the tables and charts of docs/evidence/performance.md")
@click.option("--rows", multiple=True, type=click.IntRange(min=1), help="table size; may be repeated [of each part]")
@click.option("--way", multiple=True, type=click.Choice(WAYS), help="of the workload; may be repeated [all]")
@click.option("--question", multiple=True, type=click.Choice([q.name for q in WORKLOAD]), help="may be repeated [all]")
@click.option("--repeat", default=7, show_default=True, type=click.IntRange(min=1), help="rounds of each question")
@click.option("--data", type=click.Path(path_type=Path), help="folder that keeps the generated data between runs")
@click.option(
    "--environments", type=click.Path(path_type=Path), help="folder of the peers' environments [below --data]"
)
@click.option("--out", default="benchmarks/results", show_default=True, type=click.Path(path_type=Path))
def main(**given: Any) -> None:
    """Time the workload on plain DuckDB and on dpsql, alternating; write PART.json, results.md and charts.

    Measure the named parts; without any, --workload and --fixed.
    """
    out: Path = given["out"]
    command = " ".join(["python -m benchmarks", *without_places(sys.argv[1:])])
    with tempfile.TemporaryDirectory() as scratch:
        folder = (Path(scratch) if given["data"] is None else given["data"]).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        failed: list[str] = []
        # Keep the ledgers' heads and the indexes of Parquet files with the data.
        os.environ |= {"DPSQL_STATE": str(folder / "state"), "DPSQL_CACHE": str(folder / "cache")}
        for part, work in _parts(given, folder).items():
            before = os.getloadavg()[0]
            found = work()
            if part in ("errors", "ranks") and given["gate"]:
                failed += _gate(found, given, folder)
            _say(f"wrote {report.write(out, part, command, (before, os.getloadavg()[0]), found)}")
            if part == "audit":  # not in the docs: findings in other software go to its maintainers first
                (out / "audit.md").write_text(audit_peers.as_markdown(found), encoding="utf-8")
    for path in [*report.render(out), *(report.rewrite_docs(out, PAGE) if given["docs"] else [])]:
        _say(f"wrote {path}")
    if failed:
        raise SystemExit("\n".join(failed))


def _gate(found: list[dict[str, Any]], given: dict[str, Any], folder: Path) -> list[str]:
    """Return a sentence for each comparison that dpsql loses in two measurements, or a sentence that no other system could be
    compared."""
    if not any(record["ratio"] for record in found):
        return ["no other system could be compared"]

    def again(cases: Sequence[errors.Case]) -> list[dict[str, Any]]:
        environments, size = (
            given["environments"] or folder / "peers",
            int(given["rows"][0]) if given["rows"] else 100_000,
        )
        return errors.compare_errors(
            folder, environments, given["errors_"], rows=size, seconds=given["seconds"], say=_say, cases=cases
        )

    return [
        f"{case} {question} {column}: the error of {system} is smaller beyond chance, twice"
        for case, question, column, system in errors.behind_twice(found, again)
    ]


def without_places(arguments: list[str]) -> list[str]:
    """Return the arguments without folders and without --docs, which do not affect the numbers."""
    told: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in ("--data", "--environments", "--out"):
            next(words, None)
        elif word != "--docs" and not word.startswith(("--data=", "--environments=", "--out=")):
            told.append(word)
    return told


def _parts(given: dict[str, Any], folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the requested parts in the order in which they run."""
    repeat: int = given["repeat"]
    asked = [one for one in WORKLOAD if not given["question"] or one.name in given["question"]]

    def rows(usual: int) -> int:
        return int(given["rows"][0]) if given["rows"] else usual

    def workload() -> Any:
        sizes, ways = given["rows"] or SIZES, given["way"] or WAYS
        timings, prepared = measure.run(folder, asked, sizes=sizes, ways=ways, repeat=repeat, say=_say)
        return {"timings": [asdict(one) for one in timings], "prepared": [asdict(one) for one in prepared]}

    def accurate() -> Any:
        size = rows(accuracy.ROWS)
        found = {"composition": accuracy.composition(folder, repeat, size), "heavy": accuracy.heavy(folder, repeat)}
        return {name: [asdict(one) for one in some] for name, some in found.items()}

    def peers() -> Any:
        environments = given["environments"] or folder / "peers"
        return compare.compare(folder, environments, given["peers"], rows=rows(100_000), repeat=repeat, say=_say)

    cases = [case for case in errors.CASES if not given["case_"] or any(words in case.name for words in given["case_"])]
    ranked, usual = [case for case in cases if case.ranked], [case for case in cases if not case.ranked]

    def wrong(cases: Sequence[errors.Case]) -> Any:
        environments = given["environments"] or folder / "peers"
        size, seconds = rows(100_000), given["seconds"]
        return errors.compare_errors(
            folder, environments, given["errors_"], rows=size, seconds=seconds, say=_say, cases=cases
        )

    def audited() -> Any:
        return audit_peers.audit(folder, given["environments"] or folder / "peers", given["audit_"], _say)

    def many(found: list[Any]) -> Any:
        return [asdict(one) for one in found]

    everything: dict[str, tuple[bool, Callable[[], Any]]] = {
        "workload": (given["workload"], workload),
        "limits": (given["limits_"], lambda: many(limits.limits(folder, max(repeat, 9), _say, rows(limits.ROWS)))),
        "fixed": (given["fixed"], lambda: many(fixed_cost.fixed_cost(folder, max(repeat, 30) if repeat > 1 else 1))),
        "wide": (given["wide_"], lambda: many(wide.wide(folder, min(repeat, 3), _say, rows=rows(wide.ROWS)))),
        "large": (given["large_"], lambda: large.large(folder, rows(100_000_000), min(repeat, 3), _say)),
        "growth": (given["growth"], lambda: many(large.growth(folder, rows(10_000_000), min(repeat, 3), _say))),
        "clients": (
            bool(given["clients_"]),
            lambda: many(clients.concurrent(folder, given["clients_"], min(repeat, 5), 8, _say, rows(clients.ROWS))),
        ),
        "unprepared": (
            given["unprepared_"],
            lambda: many(unprepared.unprepared(folder, repeat, _say, rows(unprepared.ROWS))),
        ),
        "cold": (given["cold_"], lambda: many(cold.cold(folder, repeat))),
        "exports": (given["exports_"], lambda: many(exports.exports(folder, repeat, _say, rows(exports.ROWS)))),
        "peers": (bool(given["peers"]), peers),
        "errors": (bool(given["errors_"] and usual), lambda: wrong(usual)),
        "ranks": (bool(given["errors_"] and ranked), lambda: wrong(ranked)),
        "audit": (bool(given["audit_"]), audited),
        "accuracy": (given["accuracy_"], accurate),
        "coverage": (given["coverage_"], lambda: coverage.coverage(folder, repeat, _say)),
        "combinations": (
            given["combinations_"],
            lambda: coverage.coverage(folder, repeat, _say, coverage_questions.COMBINATIONS),
        ),
        "estimates": (given["estimates_"], lambda: many(estimates.estimates(folder, repeat, _say))),
        "quantiles": (given["quantiles_"], lambda: many(rank_errors.rank_errors(folder, repeat, _say))),
        "tpch": (given["tpch_"], lambda: many(tpch.tpch(folder, _say))),
        "tpch_times": (given["tpch_times_"], lambda: many(tpch_times.tpch_times(folder, repeat, _say))),
        "timing": (given["timing_"], lambda: many(timing.timing(folder, max(20, 20 * repeat), _say))),
    }
    named = {part: work for part, (wanted, work) in everything.items() if wanted}
    if not named and not given["docs"]:
        return {part: everything[part][1] for part in ("workload", "fixed")}
    return named


if __name__ == "__main__":
    main()
