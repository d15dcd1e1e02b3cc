"""Stored counts of each value answer its quantiles for free: which ones, and with what rank error."""

import re
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from support.hospital_file import PATIENTS

from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.release.release import Release
from dpsql.reuse.disjoint_sums import Impossible, RankedCounts
from dpsql.reuse.record import StoredTerm
from dpsql.session.session import Session

COUNTS = "SELECT region, slot, COUNT(*) AS n FROM patients GROUP BY region, slot"
ONE = Sensitivity(1, 1, 1, 1)


@pytest.fixture
def deriving(session: Session) -> Session:
    session.execute("SET dp.reuse = derive")
    return session


@pytest.fixture
def exact(deriving: Session) -> Session:
    """Return the session with an epsilon so large that counts have no noise."""
    deriving.execute("SET dp.epsilon = 100")
    return deriving


def rows(release: Release) -> list[tuple[object, ...]]:
    return list(release.rows())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT QUANTILE_DISC(slot, 0.5) FROM patients",
        "SELECT QUANTILE_DISC(slot, 0.1), QUANTILE_DISC(slot, 0.93) FROM patients",
        "SELECT region, QUANTILE_DISC(slot, 0.5), COUNT(*) FROM patients GROUP BY region ORDER BY region",
        "SELECT region, QUANTILE_DISC(slot, [0.2, 0.4, 0.6, 0.8]) FROM patients GROUP BY region ORDER BY region",
        "SELECT QUANTILE_DISC(slot, 0.5) FROM patients WHERE region = 'west'",
        "SELECT QUANTILE_DISC(slot, 0.25) FILTER (WHERE region IN ('west', 'north')) FROM patients",
        "SELECT QUANTILE_DISC(slot, 0.5) FROM patients WHERE slot > 70 OR region = 'south'",
    ],
)
def test_without_noise_it_is_the_quantile_of_the_rows_and_free(exact: Session, sql: str) -> None:
    exact.execute(COUNTS)
    assert exact.explain(sql).charged.epsilon == 0
    answer = exact.execute(sql)
    assert answer.reused and answer.loss.epsilon == 0
    with duckdb.connect() as engine:
        engine.execute(PATIENTS.format(count=1200))
        assert rows(answer) == engine.execute(sql).fetchall()


def test_texts_and_truth_values_are_ranked_in_their_order_without_nulls(exact: Session) -> None:
    exact.execute("SELECT plan, smoker, COUNT(*) AS n FROM patients GROUP BY plan, smoker")
    answer = exact.execute(
        "SELECT QUANTILE_DISC(plan, 0.1), QUANTILE_DISC(plan, 0.9), QUANTILE_DISC(smoker, 0.8) FROM patients"
    )
    assert answer.reused
    assert rows(answer) == [("free", "pro", True)]


def test_the_smallest_and_the_largest_value_lie_inside_the_data(deriving: Session) -> None:
    deriving.execute("SELECT slot, COUNT(*) AS n FROM patients GROUP BY slot")
    answer = deriving.execute("SELECT MIN(slot), MAX(slot) FROM patients")
    ((least, largest),) = rows(answer)
    assert answer.reused
    assert isinstance(least, int) and isinstance(largest, int) and 0 < least < 20 and 80 < largest < 99


