"""Exports of randomised rows: priced by the number of rows that a unit may have, charged before data is touched, refused for
free."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export_clinic import PEOPLE, export_session, people, policy_facts
from support.released_blocks import Keyed

from dpsql.errors.exceptions import BudgetRefusal, Error, Fault
from dpsql.noise.local_randomizers import exact_rows
from dpsql.noise.perturb import Gate, randomise
from dpsql.pricing import row_export
from dpsql.pricing.row_export import plan_export
from dpsql.privacy.mechanisms import local_randomizers
from dpsql.session.background_work import Pace
from dpsql.session.row_export import RowExport
from dpsql.session.session import Session

ONE = Fraction(1)


def charges(session: Session) -> list[dict[str, Any]]:
    return [entry.facts for entry in session.ledger.history() if entry.kind == "charge"]


def outcomes(session: Session) -> list[str]:
    return [entry.kind for entry in session.ledger.history() if entry.kind in ("charge", "committed", "failed")]


def test_a_unit_of_five_rows_costs_five_times_a_row_and_its_count(tmp_path: Path) -> None:
    with export_session(tmp_path, 40) as session:
        plan = RowExport(session, "visits", ("kind",), ONE).plan
        assert plan.loss.epsilon == 5 + Fraction(1, 10) * 5
        assert plan.count_noise is not None and plan.count_noise.sensitivity.l1 == 5
        assert plan.loss.rho == 5 * plan.columns[0].law.loss.rho + plan.count_noise.loss.rho
        receipt = RowExport(session, "visits", ("kind",), ONE, Fraction(500)).write(tmp_path / "v.parquet")
        assert receipt.rows == 5 * 40, "of seven visits five are in the bounded view"
        (charge,) = charges(session)
        assert charge["charge"]["epsilon"] == str(505 * 10**18)


def test_columns_share_the_epsilon_of_a_row(tmp_path: Path) -> None:
    with export_session(tmp_path, 10) as session:
        plan = RowExport(session, "people", ("region", "age", "REGION", "job"), Fraction(3)).plan
        assert [(column.name, column.law.epsilon) for column in plan.columns] == [("region", 1), ("age", 1), ("job", 1)]


def test_the_number_of_rows_is_exact_where_neighbours_have_equally_many(tmp_path: Path) -> None:
    """This requires row privacy, replacement of rows, and no column that leaves rows out, as one with values outside a list
    would."""
    columns = policy_facts()["tables"]["people"]["columns"]
    labelled = {**columns["ward"], "outside": {"other": "other"}}
    only = {"people": {"columns": {**columns, "ward": labelled}}}
    by_row = {"privacy_unit": "row", "tables": only, "neighbours": "change_one"}
    limited = {"analysts": {"research": {"epsilon": 5, "where": {"people": "age > 30"}}}}
    with export_session(tmp_path, 50, rows={"people": people(50)}, **by_row, **limited) as session:
        export = RowExport(session, "people", ("ward", "age"), ONE)
        assert export.plan.count_noise is None and export.plan.loss.epsilon == 1
        assert export.write(tmp_path / "p.parquet").rows == 50
        for column in ("grade", "region", "weight"):
            assert RowExport(session, "people", (column, "age"), ONE).plan.count_noise is not None
    with export_session(tmp_path, 50, rows={"people": people(50)}, analyst="research", **by_row, **limited) as session:
        assert RowExport(session, "people", ("ward", "age"), ONE).plan.count_noise is not None


def test_only_what_exists_for_an_analyst_is_exported(tmp_path: Path) -> None:
    limited = {
        "research": {
            "epsilon": 900, "tables": ["people"], "columns": {"people": ["grade", "age"]},
            "where": {"people": "region = 'north'"},
        }
    }  # fmt: skip
    with export_session(tmp_path, 40, analyst="research", analysts=limited) as session:
        written = RowExport(session, "people", ("grade", "age"), Fraction(30), Fraction(500)).write(
            tmp_path / "n.parquet"
        )
        assert written.rows == 10
        grades = pq.read_table(tmp_path / "n.parquet").column("grade").to_pylist()
        assert grades.count(1) >= 9, "people in the north have grade 1"
        for table, column, slug in (("visits", "kind", "unknown_table"), ("people", "ward", "unknown_column")):
            with pytest.raises(Error) as raised:
                RowExport(session, table, (column,), ONE)
            assert raised.value.slug == slug and "ward" not in (raised.value.hint or "")


def test_replacing_a_unit_is_priced_as_adding_it(tmp_path: Path) -> None:
    """A unit has at most five rows before and after: five places, and a count that moves by at most five."""
    tables = policy_facts()["tables"]
    tables["visits"]["columns"]["kind"] = {"type": "text", "domain": ["in"], "outside": {"other": "other"}}
    with export_session(tmp_path, 5, neighbours="change_one", tables=tables) as session:
        plan = RowExport(session, "visits", ("kind",), ONE).plan
        assert plan.loss.epsilon == Fraction(55, 10)


def test_at_a_huge_epsilon_rows_come_as_they_are_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fixed randomness: each number is at an end of its range with probability 3 in 65,536, and there are 1,200."""
    monkeypatch.setattr("dpsql.session.session.Gate", lambda: Gate(Keyed("rows")))
    with export_session(tmp_path, 400) as session:
        RowExport(session, "people", ("grade", "age", "weight", "wide", "day"), Fraction(100), Fraction(700)).write(
            tmp_path / "p.parquet"
        )
    table = pq.read_table(tmp_path / "p.parquet")
    exact = people(400)
    assert table.column_names == ["grade", "age", "weight", "wide", "day"], "no key of the unit"
    pairs = Counter(zip(table.column("grade").to_pylist(), table.column("day").to_pylist(), strict=True))
    assert pairs == Counter(zip(exact.column("grade").to_pylist(), exact.column("day").to_pylist(), strict=True))
    assert table.column("grade").to_pylist() != exact.column("grade").to_pylist()
    for name, width in (("age", 100.0), ("weight", 200.0), ("wide", 1.8e19)):
        written = sorted(float(v) for v in table.column(name).to_pylist() if v is not None)
        expected = sorted(float(v) for v in exact.column(name).to_pylist() if v is not None)
        assert len(written) == len(expected)
        assert np.abs(np.array(written) - np.array(expected)).max() < width / 100


