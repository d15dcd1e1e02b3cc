"""`dpsql audit --scratch URL`: synthetic tables in an empty PostgreSQL database, and no writes anywhere else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.clinic_folder import Clinic, Outcome, bare_clinic, clinic, dpsql
from support.places import POLICIES
from support.postgres_source import Server, server

from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.engine.postgresql import stored_views
from dpsql.errors.exceptions import Error
from dpsql.policy import Policy, load_policy
from dpsql.pricing.pricing import Price
from dpsql_audit import run
from dpsql_audit.questions import Question
from dpsql_audit.replay import Replay
from dpsql_audit.run import AuditReport
from dpsql_audit.scratch import ScratchDatabase
from dpsql_audit.sources import SourceReplay, check_sources, kind_of

__all__ = ["bare_clinic", "clinic", "dpsql", "server"]
SQL = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT COUNT(DISTINCT city) AS n FROM patients",
)


@pytest.fixture(scope="module")
def policy() -> Policy:
    hospital = load_policy(POLICIES / "hospital.yaml")
    return replace(hospital, source="postgresql://nobody@nowhere.invalid/protected")


@pytest.fixture(scope="module")
def priced(policy: Policy) -> list[tuple[Question, Price]]:
    replay = Replay(policy)
    done = [next(replay.steps(Question(sql))) for sql in SQL]
    return [(question.question, question.price) for question in done if question.price is not None]


def held(url: str) -> list[tuple[Any, ...]]:
    """Return every schema and relation except the server's own."""
    with psycopg.connect(url) as connection:
        schemas = (
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
        )
        relations = (
            "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = 'public'"
        )
        return [*connection.execute(schemas).fetchall(), *connection.execute(relations).fetchall()]


def test_nothing_is_found_on_sound_software_and_nothing_is_left(
    policy: Policy, priced: list[tuple[Question, Price]], server: Server
) -> None:
    """All profiles are compared, on the tables themselves and on prepared copies, and the source is not opened."""
    url = server.database()
    assert kind_of(policy) == "server" and len(priced) > 1
    with ScratchDatabase(url, policy) as scratch:
        checked = check_sources(policy, priced, lambda: False, scratch=scratch)
        assert len(held(url)) > 8
    assert not checked.findings and "PostgreSQL" in checked.words and "ended" not in checked.words
    assert checked.comparisons > 2 * 5 * len(priced)
    assert held(url) == [("public",)]


def test_copies_are_read_where_they_are_prepared(policy: Policy, server: Server, tmp_path: Path) -> None:
    question = Question(SQL[0])
    with ScratchDatabase(server.database(), policy) as scratch:
        replay = SourceReplay(policy, tmp_path, scratch=scratch)
        before = replay.crowd.observe(question).engine_sql
        replay.crowd.prepare()
        after = replay.crowd.observe(question).engine_sql
        replay.close()
    assert before != after and "_copies" in str(after) and "COPY" in str(after)


def test_a_copy_of_other_rows_is_found(
    policy: Policy, priced: list[tuple[Question, Price]], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = stored_views._rows
    monkeypatch.setattr(stored_views, "_rows", lambda view, key: f"{rows(view, key)} LIMIT 3")
    with ScratchDatabase(server.database(), policy) as scratch:
        (finding,) = check_sources(policy, priced, lambda: False, scratch=scratch).findings
    assert "prepared rows are others" in finding.problem and finding.section == "2" and finding.left


def test_a_unit_with_more_rows_than_allowed_is_found(
    policy: Policy, priced: list[tuple[Question, Price]], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables are read unprepared, and in a prepared copy the rows beyond the bound are found as well."""
    kept = BoundedView.within_max_rows
    monkeypatch.setattr(BoundedView, "within_max_rows", lambda view, *given: kept(replace(view, most=10**9), *given))
    with ScratchDatabase(server.database(), policy) as scratch:
        checked = check_sources(policy, priced, lambda: False, scratch=scratch)
    assert checked.findings, checked.words


@pytest.mark.parametrize(
    "held_already",
    ["CREATE TABLE t (x int)", "CREATE VIEW v AS SELECT 1 AS x", "CREATE SCHEMA s", "CREATE SEQUENCE q",
     "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
)  # fmt: skip
def test_a_database_that_holds_anything_is_refused_and_not_written_to(
    policy: Policy, server: Server, held_already: str
) -> None:
    url = server.database()
    with psycopg.connect(url) as connection:
        connection.execute(held_already)
    before = held(url)
    with pytest.raises(Error) as caught:
        ScratchDatabase(url, policy)
    assert (caught.value.slug, "is not empty" in caught.value.message) == ("scratch_database", True)
    assert held(url) == before


@pytest.mark.parametrize("part", ["source", "ledger", "witness"])
def test_a_database_of_the_policy_itself_is_refused_before_it_is_opened(policy: Policy, part: str) -> None:
    place = "postgresql://owner:secret@nowhere.invalid:5432/scratch"
    own: Any = {part: "postgresql://reader@nowhere.invalid/scratch"}
    with pytest.raises(Error) as caught:
        ScratchDatabase(place, replace(policy, **own))
    assert f"is the policy's own {part}" in caught.value.message and "secret" not in caught.value.text()


def test_a_database_that_cannot_be_opened_or_read_as_one_is_refused(policy: Policy, tmp_path: Path) -> None:
    for url, problem in (
        (f"postgresql://nobody@/scratch?host={tmp_path}", "cannot be opened"),
        ("postgresql://host/scratch?nonsense=1", "cannot be opened"),
        ("sqlite:///scratch.db", "is postgresql://USER@HOST/DATABASE"),
    ):
        with pytest.raises(Error) as caught:
            ScratchDatabase(url, policy)
        assert problem in caught.value.message
    with pytest.raises(Error) as caught:
        ScratchDatabase("postgresql://host/scratch", replace(policy, source="duckdb:///hospital.duckdb"))
    assert "is for a policy whose `source` is postgresql://" in caught.value.message


def test_what_was_made_is_dropped_after_an_error_too(policy: Policy, server: Server) -> None:
    url = server.database()
    with pytest.raises(KeyboardInterrupt), ScratchDatabase(url, policy) as scratch:
        scratch.schema("crowd")
        raise KeyboardInterrupt
    assert held(url) == [("public",)]


def test_without_a_scratch_database_the_report_says_what_is_not_covered(
    policy: Policy, priced: list[tuple[Question, Price]]
) -> None:
    checked = check_sources(policy, priced, lambda: False)
    assert not checked.comparisons and "name an empty database for it (--scratch)" in checked.words


def test_the_command_opens_a_scratch_database_for_the_audit_and_closes_it(
    clinic: Clinic, dpsql: Callable[..., Outcome], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, given = server.database(), []

    def noted(policy: Policy, questions: Any, *, scratch: ScratchDatabase | None, **options: Any) -> AuditReport:
        assert scratch is not None
        given.append(scratch.schema("crowd"))
        assert (given[0],) in held(url)
        return AuditReport("clinic", "row")

    monkeypatch.setattr(run, "run_audit", noted)
    refused = dpsql("audit", "-p", "clinic.yaml", "--scratch", url)
    assert refused.status != 0 and "scratch_database" in refused.err and not given
    place = clinic.folder / "clinic.yaml"
    text = place.read_text()
    place.write_text(text.replace("duckdb:///clinic.duckdb", "postgresql://nobody@nowhere.invalid/protected"))
    assert place.read_text() != text
    done = dpsql("audit", "-p", "clinic.yaml", "--scratch", url, "--no-ledger")
    assert done.status == 0 and given, done.err
    assert held(url) == [("public",)]
