"""Prepared copies on a PostgreSQL server: the same answers with and without them, one transaction, and no copy of other data."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital
from support.corpus_traits import covering
from support.engine_pairs import BY_HASH, measured, takes_its_options
from support.neighbouring_hospitals import FIXED, Data, crowd, row, together, unit
from support.places import policy as policy_of
from support.postgres_source import Server, ServerWorld, server

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.errors.exceptions import Fault
from dpsql.policy import Policy
from dpsql.policy.types import Preparation
from unit.engine.postgresql.test_engine import url

__all__ = ["server", "url"]
SCHEMA = "dpsql_prepared"
KEY = b"k" * 32


def many_rows(policy: Policy) -> Data:
    """Return the crowd and persons with more rows than max_rows keeps."""
    data: Data = crowd()
    tables = [name for name in policy.tables if policy.is_protected(name)]
    for number, profile in enumerate(FIXED):
        more = [unit(profile, 900 + number)] if policy.privacy_unit else [row(profile, table) for table in tables]
        for rows in more:
            data = together(data, rows)
    return data


@pytest.fixture(scope="module", params=["hospital", "hospital_rows"])
def world(request: pytest.FixtureRequest, server: Server) -> Iterator[ServerWorld]:
    policy = replace(policy_of(request.param), data_version="spring", prepare=Preparation(True, SCHEMA))
    opened = ServerWorld(policy, server.database())
    opened.load(many_rows(policy))
    yield opened
    opened.close()


def test_answers_are_the_same_with_and_without_copies(world: ServerWorld) -> None:
    """Exact rows, prices, notices and charges, for every kind of query and for all queries in which a hash decides which rows
    stay."""
    chosen = covering(Hospital("hospital")) | BY_HASH
    rows = world.policy.privacy_unit is None
    cases: list[Case] = [
        case for case in ACCEPTED
        if case.id in chosen and takes_its_options(case, rows)
    ]  # fmt: skip

    def observed() -> dict[str, Any]:
        seen = {}
        for case in cases:
            with world.options(case.marks.get("set", [])):
                seen[case.id] = world.observe(case.sql, case.parameters)
        return seen

    before = observed()
    states = world.session.context.index.prepare()
    assert {state.state for state in states} == {"written"}
    after = observed()
    read = 0
    for name, one in before.items():
        other = after[name]
        assert (one.outcome.split("\n")[0], one.columns, one.said, one.charges) == (
            other.outcome.split("\n")[0], other.columns, other.said, other.charges,
        ), name  # fmt: skip
        assert measured(one) == measured(other), name
        assert SCHEMA not in "".join(one.engine_sql)
        read += SCHEMA in "".join(other.engine_sql)
    assert read > 0.8 * sum(bool(one.engine_sql) for one in before.values())
    assert {state.state for state in world.session.context.index.prepare()} == {"there already"}
    drops_rows = world.policy.privacy_unit is not None
    assert (dropped(world) > 0) is drops_rows  # otherwise nothing was compared


def dropped(world: ServerWorld) -> int:
    """Return how many rows of visits the copy lacks compared with the source."""
    (every,) = (
        world.connection.execute("SELECT count(*) FROM public.visits WHERE patient_id IS NOT NULL").fetchone() or ()
    )
    names = [name for name, columns in copies(world.connection).items() if "cost" in columns]
    (kept,) = world.connection.execute(f'SELECT count(*) FROM "{SCHEMA}"."{names[0]}"').fetchone() or ()
    return int(every) - int(kept)


def copies(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """Return names of the copies, and their columns."""
    listed = connection.execute(
        "SELECT table_name, array_agg(column_name::text) FROM information_schema.columns "
        f"WHERE table_schema = '{SCHEMA}' GROUP BY table_name"
    ).fetchall()
    return dict(listed)


# --- rights, versions, erasure ---------------------------------------------------------------------------------------


@pytest.fixture
def reader(server: Server, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Create the roles `copy_reader`, which may read, and `copy_writer`, which may read and create the schema of copies. Yield
    the owner's connection."""
    with psycopg.connect(url, autocommit=True) as owner:
        database = (owner.execute("SELECT current_database()").fetchone() or ("",))[0]
        for name in ("copy_reader", "copy_writer"):
            owner.execute(f"DO $$ BEGIN CREATE ROLE {name} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
            owner.execute(f"GRANT SELECT ON people, visits, wards TO {name}")
        owner.execute(f"GRANT CREATE ON DATABASE {database} TO copy_writer")
        yield owner


def opened(server: Server, url: str, folder: Path, version: str = "spring", writer: str | None = "copy_writer") -> Any:
    """Return the index of a policy with the role `copy_reader`, and its engine."""
    from dpsql.testing import contract_policy

    database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    policy = replace(
        contract_policy(folder, source=server.url_of(database, "copy_reader"), data_version=version),
        prepare=Preparation(False, SCHEMA, writer),
    )
    engine = PostgreSQLEngine(policy)
    return ContributionIndex(policy, engine, lambda: KEY), engine


def test_another_role_writes_and_the_reader_may_only_read(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    index, engine = opened(server, url, tmp_path)
    assert index.unprepared() == ("people", "visits")
    assert index.notes(["visits"])[0].startswith("bounded view: visits not prepared")
    index.prepare()
    assert index.unprepared() == () and index.notes(["visits"]) == ("bounded view: visits prepared",)
    owners = reader.execute(f"SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = '{SCHEMA}'").fetchall()
    assert owners == [("copy_writer",)]
    place = index.views()("visits").sql
    assert engine.exact_rows(f"SELECT count(*) AS n FROM {place}").to_pylist() == [{"n": 5}]  # one row has no person
    database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    with psycopg.connect(server.url_of(database, "copy_reader"), autocommit=True) as theirs:
        for statement in (f"DELETE FROM {place}", f"DROP TABLE {place}", f'CREATE TABLE "{SCHEMA}".x ()'):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                theirs.execute(statement)
    engine.close()


def test_a_copy_is_of_one_version_of_the_data_and_of_one_ledger(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    index, engine = opened(server, url, tmp_path)
    index.prepare()
    first = set(copies(reader))
    other_ledger = ContributionIndex(engine._policy, engine, lambda: b"other" * 8)
    assert other_ledger.unprepared() == ("people", "visits")
    other_ledger.prepare()
    assert len(copies(reader)) == 4  # a copy of another ledger is neither read nor removed
    later, later_engine = opened(server, url, tmp_path, "summer")
    assert later.unprepared() == ("people", "visits")
    later.prepare()
    assert len(copies(reader)) == 4 and not first & set(copies(reader))
    assert index.unprepared() == ("people", "visits")  # a proxy with the earlier version reads the source
    engine.close()
    later_engine.close()


def test_a_policy_that_is_read_again_names_the_version_anew(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """Neither a copy nor a checked promise is used under another data_version than its own."""
    index, engine = opened(server, url, tmp_path)
    index.prepare()
    unique = "SELECT 1 AS broken FROM public.people GROUP BY id HAVING count(*) > 1 LIMIT 1"
    assert engine.holds(unique)
    reader.execute("INSERT INTO people SELECT * FROM people")
    assert engine.holds(unique)
    policy = replace(engine._policy, data_version="summer", prepare=replace(engine._policy.prepare, into="elsewhere"))
    later = engine.under(policy)
    assert not later.holds(unique)
    assert later.data_version(()) == "declared:summer" and engine.data_version(()) == "declared:spring"
    assert ContributionIndex(policy, later, lambda: KEY).unprepared() == ("people", "visits")
    assert index.unprepared() == ()
    engine.close()


def test_under_a_period_promises_are_checked_for_each_question(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """A day says how long answers are given again; rows may change in it, also such as a price relies on."""
    _, engine = opened(server, url, tmp_path)
    daily = engine.under(replace(engine._policy, data_version="daily", prepare=Preparation()))
    unique = "SELECT 1 AS broken FROM public.people GROUP BY id HAVING count(*) > 1 LIMIT 1"
    assert daily.holds(unique) and daily.identity("people") is None
    reader.execute("INSERT INTO people SELECT * FROM people")
    assert not daily.holds(unique)
    engine.close()


def test_a_copy_is_of_the_table_that_the_policy_names(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """After a policy takes a table, or one on its path to the unit, from another place, it reads no earlier copy, even with the
    same version, and it does not read the earlier place."""

    def moved(policy: Policy, table: str) -> Policy:
        return replace(policy, tables={**policy.tables, table: replace(policy.tables[table], source="guests")})

    index, engine = opened(server, url, tmp_path)
    index.prepare()
    reader.execute("CREATE TABLE guests AS SELECT * FROM people WHERE id = 1")
    reader.execute("GRANT SELECT ON guests TO copy_reader, copy_writer")
    policy = moved(engine._policy, "people")
    later = engine.under(policy)
    assert ContributionIndex(policy, later, lambda: KEY).unprepared() == ("people",)
    assert engine.source("people").sql == '"public"."people"'
    assert engine.under(policy).source("people").sql == '"public"."guests"'
    assert index.unprepared() == ()
    hospital = replace(policy_of("hospital"), data_version="spring", prepare=engine._policy.prepare)
    places = [engine.under(each).identity("labs") for each in (hospital, moved(hospital, "visits"))]
    assert places[0] is not None and places[0] != places[1]
    engine.close()


def test_all_copies_are_removed_where_rows_were_erased(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    index, engine = opened(server, url, tmp_path)
    index.prepare()
    reader.execute("DELETE FROM visits WHERE id = 1")
    assert index.remove_outdated() == 2 and copies(reader) == {}
    index.prepare()
    assert engine.exact_rows(f"SELECT count(*) AS n FROM {index.views()('visits').sql}").to_pylist() == [{"n": 3}]
    engine.close()


def of_other_bounds(engine: PostgreSQLEngine, most: int, **more: Any) -> ContributionIndex:
    """Return the index of the same policy with other max_rows of visits, over the same source and ledger."""
    visits = engine._policy.tables["visits"]
    bounded = replace(visits, bounds=replace(visits.bounds, max_rows=most))
    policy = replace(engine._policy, tables={**engine._policy.tables, "visits": bounded}, **more)
    return ContributionIndex(policy, engine.under(policy), lambda: KEY)


def test_policies_of_one_ledger_leave_each_other_s_copies(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """Each `prepare` drops earlier versions of its own views; `erase` drops all."""
    index, engine = opened(server, url, tmp_path)
    other = of_other_bounds(engine, 1)
    index.prepare()
    assert other.unprepared() == ("visits",)  # both policies have the same view of people
    other.prepare()
    index.prepare()
    assert index.unprepared() == other.unprepared() == () and len(copies(reader)) == 3
    assert index.copies_of_other_policies() == other.copies_of_other_policies() == 1
    places = {each.views()("visits").sql for each in (index, other)}
    counts = [engine.exact_rows(f"SELECT count(*) AS n FROM {place}").to_pylist()[0]["n"] for place in places]
    assert len(places) == 2 and sorted(counts) == [3, 5]
    later = of_other_bounds(engine, 1, data_version="summer")
    later.prepare()
    assert index.unprepared() == ("people",)  # both prepare people, and only the last version written remains
    assert later.unprepared() == () and len(copies(reader)) == 3
    assert later.remove_outdated() == 3 and copies(reader) == {} and later.copies_of_other_policies() == 0
    engine.close()


def test_a_copy_is_of_the_roles_that_fill_and_read_it(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """Row security may show each role other rows, and each reader needs the right to read."""
    index, engine = opened(server, url, tmp_path)
    index.prepare()
    reader.execute("DO $$ BEGIN CREATE ROLE copy_filler LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    reader.execute("GRANT SELECT ON people, visits, wards TO copy_filler")
    reader.execute(f"GRANT ALL ON SCHEMA {SCHEMA} TO copy_filler")
    filled, filling = opened(server, url, tmp_path, writer="copy_filler")
    assert filled.unprepared() == ("people", "visits")
    filled.prepare()
    assert filled.unprepared() == index.unprepared() == ()
    database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    policy = replace(engine._policy, source=server.url_of(database, "copy_filler"))
    read = PostgreSQLEngine(policy)
    assert ContributionIndex(policy, read, lambda: KEY).unprepared() == ("people", "visits")
    ContributionIndex(policy, read, lambda: KEY).prepare()
    assert ContributionIndex(policy, read, lambda: KEY).unprepared() == () and len(copies(reader)) == 6
    for each in (engine, filling, read):
        each.close()


def test_without_the_right_to_write_nothing_is_left_and_questions_go_on(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    index, engine = opened(server, url, tmp_path, writer=None)
    with pytest.raises(Fault) as fault:
        index.prepare()
    assert fault.value.slug == "index_not_written" and copies(reader) == {}
    assert index.views()("visits").sql is None
    engine.close()


def test_a_copy_that_fails_half_way_is_not_there(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """The source fails after the first rows; the definition precedes them."""
    reader.execute("ALTER TABLE visits RENAME TO rows_of_visits")
    reader.execute(
        "CREATE VIEW visits AS SELECT id, ward, day, CASE WHEN cost = 7 THEN 1 / (cost - 7) ELSE cost END AS cost "
        "FROM rows_of_visits"
    )
    reader.execute("GRANT SELECT ON visits TO copy_reader, copy_writer")
    index, engine = opened(server, url, tmp_path)
    with pytest.raises(Fault) as fault:
        index.prepare()
    assert fault.value.slug == "index_not_written"
    assert all("cost" not in columns for columns in copies(reader).values())
    assert index.unprepared() == ("visits",)
    engine.close()


def test_definitions_do_not_hold_the_key_of_the_order(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers often log definitions (log_statement = ddl)."""
    from dpsql.engine.postgresql import stored_views

    index, engine = opened(server, url, tmp_path)
    said: list[str] = []
    original = psycopg.Connection.execute

    def noted(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
        said.append(str(query))
        return original(self, query, *arguments, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    index.prepare()
    monkeypatch.undo()
    key = index.views()("visits").key
    definitions = [text for text in said if text.startswith("CREATE TABLE")]
    assert len(definitions) == 2 and not any(key in text for text in definitions)
    assert any(key in text for text in said if text.startswith("INSERT"))
    assert stored_views._NO_KEY in "".join(definitions)
    engine.close()


def test_a_server_that_prepares_by_itself_says_nothing_of_it(
    server: Server, url: str, tmp_path: Path, reader: psycopg.Connection[Any]
) -> None:
    """The time at which a copy becomes available depends on the rows, so EXPLAIN does not mention it."""
    index, engine = opened(server, url, tmp_path)
    automatic = replace(engine._policy, prepare=replace(engine._policy.prepare, automatic=True))
    told = ContributionIndex(automatic, engine, lambda: KEY)
    assert told.notes(["visits"]) == ()
    told.prepare()
    assert told.notes(["visits"]) == () and index.notes(["visits"]) != ()
    engine.close()