def test_rows_of_one_table_come_in_another_order_each_time(tmp_path: Path) -> None:
    with export_session(tmp_path, 400) as session:
        plan = plan_export(session.policy, "people", ("grade", "age"), Fraction(40), Fraction(500))
        exact = exact_answer(session, plan)
        grades = [randomise(exact, plan, Gate())[0].outputs.tolist() for _ in range(2)]
    assert sorted(grades[0]) == sorted(grades[1]) and grades[0] != grades[1]


@pytest.mark.parametrize("most", [0, 1 << 16], ids=["row by row", "counted"])
def test_the_same_rows_are_read_as_combinations_or_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """400 people have 52 combinations of a grade and an age, which may be NULL."""
    monkeypatch.setattr("dpsql.engine.emit.emitter._GROUPED_COMBINATIONS", most)
    with export_session(tmp_path, 400) as session:
        plan = plan_export(session.policy, "people", ("grade", "age"), Fraction(40), Fraction(500))
        assert plan.combinations == 5 * 102
        table = exact_answer(session, plan).unseal()
    rows = exact_rows(table, plan)
    assert table.num_rows == (52 if most else 400)
    read = Counter(zip(*(column.tolist() for column in (*rows.values, rows.missing[1])), strict=True))
    grades, ages = (people(400).column(name).to_pylist() for name in ("grade", "age"))
    assert read == Counter((grade - 1, age or 0, age is None) for grade, age in zip(grades, ages, strict=True))


@pytest.mark.parametrize("upper", [(1 << bits) - less for bits in (15, 31, 40) for less in (1, 0)])
def test_the_largest_integers_of_a_column_are_read(tmp_path: Path, upper: int) -> None:
    facts = policy_facts()
    facts["tables"]["people"]["columns"] = {**PEOPLE, "age": {"type": "integer", "lower": 0, "upper": upper}}
    with export_session(tmp_path, 0, tables=facts["tables"]) as session:
        plan = plan_export(session.policy, "people", ("age",), ONE)
        rows = exact_rows(pa.table({"k0": [0, upper, None], "n": [1, 1, 1]}), plan)
    assert [rows.values[0].tolist(), rows.missing[0].tolist()] == [[0, upper, 0], [False, False, True]]


