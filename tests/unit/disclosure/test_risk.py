"""Exact figures of disclosure risk compared with their definitions, computed row by row in Python."""

import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from support.places import ROOT

from dpsql.disclosure import PersonRows, generalisations, measure_risk
from dpsql.disclosure.report import ladder
from dpsql.engine.registry import open_engine
from dpsql.policy import Policy, parse_policy

COLUMNS = {
    "id": {"type": "integer"},
    "zip": {"type": "text"},
    "age": {"type": "integer", "lower": 0, "upper": 100},
    "weight": {"type": "real", "lower": 0, "upper": 200},
    "born": {"type": "date"},
    "ill": {"type": "text"},
}
TYPES = {
    "id": pa.int64(),
    "zip": pa.string(),
    "age": pa.int64(),
    "weight": pa.float64(),
    "born": pa.date32(),
    "ill": pa.string(),
}
QUASI = ("zip", "age")
Row = dict[str, Any]


def policy(by_row: bool = False) -> Policy:
    unit = "row" if by_row else {"table": "people", "column": "id"}
    tables = {
        "people": {**({} if by_row else {"max_rows": 5}), "columns": COLUMNS},
        "towns": {"public": True, "columns": {"zip": {"type": "text"}}},
    }
    limits = {
        "budget": {"epsilon": 1, "accountant": "pure"},
        "per_query": {"epsilon": 0.1},
        "ledger": "sqlite:///risks.db",
    }
    return parse_policy(json.dumps({"dataset": "risks", "privacy_unit": unit, **limits, "tables": tables}))


def people(seed: int, several: bool) -> list[Row]:
    """Return random rows: NULLs, equal rows, rows without a person; several rows per person, or one."""
    rng = random.Random(seed)
    persons = [None, *range(25)] if several else list(range(40))
    rows = [
        {
            "id": person,
            "zip": rng.choice(["8001", "8002", "8051", "9000", None]),
            "age": rng.choice([3, 3, 17, 42, 43, 44, 97, None]),
            "weight": rng.choice([3.5, 70.25, 70.5, 71.0, math.nan, None]),
            "born": rng.choice([date(1980, 1, 31), date(1980, 2, 1), date(1991, 7, 7), None]),
            "ill": rng.choice(["no", "no", "no", "flu", None]),
        }
        for person in persons
        for _ in range(rng.choice([1, 2, 4]) if several else 1)
    ]
    return rows + rows[:3] if several else rows


def read(rows: list[Row], *columns: str, by_row: bool = False) -> PersonRows:
    table = pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in TYPES.items()})
    loaded = policy(by_row)
    towns = pa.table({"zip": ["8001"]})
    return PersonRows(loaded, open_engine(loaded, {"people": table, "towns": towns}), "people", columns)


def classes(rows: list[Row], columns: tuple[str, ...]) -> dict[tuple[Any, ...], set[int]]:
    """Return persons by their values."""
    found = defaultdict(set)
    for number, row in enumerate(rows):
        person = number if row.get("alone") else row["id"]
        if person is not None:
            found[tuple(row[name] for name in columns)].add(person)
    return dict(found)


def smallest(rows: list[Row], columns: tuple[str, ...]) -> Counter[int]:
    """Return size of each person's smallest class -> number of persons."""
    size: dict[int, int] = {}
    for members in classes(rows, columns).values():
        for person in members:
            size[person] = min(size.get(person, len(members)), len(members))
    return Counter(size.values())


@pytest.fixture(params=[(0, False), (1, True), (2, True), (3, False)], ids=str)
def rows(request: pytest.FixtureRequest) -> list[Row]:
    return people(*request.param)


def test_class_sizes_are_those_counted_by_person(rows: list[Row]) -> None:
    with read(rows, *QUASI) as read_rows:
        report = measure_risk(read_rows, QUASI)
    expected = smallest(rows, QUASI)
    assert dict(report.sizes.persons_by_size) == dict(expected)
    assert report.sizes.smallest == min(expected)
    assert report.sizes.classes == len(classes(rows, QUASI))
    assert report.sizes.below(3) == expected[1] + expected[2] == report.sizes.between(1, 2)
    assert report.sizes.average_risk == pytest.approx(
        sum(n / size for size, n in expected.items()) / sum(expected.values())
    )
    assert report.persons == len({row["id"] for row in rows} - {None})
    assert report.rows == sum(row["id"] is not None for row in rows)
    assert report.ownerless == sum(row["id"] is None for row in rows)


def test_uniqueness_lists_each_combination_and_the_worst_first(rows: list[Row]) -> None:
    columns = ("zip", "age", "born")
    with read(rows, *columns) as read_rows:
        report = measure_risk(read_rows, columns)
    assert {entry.columns: entry.persons for entry in report.uniqueness} == {
        subset: smallest(rows, subset)[1]
        for subset in [("zip",), ("age",), ("born",), ("zip", "age"), ("zip", "born"), ("age", "born"), columns]
    }
    numbers = [entry.persons for entry in report.uniqueness]
    assert numbers == sorted(numbers, reverse=True)


