"""The rows that a unit keeps depend only on its own rows, whatever other rows exist, in any order and with any number of
threads."""

import random
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.seeds import seeds

from dpsql.engine.duckdb.dialect import DUCKDB, DuckDBDialect
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.duckdb.prepared_views import Views, _Opened, _part, count_rows
from dpsql.engine.emit.bounded_view import bounded_view, keyed_order
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import EngineQuery, RowsRead, Source, View
from dpsql.planning.planner import Planner
from dpsql.policy import load_policy
from dpsql.pricing.options import Options

POLICY = """
dataset: visits
source: duckdb:///visits.duckdb
privacy_unit: {{table: visits, column: patient}}
budget: {{epsilon: 10, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///ledger.db
tables:
  wards:
    public: true
    primary_key: [ward]
    columns: {{ward: {{type: text}}, beds: {{type: integer}}}}
  visits:
    max_rows: {most}
    columns:
      patient: {{type: {unit}}}
      cost: {{type: real, lower: -50, upper: 50}}
      ward: {{type: text, domain: [a, b, c, d, e, f]}}
"""
COSTS = ["0.0", "-0.0", "NULL", "'nan'::DOUBLE", "-('nan'::DOUBLE)", "1.5", "2.5"]
Rows = list[tuple[int | str, str, str]]


def crowd(seed: int) -> Rows:
    """Return rows of 12 patients with few distinct values, so that most rows of a patient tie with another one."""
    chance = random.Random(seed)
    wards = ["'a'", "'b'", "'c'", "'d'", "'e'", "'f'", "NULL"]
    return [
        (patient, chance.choice(COSTS), chance.choice(wards))
        for patient in range(12)
        for _ in range(chance.randrange(1, 30))
    ]


class Data:
    """One policy over one connection whose rows are replaced."""

    def __init__(self, folder: Path, most: int, unit: str = "integer") -> None:
        path = folder / "visits.yaml"
        path.write_text(POLICY.format(most=most, unit=unit))
        self.policy = load_policy(path)
        self.connection = duckdb.connect()

    def load(self, rows: Rows, seed: int) -> DuckDBEngine:
        """Load the rows in shuffled order, scanned by 1 or 2 threads, and return an engine over them."""
        self.replace(rows, seed)
        return DuckDBEngine(self.connection, self.policy, "test", owned=False)

    def replace(self, rows: Rows, seed: int) -> None:
        """Load rows like `load`, for tests that query directly or have an engine already."""
        shuffled = random.Random(seed).sample(rows, len(rows))
        self.connection.execute("CREATE OR REPLACE TABLE visits (patient INTEGER, cost DOUBLE, ward TEXT)")
        listed = ", ".join(f"({patient}, {cost}, {ward})" for patient, cost, ward in shuffled)
        self.connection.execute(f"INSERT INTO visits VALUES {listed}")
        self.connection.execute(
            "CREATE OR REPLACE VIEW wards AS SELECT w AS ward, i % 2 AS beds FROM (VALUES "
            "('a', 1), ('b', 2), ('c', 3)) AS t(w, i)"
        )
        self.connection.execute(f"SET threads = {1 + seed % 2}")

    def kept(self, engine: DuckDBEngine, key: str = "k") -> dict[int, Counter[tuple[str, ...]]]:
        """Return the bounded view by patient, with the signs of zeros distinguished."""
        view = bounded_view(DUCKDB, self.policy, engine.source, "visits")
        return self.by_patient(view.within_max_rows(view.rows, key, ('"#unit"',)))

    def by_patient(self, sql: str) -> dict[int, Counter[tuple[str, ...]]]:
        found: dict[int, Counter[tuple[str, ...]]] = defaultdict(Counter)
        rows = self.connection.execute(f"SELECT patient, cost, {DUCKDB.sign_of('cost')}, ward FROM ({sql})").fetchall()
        for patient, *rest in rows:
            found[patient][tuple(map(str, rest))] += 1
        return found


@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("seed", seeds(6, 1))
def test_removing_a_unit_leaves_the_rows_of_all_others(tmp_path: Path, seed: int, most: int) -> None:
    rows = crowd(seed)
    data = Data(tmp_path, most)
    engine = data.load(rows, seed)
    everybody = data.kept(engine)
    owned = Counter(patient for patient, _, _ in rows)
    bounded = {patient: min(n, most) for patient, n in owned.items()}
    assert {patient: sum(kept.values()) for patient, kept in everybody.items()} == bounded
    for gone in range(0, 12, 3):
        data.replace([row for row in rows if row[0] != gone], seed + gone + 1)
        without = data.kept(engine)
        assert without == {patient: kept for patient, kept in everybody.items() if patient != gone}