class Counted(Gate):
    """A gate whose number of rows a test chooses; everything else is unchanged."""

    def __init__(self, written: int) -> None:
        super().__init__()
        self.written = written

    def count_rows(self, exact: int, noise: Any) -> int:
        return self.written


@pytest.mark.parametrize("written", [0, 7, 40, 90])
def test_as_many_rows_are_written_as_the_noisy_count_says(tmp_path: Path, written: int) -> None:
    with export_session(tmp_path, 40) as session:
        plan = plan_export(session.policy, "people", ("grade", "age", "job"), Fraction(3))
        columns = randomise(exact_answer(session, plan), plan, Counted(written))
        assert [len(column.outputs) for column in columns] == [written] * 3


def exact_answer(session: Session, plan: row_export.ExportPlan) -> Any:
    from dpsql.engine.emit.emitter import exported_rows

    return session.context.engine.run(exported_rows(session.context.emitter(), plan))


@pytest.mark.statistical
def test_padding_rows_look_like_rows_of_any_value_and_left_out_rows_like_any(tmp_path: Path) -> None:
    """All people have grade 1. Padding is uniform among the four grades; a selection of rows keeps the law of each."""
    with export_session(tmp_path, 0, rows={"people": people(400)}, **_people_only()) as session:
        plan = plan_export(session.policy, "people", ("grade",), Fraction(2))
        grades = Counter[int]()
        for _ in range(60):
            (column,) = randomise(exact_answer(session, plan), plan, Counted(1_200))
            grades.update(column.outputs.tolist())
        shares = [grades[code] / (60 * 1_200) for code in range(4)]
        assert shares == pytest.approx([0.25] * 4, abs=0.01), "four grades in equal parts, and uniform padding"
        law = plan.columns[0].law
        assert isinstance(law, local_randomizers.CategoryLaw)


def _people_only() -> dict[str, Any]:
    return {"tables": {"people": policy_facts()["tables"]["people"]}}


@pytest.mark.slow
@pytest.mark.statistical
def test_neighbours_differ_by_what_is_charged_and_not_by_less(tmp_path: Path) -> None:
    """One person of grade 1, one of grade 2, and no one: the probability that the one written row has grade 1. Between the first
    two it differs by the charged epsilon (0.7 and 1.3 of it would fail), between a person and padding by less."""
    shares = []
    for number, rows in enumerate((people(1), people(2).slice(1), people(0))):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        with export_session(folder, 0, rows={"people": rows}, **_people_only()) as session:
            plan = plan_export(session.policy, "people", ("grade",), ONE)
            exact, gate = exact_answer(session, plan), Counted(1)
            codes = [int(randomise(exact, plan, gate)[0].outputs[0]) for _ in range(6_000)]
            shares.append(np.mean(np.array(codes) == 0))
    assert np.log(shares[0] / shares[1]) == pytest.approx(1, abs=0.25)
    assert shares[2] == pytest.approx(0.25, abs=0.035)


def test_the_noise_of_the_count_is_that_of_its_price(tmp_path: Path) -> None:
    with export_session(tmp_path, 40) as session:
        plan = plan_export(session.policy, "visits", ("kind",), ONE, Fraction(1, 2))
        assert plan.count_noise is not None and plan.count_noise.noise_scale == 10
        gate = Gate()
        drawn = np.array([gate.count_rows(1000, plan.count_noise) for _ in range(3_000)]) - 1000
        assert 0.85 * 14.1 < drawn.std() < 1.15 * 14.1
        assert min(gate.count_rows(0, plan.count_noise) for _ in range(50)) == 0


REFUSED = [
    ("nowhere", ("a",), ONE, None, "unknown_table"),
    ("wards", ("ward",), ONE, None, "export_public"),
    ("people", ("nothing",), ONE, None, "unknown_column"),
    ("people", ("patient_id",), ONE, None, "export_unit_key"),
    ("visits", ("patient_id",), ONE, None, "export_unit_key"),
    ("people", (), ONE, None, "export_columns"),
    ("people", ("note",), ONE, None, "export_column"),
    ("people", ("born",), ONE, None, "export_column"),
    ("people", ("fixed",), ONE, None, "export_column"),
    ("people", ("alone",), ONE, None, "export_column"),
    ("people", ("grade",), Fraction(21), None, "export_epsilon"),
    ("people", ("grade", "age"), Fraction(1, 1000), None, "export_epsilon"),
    ("people", ("grade",), ONE, Fraction(1, 10**7), "export_count"),
    ("people", ("grade",), Fraction(20), Fraction(10**6), "ledger_budget"),
]