def test_ends_are_as_many_rows_inside_as_counts_may_be_off_and_one_more(
    deriving: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks: dict[Fraction, int] = {}
    real = RankedCounts.chosen

    def chosen(counts: RankedCounts, quantile: Fraction, rank: int) -> object:
        ranks[quantile] = rank
        return real(counts, quantile, rank)

    monkeypatch.setattr(RankedCounts, "most_off", lambda *_: 10.5)
    monkeypatch.setattr(RankedCounts, "chosen", chosen)
    deriving.execute(COUNTS)
    notices = deriving.execute("SELECT MIN(slot), MEDIAN(slot), MAX(slot) FROM patients").receipt.notices
    assert ranks == {Fraction(0): 12, Fraction(1, 2): 0, Fraction(1): 12}
    assert re.findall(r"rank error of at most ([0-9.]+) rows", " ".join(notices)) == ["22.5", "10.5", "22.5"]


@pytest.mark.parametrize(
    ("stored", "sql"),
    [
        (COUNTS, "SELECT MODE(slot) FROM patients"),
        (COUNTS, "SELECT MEDIAN(slot + 1) FROM patients"),
        (COUNTS, "SELECT MEDIAN(slot) FROM patients WHERE smoker"),
        (COUNTS, "SELECT MEDIAN(slot) FILTER (WHERE smoker) FROM patients"),
        (COUNTS, "SELECT plan, MEDIAN(slot) FROM patients GROUP BY plan"),
        (COUNTS, "SELECT slot, MEDIAN(slot) FROM patients GROUP BY slot"),
        (COUNTS, "SELECT MEDIAN(slot), MEDIAN(age) FROM patients"),
        (COUNTS.replace("FROM patients", "FROM patients WHERE smoker"), "SELECT MEDIAN(slot) FROM patients"),
        (COUNTS.replace("COUNT(*)", "COUNT(*) FILTER (WHERE smoker)"), "SELECT MEDIAN(slot) FROM patients"),
        (COUNTS.replace("COUNT(*)", "COUNT(plan)"), "SELECT MEDIAN(slot) FROM patients"),
        (COUNTS.replace("region, slot", "region, ward"), "SELECT MEDIAN(ward) FROM patients"),  # bounds are no list
        (COUNTS.replace("region, slot", "city, slot"), "SELECT MEDIAN(slot) FROM patients"),  # a private key
        ("SELECT city, COUNT(*) AS n FROM patients GROUP BY city", "SELECT MEDIAN(slot) FROM patients"),
    ],
)
def test_other_rows_values_and_keys_are_measured(deriving: Session, stored: str, sql: str) -> None:
    deriving.execute(stored)
    assert not deriving.execute(sql).reused


@pytest.mark.parametrize("option", ["max_groups", "max_rows_per_group"])
def test_caps_that_depend_on_groups_keep_other_rows(deriving: Session, option: str) -> None:
    deriving.execute(
        "SELECT slot, kind, COUNT(*) AS n FROM patients JOIN visits USING (patient_id) GROUP BY slot, kind"
    )
    asked = "SELECT kind, MEDIAN(slot) AS m FROM patients JOIN visits USING (patient_id) GROUP BY kind"
    assert deriving.explain(asked).charged.epsilon == 0
    deriving.execute(f"SET dp.{option} = 1")
    assert deriving.explain(asked).charged.epsilon != 0


def test_the_bar_of_a_quantile_from_counts_holds_it(deriving: Session) -> None:
    deriving.execute(COUNTS)
    deriving.execute("SET dp.quantile_bars = on")
    answer = deriving.execute("SELECT region, MEDIAN(slot) AS m FROM patients GROUP BY region ORDER BY region")
    assert answer.reused
    for (_, median), error in zip(rows(answer), answer.error.column(1).to_pylist(), strict=True):
        assert isinstance(median, float) and 1 <= error <= 15 and abs(median - 49.5) <= error + 1


# --- rank errors ------------------------------------------------------------------------------------------------------


def counted(noise: Noise, values: int, exact_rows: np.ndarray, draws: int, seed: int) -> RankedCounts:
    """Return `draws` groups of the same rows, each with its own noise."""
    uniform = np.random.default_rng(seed).uniform(size=(draws, values))
    noisy = np.rint(exact_rows + noise.quantiles(uniform) * 2.0**noise.shift)
    term = StoredTerm("t", "count", "", frozenset(), Fraction(0), noise, 0, True)
    return RankedCounts(noisy, np.arange(values), term, values)


LAWS = {"laplace": laplace.noise_for(ONE, Fraction(1, 2)), "gaussian": gaussian.noise_for(ONE, Fraction(1, 200))}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 10), Fraction(0), Fraction(1)], ids=str)
@pytest.mark.parametrize("shape", ["even", "gap", "few"])
def test_the_rank_error_is_within_the_bound_and_the_bound_is_near(law: str, quantile: Fraction, shape: str) -> None:
    """With rows only at both ends, the noise of the empty values between them decides."""
    values, draws = 60, 4_000
    rows_of = {"even": np.full(values, 40), "gap": np.array([900] + [0] * 58 + [900]), "few": np.array([1] + [0] * 59)}
    exact_rows = rows_of[shape]
    counts = counted(LAWS[law], values, exact_rows, draws, seed=7)
    most_off = counts.most_off(quantile, 0.05)
    rank = int(np.ceil(most_off)) + 1 if quantile in (0, 1) else 0
    place = counts.chosen(quantile, rank)
    total = exact_rows.sum()
    inside = min(rank - 0.5, total / 2)
    sought = {Fraction(0): inside, Fraction(1): total - inside}.get(quantile, total * float(quantile))
    through = np.cumsum(exact_rows)[place]
    below = through - exact_rows[place]
    distance = np.maximum(0, np.maximum(below - sought, sought - through))
    assert (distance > most_off).mean() <= 0.05 + 4 * (0.05 * 0.95 / draws) ** 0.5
    noise = counts.rows - exact_rows
    errors = np.cumsum(noise, axis=1) - float(quantile) * noise.sum(axis=1)[:, None]
    likely = np.quantile(np.abs(errors).max(axis=1), 0.95)
    assert likely <= most_off <= 2.1 * likely


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 10), Fraction(0), Fraction(1)], ids=str)
def test_bars_hold_the_exact_quantile(law: str, quantile: Fraction) -> None:
    values, draws = 60, 4_000
    exact_rows = np.full(values, 10)
    counts = counted(LAWS[law], values, exact_rows, draws, seed=8)
    exact = int(np.argmax(np.cumsum(exact_rows) >= max(1, exact_rows.sum() * float(quantile))))
    missed = Fraction(1, 40)
    low, high = (counts.ends(quantile, side, missed) for side in (True, False))
    allowed = float(missed) + 4 * (float(missed) / draws) ** 0.5
    assert (low > exact).mean() <= allowed and (high < exact).mean() <= allowed
    assert (high - low).mean() <= 2 * (2.2 * counts.most_off(quantile, 0.05) + 2) / 10 + 2


def test_noise_that_is_rounded_down_is_not_added_up() -> None:
    with pytest.raises(Impossible):
        coarse = laplace.noise_for(Sensitivity(1, 1 << 60, 1 << 120, 1 << 60), Fraction(1, 1000))
        counted(coarse, 3, np.full(3, 10), 5, seed=1)
