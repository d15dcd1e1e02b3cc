"""Rows of answers are sent in the formats that the client requests, in pieces, each row once, with NULL distinct from empty
values."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.clinic import build

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.questions import _error_bars
from dpsql.frontends.pgwire.rows import (
    BATCH,
    OIDS,
    ResultField,
    Rows,
)
from dpsql.plan.intervals import Type
from dpsql.session.session import open_session

NUMBER, TEXT = ResultField("n", e.INT4), ResultField("t", e.TEXT)


def numbers(count: int) -> Rows:
    return Rows((NUMBER,), pa.table({"n": pa.array(range(count), pa.int32())}))


def test_every_type_of_an_answer_has_an_oid() -> None:
    assert set(OIDS) == set(Type)
    scalars = {type_: oid for type_, oid in OIDS.items() if not type_.name.endswith("_LIST")}
    for type_, oid in scalars.items():
        if f"{type_.name}_LIST" in Type.__members__:
            assert OIDS[Type[f"{type_.name}_LIST"]] == e.ARRAY_OF[oid]


# --- fetching ---------------------------------------------------------------------------------------------------------


def test_a_batch_counts_as_fetched_when_it_is_handed_out() -> None:
    """A client that disconnects in the middle has not fetched rows that were not produced yet."""
    rows = numbers(2 * BATCH)
    assert len(next(rows.fetch(None, (0,)))) == BATCH
    assert (rows.left, rows.position) == (BATCH, BATCH)


def test_rows_in_the_other_order_are_a_copy_that_is_counted_and_moving_copies_nothing() -> None:
    table, account = numbers(1000).table, MemoryAccount(10_000)
    rows = Rows((NUMBER,), table, account.reserve(table.nbytes, "rows"), scrolls=True)
    assert (rows.move("forward all"), rows.move("backward 900"), rows.position) == (1000, 900, 101)
    assert account.held == table.nbytes
    back = rows.part("backward all")
    assert back.table is not None and back.held is not None
    assert back.table.column(0).to_pylist() == list(range(99, -1, -1))
    assert account.held == table.nbytes + back.table.nbytes
    back.held.release()
    with account.reserve(4_000, "rows"):
        rows.move("absolute 1000")
        with pytest.raises(Error, match="memory"):
            rows.part("backward all")
        assert (rows.position, rows.move("backward all"), account.held) == (1000, 999, table.nbytes + 4_000)


def test_bars_of_hundreds_of_measures_are_told_and_those_of_long_computed_answers_are_not(tmp_path: Path) -> None:
    asked = "SELECT age, region, {} AS x, COUNT(*) AS n FROM patients GROUP BY age, region"
    with open_session(build(tmp_path), create_ledger=True) as session:
        bars = _error_bars(session.execute(asked.format("SUM(weight)")))
        assert bars.startswith("error bars (95 %): x \N{PLUS-MINUS SIGN} ") and ", n \N{PLUS-MINUS SIGN} " in bars
        assert _error_bars(session.execute(asked.format("100 * COUNT(*) / SUM(COUNT(*)) OVER ()"))) == ""