@pytest.mark.parametrize(("table", "columns", "epsilon", "count", "slug"), REFUSED, ids=str)
def test_what_cannot_be_exported_is_refused_uncharged(
    tmp_path: Path, table: str, columns: tuple[str, ...], epsilon: Fraction, count: Fraction | None, slug: str
) -> None:
    with export_session(tmp_path, 10) as session:
        with pytest.raises(Error) as raised:
            RowExport(session, table, columns, epsilon, count).write(tmp_path / "x.parquet")
        assert charges(session) == [] and not raised.value.charged
        if slug == "ledger_budget":
            assert isinstance(raised.value, BudgetRefusal)
        else:
            assert raised.value.slug == slug
        assert sorted(path.name for path in tmp_path.iterdir() if ".parquet" in path.name) == []


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("x.txt", "export_ending"),
        ("no/x.parquet", "file_write"),
        ("there.parquet", "export_exists"),
        ("job.csv", "export_sets"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_uncharged(tmp_path: Path, name: str, slug: str) -> None:
    (tmp_path / "there.parquet").write_text("mine")
    with export_session(tmp_path, 10) as session:
        with pytest.raises(Error) as raised:
            RowExport(session, "people", ("job",), ONE).write(tmp_path / name)
        assert raised.value.slug == slug and charges(session) == [] and not raised.value.charged
    assert (tmp_path / "there.parquet").read_text() == "mine"


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_after_the_charge_says_that_it_stays_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    with export_session(tmp_path, 10) as session:
        export = RowExport(session, "people", ("grade",), ONE)

        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("dpsql.session.row_export.rows_table", fail)
        with pytest.raises(Error) as raised:
            export.write(tmp_path / "x.parquet")
        assert raised.value.charged and isinstance(raised.value, (Fault, Error))
        assert outcomes(session) == ["charge", "failed"]
    assert [path for path in tmp_path.iterdir() if "parquet" in path.name] == []


def test_the_file_appears_at_the_response_time_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "x.parquet"
    there: list[bool] = []
    monkeypatch.setattr(Pace, "hold", lambda _: there.append(place.exists()))
    with export_session(tmp_path, 10) as session:
        RowExport(session, "people", ("grade",), ONE).write(place)
    assert there == [False] and place.exists()


def test_an_interrupt_while_the_response_time_is_awaited_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds = iter((KeyboardInterrupt, None))

    def interrupted(_: Pace) -> None:
        if (stop := next(holds)) is not None:
            raise stop

    monkeypatch.setattr(Pace, "hold", interrupted)
    with export_session(tmp_path, 10) as session, pytest.raises(Error) as raised:
        RowExport(session, "people", ("grade",), ONE).write(tmp_path / "x.csv")
    assert raised.value.charged
    assert [path.name for path in tmp_path.iterdir() if "x.csv" in path.name] == []


def test_the_charge_is_durable_before_data_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with export_session(tmp_path, 10) as session:
        export = RowExport(session, "people", ("grade",), ONE)
        engine = session.context.engine
        before: list[list[str]] = []
        run = engine.run
        monkeypatch.setattr(engine, "run", lambda *words: before.append(outcomes(session)) or run(*words))
        export.write(tmp_path / "x.parquet")
        assert before == [["charge"]] and outcomes(session) == ["charge", "committed"]


def test_a_law_that_tells_more_than_it_costs_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second computation of the ratio uses the probabilities, not the law's own statement."""
    monkeypatch.setattr(local_randomizers, "ratio_of", lambda epsilon: Fraction(3))
    with export_session(tmp_path, 10) as session:
        for column in ("grade", "age"):
            with pytest.raises(Error) as raised:
                RowExport(session, "people", (column,), ONE)
            assert raised.value.slug == "price_disagrees"
