"""Notices about rows that noise selected: in stages, and private keys that are not shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clinic import build
from support.gates import NoiselessGate

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session, open_session

CHOSEN = (
    "SELECT AVG(weight) AS mean, COUNT(*) AS n FROM patients WHERE region IN "
    "(SELECT region FROM patients GROUP BY region HAVING COUNT(*) > {})"
)
ORDER = (
    "the aggregation behind mean, n is measured after the aggregation of patients by region, over what noisy numbers chose "
    "there: error bars hold the exact answer for this choice"
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(build(tmp_path), create_ledger=True) as opened:
        yield opened


def test_an_answer_in_stages_says_what_its_bars_hold(session: Session) -> None:
    """The notice is given before the charge, with the measured answer, and with the answer from the store."""
    sql = CHOSEN.format(100)
    assert any(note.startswith(ORDER) for note in session.explain(sql).notes)
    first, again = session.execute(sql), session.execute(sql)
    assert again.reused
    for release in (first, again):
        (notice,) = [notice for notice in release.notices if "is measured after" in notice]
        assert (
            notice.startswith(ORDER) and "less often the answer for the choice that exact numbers would make" in notice
        )


def test_conditions_that_leave_no_group_are_said_before_the_charge(session: Session) -> None:
    """An answer without groups is refused, by EXPLAIN as well; of two parts, only the empty one is named."""
    sql = "SELECT age, COUNT(*) FROM patients WHERE age > 500 GROUP BY age"
    words = "no value of age that the policy allows passes the conditions, so there are no groups"
    for ask in (session.explain, session.execute):
        with pytest.raises(Error) as refused:
            ask(sql)
        assert refused.value.slug == "no_groups" and not refused.value.charged
    part = f"{sql} UNION ALL SELECT age, COUNT(*) FROM patients GROUP BY age"
    assert words in session.explain(part).lines and "groups: 0" not in session.explain(part).lines
    assert not any("no groups" in line for line in session.explain(sql.replace("500", "50")).lines)


@pytest.fixture
def noiseless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Yield a session like `session`, but with noise 0."""
    monkeypatch.setattr("dpsql.session.session.Gate", lambda: NoiselessGate(2))
    with open_session(build(tmp_path), create_ledger=True) as opened:
        yield opened


def test_rows_that_noise_may_have_chosen_are_counted(noiseless: Session) -> None:
    """Two regions of 500: with a threshold of 100 both are selected for certain, with 500 noise decides for each. Drawn noise
    could happen to be so large that the selection looks certain, so the noise is 0 here."""
    certain = noiseless.execute(CHOSEN.format(100))
    assert not any("noise might choose" in notice for notice in certain.notices)
    doubtful = noiseless.execute(CHOSEN.format(500))
    assert "of about 2 rows that noise might choose there, 0 are chosen in any case" in doubtful.notices


def test_keys_without_a_number_are_said_to_say_nothing_of_the_data(session: Session) -> None:
    said = "the shown values of region are all that the policy and conditions on them alone allow"
    for sql in ("SELECT DISTINCT region FROM patients WHERE age > 70", "SELECT region FROM patients GROUP BY region"):
        for notes in (session.execute(sql).notices, session.explain(sql).notes):
            assert any(notice.startswith(said) for notice in notes)
    counted = session.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
    assert not any(notice.startswith(said) for notice in counted.notices)


def test_a_counted_condition_is_remarked_before_it_is_paid_and_with_the_answer(session: Session) -> None:
    notice = "COUNT(age > 60) counts every row where age > 60 is true or false; COUNT_IF(age > 60) counts those where it is true"
    sql = "SELECT COUNT(age > 60) AS n, COUNT(age) AS m FROM patients"
    assert session.explain(sql).notes.count(notice) == session.execute(sql).notices.count(notice) == 1
    for condition in ("age IS NULL OR age > 60", "NOT (age > 60)", "region LIKE 'n%'"):
        notes = session.explain(f"SELECT COUNT({condition}) AS n FROM patients").notes
        assert sum("is true or false" in note for note in notes) == 1
    long = " OR ".join(f"age > {bound}" for bound in range(60, 70))
    notes = session.explain(f"SELECT COUNT({long}) AS n FROM patients").notes
    assert sum(note.startswith("COUNT(condition) counts") for note in notes) == 1
    for part in (
        "COUNT(*)",
        "COUNT(age)",
        "COUNT(DISTINCT age > 60)",
        "COUNT_IF(age > 60)",
        "COUNT(CASE WHEN age > 60 THEN 1 END)",
    ):
        assert not any(
            "is true or false" in note for note in session.explain(f"SELECT {part} AS n FROM patients").notes
        )


def test_values_of_a_hidden_row_filter_are_in_no_notice(tmp_path: Path) -> None:
    path = build(tmp_path)
    limited = "research: {epsilon: 10, tables: [patients], where: {patients: \"region <> 'norway'\"}}"
    path.write_text(path.read_text().replace("research: {epsilon: 1000}", limited))
    with open_session(path, analyst="research", create_ledger=True) as asker:
        sql = "SELECT COUNT(*) FROM patients WHERE age > 30"
        said = [*asker.explain(sql).notes, *asker.explain(sql).lines, *asker.execute(sql).notices]
        assert not any("norway" in notice for notice in said)
