"""Quantiles and most frequent values from stored releases: the stored numbers, only for the same rows and cells."""

import pytest

from dpsql.release.release import Release
from dpsql.session.session import Session

QUARTILES = "SELECT region, QUANTILE_DISC(age, [0.25, 0.5, 0.75]) AS q FROM patients GROUP BY region ORDER BY region"


@pytest.fixture
def deriving(session: Session) -> Session:
    session.execute("SET dp.reuse = derive")
    return session


def rows(release: Release) -> list[tuple[object, ...]]:
    return list(release.rows())


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_quantile_of_a_stored_list_is_the_stored_number_and_free(deriving: Session, share: float) -> None:
    released = deriving.execute(QUARTILES)
    answer = deriving.execute(f"SELECT region, QUANTILE_DISC(age, {share}) FROM patients GROUP BY region ORDER BY 1")
    assert answer.reused and answer.loss.epsilon == 0
    place = [0.25, 0.5, 0.75].index(share)
    assert rows(answer) == [(region, quartiles[place]) for region, quartiles in rows(released)]
    (note,) = [note for note in answer.receipt.notices if "comes from the release" in note]
    assert released.receipt.id in note and "rank error of at most" in note


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(age) AS m, MODE(ward) AS w FROM patients",
        "SELECT QUANTILE_CONT(age, [0.5]) AS m FROM patients",
        "SELECT APPROX_QUANTILE(age, [0.9, 0.5]) AS m FROM patients",
        "SELECT MIN(age) AS m, MAX(slot) AS w FROM patients",
        "SELECT MODE(ward) AS m FROM patients",
        "SELECT QUANTILE_CONT(slot, 0.1) AS m FROM patients",
        "SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM patients",
        "SELECT MEDIAN(age) - MIN(age) AS m FROM patients",
    ],
)
def test_any_part_of_what_was_chosen_is_free(deriving: Session, sql: str) -> None:
    """This holds whatever the names of the numbers in the release, where histograms and quantiles come in another order."""
    whole = deriving.execute(
        "SELECT QUANTILE_CONT(slot, 0.1) AS s1, MAX(slot) AS s2, QUANTILE_CONT(age, 0.9) AS a9, MEDIAN(age) AS a5, "
        "MIN(age) AS a0, MODE(ward) AS o, COUNT(*) AS n FROM patients"
    )
    (stored,) = (dict(zip([column.name for column in whole.columns], row, strict=True)) for row in rows(whole))
    answer = deriving.execute(sql)
    assert answer.reused
    number = {
        "SELECT MEDIAN(age) AS m, MODE": (stored["a5"], stored["o"]),
        "[0.5]": ([stored["a5"]],),
        "[0.9": ([stored["a9"], stored["a5"]],),
        "SELECT MIN(age)": (stored["a0"], stored["s2"]),
        "SELECT MODE": (stored["o"],),
        "(slot, 0.1)": (stored["s1"],),
        "COUNT": (stored["a5"], stored["n"]),
        " - ": (stored["a5"] - stored["a0"],),
    }
    (wanted,) = (values for part, values in number.items() if part in sql)
    assert rows(answer) == [wanted]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, QUANTILE_DISC(age, 0.6) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(age, [0.25, 0.3]) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(slot, 0.5) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(age + 1, 0.5) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(clamp(age, 0, 50), 0.5) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(age, 0.5) FILTER (WHERE smoker) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(age, 0.5) FROM patients WHERE smoker GROUP BY region",
        "SELECT region, QUANTILE_DISC(age, 0.5) FROM patients WHERE region <> 'west' GROUP BY region",
        "SELECT QUANTILE_DISC(age, 0.5) FROM patients WHERE region = 'west'",
        "SELECT QUANTILE_DISC(age, 0.5) FROM patients",
        "SELECT plan, QUANTILE_DISC(age, 0.5) FROM patients GROUP BY plan",
        "SELECT region, smoker, QUANTILE_DISC(age, 0.5) FROM patients GROUP BY ALL",
        "SELECT region, MODE(age) FROM patients GROUP BY region",
        "SELECT region, QUANTILE_DISC(age, 0.5), COUNT(*) FROM patients GROUP BY region",
        "SELECT region, COUNT(*) FROM patients GROUP BY region",
    ],
)
def test_other_rows_groups_cells_and_numbers_are_measured(deriving: Session, sql: str) -> None:
    deriving.execute(QUARTILES)
    answer = deriving.execute(sql)
    assert not answer.reused and answer.loss.epsilon == 1


