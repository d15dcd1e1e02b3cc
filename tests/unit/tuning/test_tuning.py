"""Tuning: a query like any other (priced first, sensitivity 1, noise of the claimed scale), with good advice."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.gates import NoiselessGate
from support.places import policy
from support.random_hospitals import database, hospital, patient
from support.recording_session import World
from support.released_blocks import Keyed, drawn, laplace_noise

from dpsql.errors.exceptions import Error
from dpsql.frontends.cli import cli
from dpsql.noise.perturb import Gate
from dpsql.policy import ContributionBounds, Policy
from dpsql.pricing.options import Reuse
from dpsql.session.session import Session, open_session
from dpsql.tuning import Tuning, tune
from dpsql.tuning.choices import least_count
from dpsql_audit.distances import moves

SHOP = """
dataset: shop
source: duckdb:///shop.duckdb
privacy_unit: {table: customers, column: customer}
budget: {epsilon: 1000, delta: 1e-6, accountant: zcdp}
per_query: {epsilon: 1, min_epsilon: 0.0005}
ledger: sqlite:///ledger.db
tables:
  customers: {max_rows: 1, primary_key: [customer], columns: {customer: {type: integer, nullable: false}}}
  orders:
    max_rows: 20
    foreign_keys: {customer: customers.customer}
    columns:
      amount: {type: real, lower: 0, upper: 2000}
      region: {type: integer, lower: 0, upper: 3, nullable: false}
"""
BY_REGION = "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY region"


def build(folder: Path) -> None:
    """Write 4000 customers whose orders and amounts are log-normal: the average is far above the median."""
    rng = np.random.default_rng(3)
    orders = np.minimum(np.ceil(rng.lognormal(1.0, 1.4, 4000)), 3000).astype(int)
    rows = int(orders.sum())
    columns = {
        "customer": np.repeat(np.arange(4000), orders),
        "amount": np.minimum(rng.lognormal(3.0, 1.2, rows), 2000.0),
        "region": rng.integers(0, 4, rows),
    }
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.register("rows", pa.table(columns))
        con.execute("CREATE TABLE orders AS SELECT * FROM rows")
        con.execute("CREATE TABLE customers AS SELECT DISTINCT customer FROM orders")
    (folder / "shop.yaml").write_text(SHOP)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path)
    open_session(tmp_path / "shop.yaml", create_ledger=True).close()
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    with open_session(folder / "shop.yaml") as opened:
        yield opened


def worst(session: Session, settings: dict[str, float]) -> tuple[float, float]:
    """Return the mean relative error over the regions of COUNT and of SUM, under the given options; `max_rows` is the
    policy's."""
    tables = dict(session.policy.tables)
    if "max_rows" in settings:
        tables["orders"] = replace(tables["orders"], bounds=ContributionBounds(max_rows=int(settings["max_rows"])))
    asking = session.over(replace(session.policy, tables=tables))
    for name in ("max_count", "max_total"):
        if name in settings:
            asking.options = asking.options.with_value(name, f"{settings[name]:.10g}", asking.policy)
    release = asking.execute(BY_REGION)
    exact = asking.context.engine._connection.sql(
        "SELECT region, count(*), sum(amount) FROM shop.orders GROUP BY 1 ORDER BY 1"
    ).fetchall()  # type: ignore[attr-defined]
    errors = [[abs(got / right - 1) for got, right in zip(row[1:], true[1:], strict=True)]
              for row, true in zip(release.rows(), exact, strict=True)]  # fmt: skip
    counts, sums = zip(*errors, strict=True)
    return sum(counts) / len(counts), sum(sums) / len(sums)


def test_the_recommendation_beats_the_default(session: Session) -> None:
    # This uses one fixed draw: about one in thirty draws puts customers into a bin that is empty.
    session.context = replace(session.context, gate=Gate(Keyed("shop")))
    advice = tune(session, BY_REGION, epsilon=Fraction(1))
    assert set(advice.settings) == {"max_count", "max_total", "max_rows"}
    assert 3600 <= advice.people <= 4400
    before, after = worst(session, {}), worst(session, advice.settings)
    assert after[0] < before[0] / 3 and after[1] < before[1] / 3
    # The prediction for the default is right: its bias dwarfs its noise.
    (count_rows,) = [one for one in advice.tables if (one.setting, one.of) == ("max_rows", "COUNT")]
    (default,) = [choice for choice in count_rows.choices if choice.value == 20]
    assert count_rows.now == 20 and default.lost == pytest.approx(before[0], abs=0.07)


