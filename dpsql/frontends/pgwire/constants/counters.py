"""What a PostgreSQL server counts of its work (pg_stat_get_...): nothing is counted here, and nothing is in progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsql.frontends.pgwire.catalog.shape import static
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import REGISTER, function


def _nothing(type_: str) -> Any:
    """Return the count of a type of number; None of times and texts."""
    return (0.0 if type_ == "float8" else 0) if type_ in t.NUMBERS else None


def _register(name: str, arguments: Sequence[int], result: str, many: bool, columns: Any) -> None:
    shape = (
        tuple((label, t.named(oid)) for label, oid, mode in zip(*columns, strict=True) if mode != "i")
        if columns[1]
        else ()
    )
    record = t.Record(tuple(_nothing(type_) for _, type_ in shape), tuple(type_ for _, type_ in shape))
    value = record if shape else None if name.startswith("pg_stat_get_backend") else _nothing(result)
    signature = f"{name}({', '.join(map(t.named, arguments))}) {'*' * many}{result}"
    function(signature, shape=shape, strict=False)(lambda *values: [] if many else value)


_FACTS = ("name", "argtypes", "rettype", "retset", "argnames", "allargtypes", "argmodes")
for _name, _arguments, _result, _many, *_columns in zip(
    *(static("pg_proc")[f"pro{fact}"] for fact in _FACTS), strict=True
):
    if _name.startswith("pg_stat_get_") and _name not in REGISTER:
        _register(_name, _arguments, t.named(_result), _many, _columns)
