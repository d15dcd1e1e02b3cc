"""SQL text that chooses the distinct values, at most l (`max_values`), that each unit contributes (privacy.md 4).

A unit's distinct pairs of a group and a value are ordered by a keyed hash of the unit and the pair, and numbered from 1:
the pair's *place*. Only rows that have a value, pass the condition and belong to a group count; rows with equal pairs have
equal places, so that repetitions do not use up places. A term counts the values that some unit has at one of its first l
places.

A unit's places depend only on its own rows and the key. So adding a unit keeps all values that were counted before, and
adds at most l, each in one group: the l pairs at its own first places. Removing a unit removes at most l. Places by rows
instead of pairs would let a unit that repeats one value lose all others, and places within each group would let it
contribute l values to every group.
"""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bounded_view import rank
from dpsql.engine.emit.clipping import RowTerm
from dpsql.plan.intervals import Type
from dpsql.plan.plan import UNIT, Term


def place_name(term: Term) -> str:
    """Return the name of the column of a row's place for a term."""
    return f'"place.{term.name}"'


def with_places(
    rows: str, placed: tuple[RowTerm, ...], keys: tuple[str, ...], inside: str, key: str, dialect: Dialect
) -> str:
    """Return a SELECT of `rows` with each row's place for every term of `placed`. `inside`: the condition for rows that belong
    to a group ("": all do); `key`: the secret of keyed orders. The place of a row that does not count is meaningless."""
    unit = dialect.identifier(UNIT)
    columns = []
    for part in placed:
        counted = " AND ".join(filter(None, (_present(part, dialect), part.condition, inside)))
        partition = [unit, f"CASE WHEN {counted} THEN 1 ELSE 0 END"]
        place = rank(dialect, key, partition, (*keys, _value(part, dialect)), "dense_rank")
        columns.append(f"{place} AS {place_name(part.term)}")
    return f"SELECT *, {', '.join(columns)} FROM {dialect.derived(rows)}"


def _is_real(part: RowTerm) -> bool:
    return part.term.value is not None and part.term.value.facts.type is Type.REAL


def _present(part: RowTerm, dialect: Dialect) -> str:
    not_null = f"{part.row} IS NOT NULL"
    return f"{not_null} AND NOT {dialect.is_nan(part.row)}" if _is_real(part) else not_null


def _value(part: RowTerm, dialect: Dialect) -> str:
    """Return the text of the value to hash: values that are equal in SQL, such as the two zeros, become equal in every bit."""
    return dialect.real_key(part.row) if _is_real(part) else part.row