def test_counts_and_sums_beside_a_variance_are_tuned_whatever_they_are_made_of(folder: Path, session: Session) -> None:
    """Under pure accounting all three come from sums that share each row; under zCDP the count and the sum have separate
    terms."""
    sql = "SELECT region, COUNT(*) AS n, SUM(amount) AS s, VAR_POP(amount) AS v FROM orders GROUP BY region"
    (folder / "pure.yaml").write_text(SHOP.replace("zcdp", "pure").replace("ledger.db", "pure.db"))
    with open_session(folder / "pure.yaml", create_ledger=True) as pure:
        tuned = [
            {(one.setting, one.of) for one in tune(each, sql, epsilon=Fraction(1)).tables} for each in (session, pure)
        ]
    assert tuned[0] == tuned[1]
    assert {setting for setting, _ in tuned[1]} == {"max_count", "max_total", "max_rows"}


def test_tuning_tells_its_price_first_and_is_charged_once(session: Session) -> None:
    before = session.budget().spent["dataset"]
    tuning = Tuning(session, BY_REGION, epsilon=Fraction(1, 3), groups=None)
    plan = tuning.plan
    assert session.budget().spent["dataset"] == before
    assert [(one.l1_sensitivity, one.l0, one.rows_per_unit) for one in plan.outputs] == [(1.0, 1, 1)] * 3
    assert plan.loss.rho is not None and Fraction(1, 20) < plan.loss.rho <= Fraction(1, 18)
    first = tuning.measure()
    spent = session.budget().spent["dataset"]
    assert Fraction(spent["rho"]) - Fraction(before["rho"]) == pytest.approx(plan.loss.rho, rel=1e-9)
    again = Tuning(session, BY_REGION, epsilon=Fraction(1, 3)).measure()
    assert (again.tables, again.receipt) == (first.tables, first.receipt)
    assert session.budget().spent["dataset"] == spent


def test_what_does_not_fit_is_refused_before(session: Session) -> None:
    before = session.budget().spent
    with pytest.raises(Error) as refusal:
        Tuning(session, BY_REGION, epsilon=Fraction(1001))
    assert refusal.value.slug == "option_limit" and session.budget().spent == before


def test_noise_drowns_every_recommendation_of_a_cheap_measurement(session: Session) -> None:
    """A measurement that is too cheap gives no recommendation, and states the reason."""
    advice = tune(session, BY_REGION, epsilon=Fraction(1, 2000))
    assert advice.settings == {}
    assert all("noise drowns" in one.why for one in advice.tables)


def test_one_unit_moves_one_bin() -> None:
    """The exact histograms with and without each patient, one of whom has 150 visits, differ in one bin, by one."""
    patients = hospital(random.Random(11), True)
    patients[1] = patient(random.Random(11), 1, 150)
    sql = "SELECT ward, COUNT(*), SUM(cost), AVG(change) FILTER (WHERE nights > 1) FROM visits GROUP BY ward"
    found = {number: exact_histograms(policy("hospital"), patients, number, sql) for number in (None, *patients)}
    whole = found.pop(None)
    assert len(whole) == 4
    moved = [moves(one, other) for lacking in found.values() for one, other in zip(lacking, whole, strict=True)]
    assert all(sum(map(abs, move.values())) <= 1 for move in moved)
    assert sum(sum(move.values()) for move in moved) >= 4 * 4
    largest = [max((key[0] for key, n in one.items() if n), default=0) for one in whole]
    assert largest[0] == 7, "65 to 128 of the visits are to the wards, though max_rows is 20"