def test_a_filtered_quantile_answers_for_the_same_filter_alone(deriving: Session) -> None:
    filtered = (
        "SELECT region, QUANTILE_DISC(age, {}) FILTER (WHERE smoker) AS m FROM patients GROUP BY region ORDER BY 1"
    )
    stored = rows(deriving.execute(filtered.format("[0.1, 0.5]")))
    assert rows(deriving.execute(filtered.format("0.5"))) == [(region, values[1]) for region, values in stored]
    assert not deriving.execute(filtered.format("0.5").replace("smoker", "NOT smoker")).reused
    assert not deriving.execute("SELECT region, QUANTILE_DISC(age, 0.5) FROM patients GROUP BY region").reused


def test_the_same_quantiles_of_a_larger_epsilon_are_measured_and_of_a_smaller_one_free(session: Session) -> None:
    stored = rows(session.execute(QUARTILES))
    session.execute("SET dp.epsilon = 0.5")
    assert (answer := session.execute(QUARTILES)).reused and rows(answer) == stored
    session.execute("SET dp.epsilon = 2")
    session.execute("SET dp.reuse = derive")
    assert not session.execute(QUARTILES).reused


def test_keys_in_another_order_have_their_own_numbers(deriving: Session) -> None:
    stored = deriving.execute("SELECT region, smoker, QUANTILE_DISC(age, [0.1, 0.5]) AS q FROM patients GROUP BY 1, 2")
    answer = deriving.execute("SELECT smoker, region, QUANTILE_DISC(age, 0.5) AS q FROM patients GROUP BY 1, 2")
    assert answer.reused
    assert {(region, smoker): value for smoker, region, value in rows(answer)} == {
        (region, smoker): values[1] for region, smoker, values in rows(stored)
    }


def test_private_keys_have_the_numbers_of_their_groups(deriving: Session) -> None:
    deriving.execute("SET dp.epsilon = 3")  # so that no group would be shown only under the answer's own rule
    stored = deriving.execute("SELECT city, QUANTILE_DISC(age, [0.1, 0.5]) AS q FROM patients GROUP BY city")
    deriving.execute("SET dp.epsilon = 1")
    answer = deriving.execute("SELECT city, QUANTILE_DISC(age, 0.5) AS q FROM patients GROUP BY city")
    assert answer.reused
    assert dict(rows(answer)) == {city: values[1] for city, values in rows(stored)}


@pytest.mark.parametrize("option", ["max_groups", "max_rows_per_group"])
def test_the_caps_must_be_the_same(deriving: Session, option: str) -> None:
    question = "SELECT kind, QUANTILE_DISC(cost, {}) AS q FROM visits GROUP BY kind ORDER BY kind"
    deriving.execute(f"SET dp.{option} = 1")
    stored = rows(deriving.execute(question.format("[0.5, 0.9]")))
    assert rows(deriving.execute(question.format("0.9"))) == [(kind, values[1]) for kind, values in stored]
    deriving.execute(f"SET dp.{option} = none")
    assert not deriving.execute(question.format("0.9")).reused


def test_a_bar_is_given_again_with_its_own_confidence_alone(deriving: Session) -> None:
    deriving.execute("SET dp.quantile_bars = on")
    stored = deriving.execute("SELECT MEDIAN(age) AS m, QUANTILE_DISC(age, 0.9) AS n, COUNT(*) AS c FROM patients")
    answer = deriving.execute("SELECT MEDIAN(age) AS m FROM patients")
    assert answer.reused
    for name in ("low", "high"):
        assert getattr(answer, name).to_pylist()[0]["m"] == getattr(stored, name).to_pylist()[0]["m"]
    deriving.execute("SET dp.confidence = 0.99")
    assert not deriving.execute("SELECT MEDIAN(age) AS m FROM patients").reused
    deriving.execute("SET dp.quantile_bars = off")
    assert deriving.execute("SELECT MEDIAN(age) AS m FROM patients").reused