def test_diversity_follows_its_definitions(rows: list[Row]) -> None:
    columns = ("zip",)
    with read(rows, *columns, "ill") as read_rows:
        (found,) = measure_risk(read_rows, columns, ("ill",)).diversity
    pairs = {(row["zip"], row["ill"], row["id"]) for row in rows if row["id"] is not None}
    everybody, by_class = Counter(ill for _, ill, _ in pairs), defaultdict(Counter)
    for key, ill, _ in pairs:
        by_class[key][ill] += 1

    def share(counts: Counter[Any], value: Any) -> float:
        return counts[value] / sum(counts.values())

    entropies = [-sum(share(c, v) * math.log(share(c, v)) for v in c) for c in by_class.values()]
    distances = [sum(abs(share(c, v) - share(everybody, v)) for v in everybody) / 2 for c in by_class.values()]
    alike = {key for key, counts in by_class.items() if len(counts) == 1}
    assert found.distinct == min(map(len, by_class.values()))
    assert found.entropy == pytest.approx(math.exp(min(entropies)))
    assert found.closeness == pytest.approx(max(distances))
    assert found.disclosed == len({person for key, _, person in pairs if key in alike})


def test_a_class_of_one_value_discloses_its_members() -> None:
    rows = [
        {**people(0, False)[0], "id": n, "zip": "x" if n < 3 else "y", "ill": "flu" if n < 4 else "no"}
        for n in range(9)
    ]
    with read(rows, "zip", "ill") as read_rows:
        (found,) = measure_risk(read_rows, ("zip",), ("ill",)).diversity
    assert (found.distinct, found.disclosed) == (1, 3)
    assert found.closeness == pytest.approx(1 - 4 / 9)


@pytest.mark.parametrize("suppressed", [0.0, 0.2])
@pytest.mark.parametrize("k", [2, 4])
def test_generalisations_are_all_the_finest_that_reach_k(rows: list[Row], k: int, suppressed: float) -> None:
    columns = ("zip", "age", "born")
    with read(rows, *columns) as read_rows:
        found = generalisations(read_rows, columns, k, suppressed)
        ladders = [ladder(read_rows, name) for name in columns]
        good = {}
        for node in product(*(range(len(steps)) for steps in ladders)):
            values = ", ".join(
                f"{steps[step].sql} AS c{n}" for n, (steps, step) in enumerate(zip(ladders, node, strict=True))
            )
            general = [
                dict(zip(("id", "c0", "c1", "c2"), row, strict=True))
                for row in read_rows.fetch(f'SELECT "#person", {values} FROM rows')
            ]
            sizes = smallest(general, ("c0", "c1", "c2"))
            good[node] = sum(n for size, n in sizes.items() if size < k) <= suppressed * read_rows.persons
    fitting = {node for node, fits in good.items() if fits}
    finest = {n for n in fitting if not any(o != n and all(a <= b for a, b in zip(o, n, strict=True)) for o in fitting)}
    words = {tuple((c, s[i].words) for c, s, i in zip(columns, ladders, node, strict=True)) for node in finest}
    assert {entry.levels for entry in found} == words
    shares = [entry.information for entry in found]
    assert shares == sorted(shares, reverse=True) and all(0 <= share <= 1 for share in shares)


def test_each_level_of_a_ladder_merges_classes_of_the_one_before(rows: list[Row]) -> None:
    with read(rows, "zip", "age", "weight", "born") as read_rows:
        for column in ("zip", "age", "weight", "born"):
            steps = ladder(read_rows, column)
            assert steps[0].words == "as it is" and steps[-1].values == 1 and len(steps) >= 3
            for fine, coarse in pairwise(steps):
                split = read_rows.fetch(
                    f"SELECT f FROM (SELECT DISTINCT {fine.sql} AS f, {coarse.sql} AS c FROM rows) GROUP BY f HAVING COUNT(*) > 1"
                )
                assert not split and coarse.entropy <= fine.entropy + 1e-9


def sources() -> Iterator[tuple[str, str]]:
    for file in (ROOT / "dpsql").rglob("*.py"):
        yield str(file.relative_to(ROOT / "dpsql")), file.read_text(encoding="utf-8")


def test_exact_rows_and_risks_are_for_the_owners_command_alone() -> None:
    callers = {name for name, text in sources() if re.search(r"\.exact_rows\(", text)}
    assert callers == {"disclosure/report.py", "disclosure/scan.py", "engine/served_tables.py"}
    importers = {name for name, text in sources() if "dpsql.disclosure" in text and not name.startswith("disclosure/")}
    owners = {"frontends/admin/check.py", "frontends/cli/owner.py", "testing/__init__.py"}
    assert importers == {*owners, "engine/contract.py"}, "the contract names it in a docstring"
    checks = {name for name, text in sources() if re.search(r"admin(\.| import )check\b", text)}
    assert checks == {"frontends/cli/owner.py"}, "no server reads everything"