def exact_histograms(
    known: Policy, patients: dict[int, object], without: int | None, sql: str
) -> list[dict[tuple[object, ...], int]]:
    world = World(known)
    world.load(database(patients, without=without))  # type: ignore[arg-type]
    Tuning(world.session, sql).measure()
    gate = world.gate
    return [next(iter(block.terms.values())) for block in gate.blocks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_noise_of_tuning_has_the_claimed_scale(kind: str) -> None:
    """300 measurements of an empty table: the variance is the claimed one, and would be distinguished from that at 0.8 of the
    scale."""
    known = policy("hospital")
    known = replace(known, budget=replace(known.budget, accountant=kind))
    world = World(known, gate=Gate())
    world.load(database({}))
    tuning = Tuning(world.session, "SELECT COUNT(*) FROM visits", epsilon=Fraction(1, 2))
    assert tuning.planned.options.reuse is Reuse.OFF
    drawn = [units for _ in range(300) for _, _, units in tuning.measuring.answer(tuning.planned).rows()]
    (output,) = tuning.plan.outputs
    laplace = output.mechanism == "laplace"
    variance = 2 * output.noise_scale**2 if laplace else output.noise_scale**2
    kurtosis = 6 if laplace else 3
    spread = math.sqrt((kurtosis - 1) / len(drawn))
    found = sum(value * value for value in drawn) / len(drawn) / variance
    assert abs(found - 1) < 6 * spread < 1 - 0.8**2


@pytest.mark.parametrize(
    "aggregates",
    ["SUM(cost), SUM(cost * 2), SUM(cost - cost), COUNT(*)", "SUM(cost - cost)", "SUM(cost) FILTER (WHERE cost < -1)",
     "COUNT(*) FILTER (WHERE cost < -1)", "SUM(clamp(visit_id, -9007199254740992, 9007199254740992))", "VAR_POP(cost)",
     "AVG(cost) FILTER (WHERE cost = 0), COUNT(DISTINCT ward)"],
)  # fmt: skip
def test_whatever_was_seen_there_is_an_answer(aggregates: str) -> None:
    """Sums that are all 0, filters that no row passes, bounds that no query could use: these were measured, so they are
    answered."""
    world = World(policy("hospital"), gate=NoiselessGate())
    world.load(database(hospital(random.Random(1), True)))
    advice = Tuning(world.session, f"SELECT {aggregates} FROM visits").measure()
    assert all(one.choices for one in advice.tables)
    assert all(value > 0 for value in advice.settings.values())


def test_what_fails_after_the_measurement_says_that_it_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(policy("hospital"), gate=NoiselessGate())
    world.load(database(hospital(random.Random(1), True)))
    tuning = Tuning(world.session, "SELECT SUM(cost) FROM visits")
    monkeypatch.setattr("dpsql.tuning.marked_table", lambda *given: 1 // 0)
    with pytest.raises(Error) as fault:
        tuning.measure()
    assert (fault.value.slug, fault.value.charged) == ("unexpected", True)


def test_noise_alone_is_not_taken_for_people() -> None:
    """Otherwise 3 of 220 tunings of light tails recommend bounds 100 times too large, because of a distant bin that is noise."""
    noise, bins = laplace_noise("1/10"), 24
    counts = drawn(noise, 4_000 * bins, "empty bins").reshape(4_000, bins)
    tunings = (counts >= least_count(noise, bins)).any(axis=1)
    assert tunings.mean() <= 0.003


def test_command_asks_before_it_charges(folder: Path) -> None:
    """The price is shown with a question; without a yes nothing is charged; --epsilon counts as a yes."""
    runner = CliRunner()
    asked = ["fit", "-p", str(folder / "shop.yaml"), BY_REGION]
    with open_session(folder / "shop.yaml") as opened:
        before = opened.budget().spent
        said = runner.invoke(cli, asked, input="n\n")
        assert "price of measuring: " in said.stderr and "measure?" in said.stderr and said.stdout == ""
        assert said.exit_code == 0 and said.stderr.endswith("nothing was measured, nothing was charged\n")
        assert opened.budget().spent == before
        told = runner.invoke(cli, [*asked[:3], "--epsilon", "0.7", BY_REGION])
        assert told.exit_code == 0 and "charged: " in told.stderr and "% of the budget" in told.stderr
        proposals = [line for line in told.stdout.splitlines() if line.startswith("proposed: ")]
        names = {line.removeprefix("proposed: SET dp.").split()[0] for line in proposals}
        assert names >= {"max_count"} and len(proposals) in (2, 3)  # noise decides whether max_total is bounded
        assert "recommended" not in told.stdout and "privacy unit" not in told.stdout
        assert opened.budget().spent != before
    facts = json.loads(runner.invoke(cli, [*asked[:3], "--epsilon", "0.7", "-f", "json", BY_REGION]).stdout)
    assert set(facts["settings"]) == {"max_count", "max_total", "max_rows"}
    assert "max_rows" in runner.invoke(cli, ["fit", "--help"]).stdout
    assert runner.invoke(cli, [*asked[:3], "--epsilon", "much", BY_REGION]).exit_code == 2