def test_another_key_keeps_other_rows(tmp_path: Path) -> None:
    """The kept rows are not a fixed property of their content: they are drawn again for each version of the data."""
    data = Data(tmp_path, 3)
    engine = data.load(crowd(1), 0)
    assert data.kept(engine, "k") != data.kept(engine, "another")


@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("seed", seeds(6, 1))
def test_counting_first_keeps_the_same_rows(tmp_path: Path, seed: int, most: int) -> None:
    """Units with one row less than the bound, exactly as many, and one row more are included."""
    sizes = {12: most - 1, 13: most, 14: most + 1, 15: most + 1, 16: most + 1}
    few = [(patient, COSTS[-at], f"'{'abcdef'[at]}'") for patient, size in sizes.items() for at in range(size)]
    data = Data(tmp_path, most)
    engine = data.load([*crowd(seed), *few], seed)
    view = bounded_view(DUCKDB, data.policy, engine.source, "visits")
    for key in ("k", "another", "third"):
        by_counts = view.within_max_rows_by_counts(view.rows, key, ('"#unit"',))
        assert data.by_patient(by_counts) == data.kept(engine, key)


class FewHashes(DuckDBDialect):
    """A dialect whose hash has few values, so that rows of different content have equal hashes."""

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the hash modulo 3."""
        return f"{super().keyed_order(key, content)} % 3"


class LowLimit(DuckDBDialect):
    """A dialect that expects more rows below a limit than there are, so that most units have too few."""

    def order_below(self, share: str) -> str:
        """Return the limit for a fifth of the share."""
        return super().order_below(f"{share} / 5")


@pytest.mark.parametrize("dialect", [DUCKDB, FewHashes(), LowLimit()])
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("seed", seeds(6, 1))
def test_thresholds_keep_the_same_rows(tmp_path: Path, seed: int, most: int, dialect: DuckDBDialect) -> None:
    """Units with one row less than the bound, exactly as many, and one row more are included, rows that are equal, and rows of
    nobody."""
    sizes = {12: most - 1, 13: most, 14: most + 1, 15: most + 1}
    few = [(patient, COSTS[-index], f"'{'abcdef'[index]}'") for patient, size in sizes.items() for index in range(size)]
    equal = [(16, "1.5", "'a'")] * (most + 2) + [(17, "2.5", "'b'")] * most
    of_nobody: Rows = [("NULL", "1.5", "'a'")] * (most + 2)
    data = Data(tmp_path, most)
    engine = data.load([*crowd(seed), *few, *equal, *of_nobody], seed)
    whole = replace(bounded_view(DUCKDB, data.policy, engine.source, "visits"), dialect=dialect)
    for key, view in product(
        ("k", "another"), (whole, replace(whole, hashed=(('"ward"',), whole.content)))
    ):  # a key that is none
        data.connection.execute(f"CREATE OR REPLACE TABLE thresholds AS {view.thresholds(key)}")
        kept = data.by_patient(view.within_max_rows(view.rows, key, ('"#unit"',)))
        assert data.by_patient(view.within_thresholds("thresholds", key, ('"#unit"',))) == kept
        assert view.is_snapshot and data.by_patient(view.bounded(key, ('"#unit"',))) == kept
        whole_table = data.by_patient(view.bounded(key, ('"#unit"',), RowsRead.ALL))
        for read in (view, replace(view, is_snapshot=False)):
            left_out = data.by_patient(read.bounded(key, ('"#unit"',), RowsRead.LEFT_OUT))
            assert all(whole_table[patient] == kept[patient] + left_out[patient] for patient in whole_table)
            assert left_out.keys() <= whole_table.keys() == kept.keys() - {None}
        numbered = replace(view, numbered=view.rows.replace("SELECT ", 'SELECT s0.rowid AS "#row", ', 1))
        count_rows(data.connection, numbered, key, "left_out")
        read = partial(_part, _Opened("", "", "", numbered, key, None, thresholds="left_out"))
        assert data.by_patient(read(RowsRead.KEPT)) == kept
        assert data.by_patient(read(RowsRead.LEFT_OUT)) == {patient: rows for patient, rows in left_out.items() if rows}


def test_the_first_hash_of_a_wide_table_reads_few_columns(tmp_path: Path) -> None:
    """Numbers distinguish rows better than texts, and columns with a domain least."""
    Data(tmp_path, 3)
    path = tmp_path / "visits.yaml"
    path.write_text(path.read_text() + "".join(f"      n{n}: {{type: integer}}\n" for n in range(200)))
    source = Source("visits", dict.fromkeys(["patient", "cost", "ward", *(f"n{n}" for n in range(200))], "INTEGER"))
    view = bounded_view(DUCKDB, load_policy(path), lambda table: source, "visits")
    assert view.hashed[0] == ('"cost"', *(f'"n{n}"' for n in range(7))) and view.hashed[1:] == (view.content,)
    thresholds = view.thresholds("k")
    assert thresholds.count('"n8"') == view.rows.count('"n8"') * thresholds.count(
        view.rows
    )  # only where columns are read


def test_a_broken_primary_key_bounds_each_unit_and_is_all_that_the_hash_reads(tmp_path: Path) -> None:
    """Rows of one unit that agree on the declared key are in the order of their content."""
    data = Data(tmp_path, 3)
    path = tmp_path / "visits.yaml"
    path.write_text(path.read_text().replace("    max_rows", "    primary_key: [ward]\n    max_rows"))
    data.policy = load_policy(path)
    engine = data.load(crowd(2), 0)
    view = bounded_view(DUCKDB, data.policy, engine.source, "visits")
    assert view.hashed == (('"ward"',),) and keyed_order(DUCKDB, "k", ('"ward"',)) in view.thresholds("k")
    everybody = data.kept(engine)
    assert max(sum(kept.values()) for kept in everybody.values()) == 3
    for gone in range(12):
        data.replace([row for row in crowd(2) if row[0] != gone], gone)
        assert data.kept(engine) == {patient: kept for patient, kept in everybody.items() if patient != gone}


@pytest.mark.parametrize("unit", ["integer", "text"])
@pytest.mark.parametrize("seed", seeds(3, 1))
def test_what_is_written_is_what_the_window_keeps(tmp_path: Path, seed: int, unit: str) -> None:
    data = Data(tmp_path, 5, unit)
    engine = data.load(crowd(seed), seed)
    view = bounded_view(DUCKDB, data.policy, engine.source, "visits")
    told: list[tuple[str, float]] = []
    written = Views(data.connection.cursor).write(
        view, "k", tmp_path / "index.duckdb", in_place=True, progress=lambda *step: told.append(step)
    )
    assert written and ("counting", 1.0) in told and told[-1] == ("writing", 1.0)
    data.connection.execute(f"ATTACH '{tmp_path / 'index.duckdb'}' AS new (READ_ONLY)")
    assert data.by_patient("SELECT * FROM new.main.bounded") == data.kept(engine)
    ids = data.connection.execute('SELECT DISTINCT "#id" FROM new.main.bounded ORDER BY 1').fetchall()
    assert [row[0] for row in ids] == list(range(12))
    assert data.connection.execute("SELECT * FROM new.main.about").fetchall() == [(12,)]


@pytest.mark.parametrize("unit", ["{{table: visits, column: patient}}", "row"])
def test_integers_are_kept_in_32_bits_where_their_ends_fit(tmp_path: Path, unit: str) -> None:
    """The ends themselves occur in the rows: one bit less would not hold them."""
    columns = {"edge": (0, 2**31 - 1), "wide": (0, 2**31), "low": (-(2**31), 0), "far": (0, 2**33)}
    data = Data(tmp_path, 5)
    text = POLICY.replace("{{table: visits, column: patient}}", unit).format(most=5, unit="integer")
    for name, (lower, upper) in columns.items():
        text += f"      {name}: {{type: integer, lower: {lower}, upper: {upper}}}\n"
    (tmp_path / "visits.yaml").write_text(text if unit != "row" else text.replace("    max_rows: 5\n", ""))
    policy = load_policy(tmp_path / "visits.yaml")
    ends = [(lower, upper) for lower, upper in columns.values()]
    data.connection.execute(
        "CREATE TABLE visits AS SELECT 1 AS patient, c AS cost, 'a' AS ward, "
        + ", ".join(f"CASE WHEN c < 0 THEN {low} ELSE {high} END AS {name}" for name, (low, high) in columns.items())
        + " FROM (VALUES (-60.0), (-50.0), (50.0), (60.0), ('nan'::DOUBLE)) v(c)"
    )
    view = bounded_view(DUCKDB, policy, DuckDBEngine(data.connection, policy, "test", owned=False).source, "visits")
    file = tmp_path / "index.duckdb"
    Views(data.connection.cursor).write(view, "k", file, in_place=False, progress=lambda *step: None)
    data.connection.execute(f"ATTACH '{file}' AS new (READ_ONLY)")
    types = dict(
        data.connection.execute(
            "SELECT column_name, column_type FROM (DESCRIBE new.main.bounded) WHERE column_name LIKE '#_.%'"
        ).fetchall()
    )
    assert types == {
        **dict.fromkeys(["#0.cost", "#2.cost"], "INTEGER"),
        **dict.fromkeys(["#0.edge", "#1.edge", "#1.wide", "#1.low"], "INTEGER"),
        **dict.fromkeys(["#0.wide", "#0.low", "#2.low", "#0.far", "#1.far"], "BIGINT"),
    }
    kept = data.connection.execute(
        "SELECT * FROM (SELECT COLUMNS('#0.*') FROM new.main.bounded) ORDER BY ALL"
    ).fetchall()
    wanted = [(50 * 2**24 * sign, *(end[at] for end in ends)) for sign, at in ((-1, 0), (1, 1)) for _ in range(2)]
    assert kept == [*wanted, (None, *(end[1] for end in ends))]


def test_nothing_is_written_exactly_when_nothing_is_dropped(tmp_path: Path) -> None:
    """One unit with one row too many is enough; a unit with exactly max_rows rows is not."""
    rows: Rows = [(patient, "1.5", "'a'") for patient in range(4) for _ in range(5)]
    data = Data(tmp_path, 5)
    for number, (more, expected) in enumerate((([], False), ([(3, "1.5", "'a'")], True), ([(9, "1.5", "'a'")], False))):
        engine = data.load(rows + more, 0)
        view, file = bounded_view(DUCKDB, data.policy, engine.source, "visits"), tmp_path / f"{number}.duckdb"
        assert Views(data.connection.cursor).write(view, "k", file, in_place=True, progress=lambda *_: None) is expected


def planned(data: Data, engine: DuckDBEngine, sql: str, **bounds: int | None) -> EngineQuery:
    """Return the text of a question under contribution bounds (None: not set)."""
    options = Options.of_policy(data.policy)
    for name, bound in bounds.items():
        options = options if bound is None else options.with_value(name, str(bound), data.policy)
    planner = Planner(data.policy, engine)
    plan = planner.plan(planner.parse(sql, None), options, cacheable=False)
    return Emitter(data.policy, DUCKDB, engine.source, lambda table: View("k")).block(plan.price.blocks[0].block)


def test_counts_of_whole_views_are_those_of_their_rows(tmp_path: Path) -> None:
    """Only counts of all rows and of units need no rows to be chosen: a condition, a value that may be NULL, or a cap is another
    question."""
    data = Data(tmp_path, 5)
    engine = data.load(crowd(1), 0)
    view = bounded_view(DUCKDB, data.policy, engine.source, "visits")
    rows = view.within_max_rows(view.rows, "k", ('"#unit"',))
    for measures in (
        "count(*)", "count(DISTINCT patient)", "count(*), count(DISTINCT patient)", "count(ward)",
        "count(*) FILTER (WHERE cost > 1)", "count(*), count(DISTINCT patient) FILTER (WHERE ward = 'a')",
    ):  # fmt: skip
        counts = data.connection.execute(f"SELECT {measures} FROM ({rows})").fetchall()
        query = planned(data, engine, f"SELECT {measures} FROM visits")
        answer = engine.run(query).unseal().select(query.terms).to_pylist()
        assert [tuple(map(int, row.values())) for row in answer] == counts, measures
        assert ("OVER" in query.sql) is ("ward" in measures or "cost" in measures)
    (capped,) = (
        engine.run(planned(data, engine, "SELECT count(*) FROM visits", max_rows_per_group=2)).unseal().to_pylist()
    )
    owned = Counter(patient for patient, _, _ in crowd(1))
    assert list(capped.values()) == [sum(min(number, 2) for number in owned.values())]


ADDED_UP = (
    "SELECT count(*), count(cost), sum(cost) FROM visits WHERE cost > 1", "SELECT avg(cost) FROM visits",
    "SELECT ward, count(*), sum(cost), avg(cost) FROM visits GROUP BY ward",
    "SELECT ward, count(*) FILTER (WHERE cost > 1), stddev(cost), covar_samp(cost, patient % 4) FROM visits GROUP BY ward",
    "SELECT corr(cost, patient % 4), sum(cost + 1) FROM visits WHERE ward <> 'a'",
)  # fmt: skip
RANKED = (
    "SELECT count(*), sum(cost) FROM visits WHERE patient IN (SELECT patient FROM visits WHERE cost > 2)",
    "SELECT ward, sum(cost), count(DISTINCT patient) FROM visits GROUP BY ward",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups = 2) ward, count(*) FROM visits GROUP BY ward",
    "SELECT sum(cost), count(*) FROM visits JOIN wards USING (ward) WHERE beds = 1",  # the view may differ between two readings
    "SELECT count(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds = 1)",
    "SELECT sum(n) FROM (SELECT patient, least(count(*), 9) AS n FROM visits GROUP BY patient) AS s",
)


@pytest.mark.parametrize("sql", [*ADDED_UP, *RANKED])
def test_sums_over_a_view_are_those_over_all_rows_without_what_it_leaves_out(tmp_path: Path, sql: str) -> None:
    """Only sums of what each row adds by itself are computed so; and they are the sums over the rows that rank within max_rows."""
    data = Data(tmp_path, 5)
    rows = [*crowd(3), *[(16, "1.5", "'a'")] * 9]
    engine = data.load(rows, 0)
    query = planned(data, engine, sql)
    assert ('-"t0" AS "t0"' in query.sql) is (sql in ADDED_UP)
    found, stored = engine.run(query).unseal().to_pylist(), engine.source

    def without_snapshots(table: str) -> Source:
        return replace(stored(table), is_snapshot=False)

    engine.source = without_snapshots  # type: ignore[method-assign,assignment]
    ranked = planned(data, engine, sql)
    assert "#limits" in query.sql and "#limits" not in ranked.sql

    def sums(answer: list[dict[str, Any]]) -> dict[str, list[int]]:
        return {str(row.get("k0")): [int(row[term]) for term in query.terms] for row in answer}

    assert sums(found) == sums(engine.run(ranked).unseal().to_pylist())


@pytest.mark.parametrize(("groups", "in_group"), [(2, None), (None, 2), (2, 3)])
@pytest.mark.parametrize("seed", seeds(3, 1))
def test_caps_bound_each_unit_and_leave_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, groups: int | None, in_group: int | None
) -> None:
    """A unit moves the counts of at most `max_groups` groups, and reaches that number, by `max_rows_per_group` each. A window
    over the rows keeps the same groups as limits of their hashes do, which are computed for units with more groups alone."""
    rows, data = crowd(seed), Data(tmp_path, 20)
    engine = data.load(rows, seed)
    sql = "SELECT ward, count(*) AS n, sum(cost) AS s, count(DISTINCT patient) AS u FROM visits GROUP BY ward"
    query = planned(data, engine, sql, max_groups=groups, max_rows_per_group=in_group)
    assert ('AS "#limit"' in query.sql) is bool(groups)
    monkeypatch.setattr(DuckDBDialect, "most_places", 6)  # NULL is a seventh group
    ranked = planned(data, engine, sql, max_groups=groups, max_rows_per_group=in_group)
    assert '"#limit"' not in ranked.sql
    if groups and in_group:  # rows of groups that are left out are not sorted again
        assert ranked.sql.index('AS "#row"') < ranked.sql.index('AS "#group"')

    def counts(given: Rows, order: int) -> dict[str, tuple[int, int, int]]:
        data.replace(given, order)
        found, same = (
            {row["k0"]: (row["t0"], int(row["t1"]), row["t2"]) for row in engine.run(text).unseal().to_pylist()}
            for text in (query, ranked)
        )
        assert found == same
        return found

    whole = counts(rows, seed)
    most_moved = 0
    for gone in range(12):
        without = counts([row for row in rows if row[0] != gone], seed + gone)
        moved = [whole[ward][0] - without.get(ward, (0,))[0] for ward in whole]
        units = [whole[ward][2] - without.get(ward, (0, 0, 0))[2] for ward in whole]
        assert all(0 <= n <= (in_group or 20) for n in moved) and all(n in (0, 1) for n in units)
        assert sum(n > 0 for n in moved) == sum(units) <= (groups or 7)
        most_moved = max(most_moved, sum(units))
    assert most_moved == (groups or most_moved), "a tighter cap than claimed would hide a looser one"


def test_a_row_without_a_unit_is_dropped_and_so_the_source_is_not_the_view(tmp_path: Path) -> None:
    data = Data(tmp_path, 5)
    engine = data.load([(1, "1.5", "'a'")], 0)
    data.connection.execute("INSERT INTO visits VALUES (NULL, 1.0, 'a')")
    view = bounded_view(DUCKDB, data.policy, engine.source, "visits")
    views, file = Views(data.connection.cursor), tmp_path / "index.duckdb"
    assert views.write(view, "k", file, in_place=True, progress=lambda *_: None)
    assert set(data.kept(engine)) == {1}
