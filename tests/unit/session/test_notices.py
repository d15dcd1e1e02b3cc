"""Notices about rows that noise selected: in stages, and private keys that are not shown."""

from __future__ import annotations

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
TOTAL = "SELECT SUM(n) AS total FROM (SELECT weight, COUNT(*) AS n FROM patients GROUP BY weight) AS q"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
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
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("dpsql.session.session.Gate", lambda: NoiselessGate(2))
    with open_session(build(tmp_path), create_ledger=True) as opened:
        yield opened


TWICE = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region UNION ALL SELECT 'all', COUNT(*) AS n FROM patients WHERE age < {}"


def test_notices_name_what_is_in_the_question_and_not_blocks_of_the_plan(session: Session) -> None:
    """They name outputs if these distinguish blocks, otherwise tables and keys; a long list is cut."""
    session.execute("SET dp.reuse = derive")
    session.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
    derived = session.execute("SELECT COUNT(*) AS people FROM patients")
    (notice,) = [notice for notice in derived.notices if "comes from the release of receipt" in notice]
    assert notice.startswith("the aggregation behind people comes from the release of receipt ")
    assert notice.endswith(": summed over region")
    many = ", ".join(f"COUNT(*) FILTER (WHERE age < {age}) AS under_{age}" for age in range(20, 27))
    session.execute(f"SELECT {many} FROM patients")
    notes = session.explain(f"SELECT {many} FROM patients").notes
    assert any(
        note.startswith("the aggregation behind under_20, under_21, under_22, under_23, under_24 and 2 more comes from")
        for note in notes
    )
    session.execute(TWICE.format(50))
    notes = [note for note in session.explain(TWICE.format(50)).notes if "comes from" in note]
    assert [note.split(" comes ")[0] for note in notes] == [
        "the aggregation of patients by region behind n",
        "the aggregation of patients behind n",
    ]
    for sql in (CHOSEN.format(50), TWICE.format(40)):
        notes = (*session.explain(sql).notes, *session.execute(sql).notices, *session.explain(sql).notes)
        assert notes and not any("dp_" in note for note in notes)


def test_rows_that_noise_may_have_chosen_are_counted(noiseless: Session) -> None:
    """Two regions of 500: with a threshold of 100 both are selected for certain, with 500 noise decides for each. Drawn noise
    could happen to be so large that the selection looks certain, so the noise is 0 here."""
    certain = noiseless.execute(CHOSEN.format(100))
    assert not any("noise might choose" in notice for notice in certain.notices)
    doubtful = noiseless.execute(CHOSEN.format(500))
    assert "of about 2 rows that noise might choose there, 0 are chosen in any case" in doubtful.notices


def test_private_keys_that_are_not_shown_are_named_at_every_door(session: Session) -> None:
    """20 patients share each weight, about as many as a threshold requires."""
    listed = session.execute("SELECT weight, COUNT(*) AS n FROM patients GROUP BY weight")
    (notice,) = [notice for notice in listed.notices if "mostly not shown" in notice]
    assert notice.startswith("keys that fewer than about 22 units share") and "total" not in notice
    total = session.execute(TOTAL)
    (notice,) = [notice for notice in total.notices if "mostly not shown" in notice]
    assert "in no total" in notice and "each may lack all that about 22 units have" in notice
    assert notice in session.explain(TOTAL).notes
    public = session.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
    assert not any("mostly not shown" in notice for notice in public.notices)


@pytest.mark.parametrize("condition", ["region = 'norway'", "region IN ('north', 'norway')", "region <> 'norway'"])
def test_a_value_that_no_policy_lists_is_named_before_it_is_paid_and_with_the_answer(
    session: Session, condition: str
) -> None:
    sql = f"SELECT COUNT(*) FROM patients WHERE {condition}"
    notice = "'norway' is none of the values that the policy lists (north, south)"
    assert sum(note.startswith(notice) for note in session.explain(sql).notes) == 1
    for release in (session.execute(sql), session.execute(sql)):
        assert sum(note.startswith(notice) for note in release.notices) == 1


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


def test_a_listed_value_in_another_spelling_is_refused_and_nothing_charged(session: Session) -> None:
    before = session.budget().spent
    for text in ("North", "north ", "NORTH"):
        with pytest.raises(Error, match="but 'north'") as refused:
            session.execute(f"SELECT COUNT(*) FROM patients WHERE region = '{text}'")
        assert refused.value.slug == "value_spelling" and not refused.value.charged
    assert session.budget().spent == before


def test_values_of_a_hidden_row_filter_are_in_no_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    path = build(tmp_path)
    limited = "research: {epsilon: 10, tables: [patients], where: {patients: \"region <> 'norway'\"}}"
    path.write_text(path.read_text().replace("research: {epsilon: 1000}", limited))
    with open_session(path, analyst="research", create_ledger=True) as asker:
        sql = "SELECT COUNT(*) FROM patients WHERE age > 30"
        said = [*asker.explain(sql).notes, *asker.explain(sql).lines, *asker.execute(sql).notices]
        assert not any("norway" in notice for notice in said)
