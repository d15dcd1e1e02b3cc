"""Casts in a question: of literals that have no such value (refused), and to reals of single precision (read as double).

They are judged in the text, so that a cast means the same over rows, over results and over public tables.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Type, literal_facts
from dpsql.plan.plan import Literal

NOT_FINITE = re.compile(r"\s*(nan|[+-]?inf(inity)?)\s*", re.IGNORECASE)
"""Texts of reals that are no finite numbers."""
_READ_AS = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), Type.INTEGER),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL), Type.REAL),
    exp.DType.BOOLEAN: Type.BOOLEAN,
}
_CALLED = {
    Type.INTEGER: ("an integer", "digits alone, as in '40'"),
    Type.REAL: ("a number", "it with a decimal point, as in '1234.5'"),
    Type.BOOLEAN: ("a truth value", "'true' or 'false'"),
}


def with_plain_casts(tree: exp.Query) -> exp.Query:
    """Return the tree with DOUBLE for FLOAT and REAL. Refuses (unreadable_literal) a cast, not a TRY_CAST, of a text literal that
    is no value of the type: it would be NULL, and the answer, which is charged, one about nothing."""
    for cast in tree.find_all(exp.Cast):
        if cast.to.this is exp.DType.FLOAT:
            cast.set("to", exp.DataType(this=exp.DType.DOUBLE))
        if not isinstance(cast, exp.TryCast):
            _check(cast)
    return tree


def _check(cast: exp.Cast) -> None:
    value, type_ = cast.this.unnest(), _READ_AS.get(cast.to.this)
    if type_ is None or not isinstance(value, exp.Literal) or not value.is_string:
        return
    text = str(value.this)
    if type_ is Type.REAL and NOT_FINITE.fullmatch(text):
        return
    if evaluate(call(f"to_{type_.value}", Literal(text, literal_facts(text))), {}) is None:
        (called, such), start = _CALLED[type_], value.meta_get("start")
        raise refuse(
            "unreadable_literal", text=text, called=called, such=such, position=None if start is None else start + 1
        )
