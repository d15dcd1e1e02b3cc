"""Notices, EXPLAIN and refusals name what the question or the policy names, never what the plan has named itself."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pytest
from support.corpus_traits import SPREAD
from support.exact_session import exact_session
from support.neighbouring_hospitals import SCHEMAS, together
from support.places import policy
from support.recording_session import World

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Column, filled
from dpsql.planning.planner import Planned
from dpsql.session.session import Session
from sql.corpus import ACCEPTED, REFUSED, Case

OWN = re.compile(r"dp#|\bdp_(?:\d|cte|result)\w*|\b[ckmpst]\d+\b")
"""Names that plans give to blocks, results, keys, measures, projections and terms."""
QUICK = 9
"""Every ninth query runs by default; of the accepted ones, those with syntax of their own run slowly, and the others at night."""


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Session]:
    """Return a function that opens a session over an empty hospital, whose rows are privacy units if its argument is true."""

    @lru_cache(maxsize=2)
    def opened(rows: bool) -> Session:
        connection = duckdb.connect(config={"threads": 1})
        for table, schema in SCHEMAS.items():
            connection.register("rows", pa.Table.from_pylist(together({}, {}).get(table, []), schema))
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
        folder = tmp_path_factory.mktemp("ledger")
        return exact_session(policy("hospital_rows" if rows else "hospital"), connection, folder / f"{uuid4().hex}.db")

    return opened


@lru_cache(maxsize=2)
def planning(rows: bool) -> Session:
    return World(policy("hospital_rows" if rows else "hospital")).session


def inner_names(planned: Planned) -> Iterator[str]:
    """Return the names of columns, blocks, results, keys, measures and terms of a plan."""
    columns: set[str] = set()

    def note(part: Any) -> Any:
        if isinstance(part, Column):
            columns.add(part.name.rpartition(".")[2])
        return part

    filled(planned.plan.blocks, note)
    yield from columns
    for priced in planned.price.blocks:
        block = priced.block
        yield from (block.name, *(key.name for key in block.keys), *(term.name for term in block.terms))
        yield from (name for name, _, _ in block.formulas)
    for result in planned.plan.results:
        yield from (result.name, *(column.name for column in result.columns))


def words(text: str) -> set[str]:
    return set(re.findall(r"[\w#]+", text.lower()))


def foreign(names: set[str], text: str, sql: str) -> set[str]:
    """Return those of `names` that a message has, but neither the question nor the policy."""
    tables = policy("hospital").tables
    declared = {name for table in tables.values() for name in (table.name, *table.columns)}
    if "dp#" in sql.lower():  # which a refusal of that name quotes
        return set()
    own = {name for name in names | set(OWN.findall(text)) if OWN.search(name) or "_" in name}
    return ({name.lower() for name in own} & words(text)) - words(sql) - {name.lower() for name in declared}


def cases(every: list[Case], chosen: list[Case]) -> list[Any]:
    rest = [pytest.mark.slow if case in chosen else pytest.mark.nightly for case in every]
    marks = [() if number % QUICK == 0 else mark for number, mark in enumerate(rest)]
    return [pytest.param(case, id=case.id, marks=mark) for case, mark in zip(every, marks, strict=True)]


def prepared(case: Case, opened: Callable[[bool], Session]) -> Session:
    of_case = opened(case.mark("policy") == "rows")
    of_case.execute("RESET ALL")
    for line in case.marks.get("set", []):
        of_case.execute(line if line.upper().startswith("SET") else f"SET {line}")
    return of_case


@pytest.mark.parametrize("case", cases(ACCEPTED, SPREAD))
def test_explain_and_notices_use_the_words_of_the_question(case: Case, sessions: Callable[[bool], Session]) -> None:
    asked = prepared(case, sessions)
    planned = asked.plan(asked.planner.parse(case.sql, case.parameters), case.parameters)
    if planned.options.threshold is not None:
        return
    plan = asked.explain_planned(planned)
    said = "\n".join([plan.to_text(), *plan.notes])
    assert not foreign(set(inner_names(planned)), said, case.sql), said


@pytest.mark.parametrize("case", cases(REFUSED, REFUSED))
def test_refusals_use_the_words_of_the_question(case: Case) -> None:
    with pytest.raises(Error) as caught:
        asked = prepared(case, planning)
        planned = asked.plan(asked.planner.parse(case.sql, case.parameters), case.parameters)
        asked.rehearse(planned)
        asked.explain_planned(planned)  # which looks public rows up
    assert not foreign(set(), f"{caught.value.message} {caught.value.hint}", case.sql), caught.value.text()
