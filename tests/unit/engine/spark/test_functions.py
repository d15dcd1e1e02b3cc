"""Row functions in Spark agree with `evaluate`, and no data raises an error."""

import random
from typing import Any

import pyarrow as pa
import pytest
from support.random_expressions import COLUMNS, LIBM, SPECS, B, D, I, R, S, T, apply, grow, random_rows, same
from support.spark_source import show, spark

from dpsql.engine.spark.dialect import FUNCTIONS, SPARK, UNSUPPORTED
from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY
from dpsql.functions.values import like, lower, upper
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Call, Column, Literal

__all__ = ["spark"]
ROWS = random_rows(random.Random(20240229), 160)
ARROW = {I: pa.int64(), R: pa.float64(), T: pa.string(), B: pa.bool_(), D: pa.date32(), S: pa.timestamp("us")}
TOGETHER = 25
"""Number of expressions per query: Spark compiles each query anew."""


class Rows:
    """The rows above in Spark."""

    def __init__(self, spark: Any) -> None:
        from dpsql.engine.spark.tables import pinned

        self.session = pinned(spark)
        schema = pa.schema([("place", pa.int64()), *((n, ARROW[c.facts.type]) for n, c in COLUMNS.items())])
        rows = [{"place": place, **row} for place, row in enumerate(ROWS)]
        show(self.session, "sample", pa.Table.from_pylist(rows, schema))

    def columns(self, texts: list[str], order: str = " ORDER BY place") -> list[list[Any]]:
        items = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
        try:
            table = self.session.sql(f"SELECT {items} FROM global_temp.sample{order}").toArrow()
        except Exception as error:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self.columns(texts[:middle], order) + self.columns(texts[middle:], order)
            raise AssertionError(f"{texts[0]}\n{str(error)[:600]}") from None
        return [
            (column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column).to_pylist()
            for column in table.columns
        ]

    def differences(self, expressions: list[Call]) -> list[str]:
        wrong, written = [], []
        for expression in expressions:
            try:
                written.append((expression, SPARK.expression(expression)))
            except Refusal as refusal:
                assert refusal.slug == "engine_function"
        assert len(written) > len(expressions) / 2
        for start in range(0, len(written), TOGETHER):
            part = written[start : start + TOGETHER]
            for (expression, text), theirs in zip(part, self.columns([text for _, text in part]), strict=True):
                relative = 4e-15 if expression.function in LIBM else 0.0
                for row, value in zip(ROWS, theirs, strict=True):
                    ours = evaluate(expression, row)
                    if not same(ours, value, relative):
                        wrong.append(f"{text}: ours {ours!r}, theirs {value!r}, {row}")
                        break
        return wrong


@pytest.fixture(scope="module")
def rows(spark: Any) -> Rows:
    return Rows(spark)


def test_every_function_is_written_or_has_its_reason() -> None:
    assert set(FUNCTIONS) | set(UNSUPPORTED) == set(REGISTRY)
    assert set(FUNCTIONS) & set(UNSUPPORTED) == set() and all(UNSUPPORTED.values())


def test_each_function_means_what_python_says(rows: Rows) -> None:
    rng = random.Random(1)
    assert not rows.differences([apply(rng, spec, 1) for spec in SPECS for _ in range(2)])


def test_trees_of_functions_mean_what_python_says(rows: Rows) -> None:
    rng = random.Random(101)
    assert not rows.differences([apply(rng, rng.choice(SPECS), rng.choice((2, 3))) for _ in range(120)])


def test_conditions_filter_and_group_without_an_error(rows: Rows) -> None:
    rng = random.Random(7)
    for tree in [grow(rng, B, 2) for _ in range(12)]:
        try:
            text = SPARK.expression(tree)
        except Refusal:
            continue
        counts = rows.session.sql(f"SELECT count(*) FROM global_temp.sample WHERE {text} GROUP BY {text}").toArrow()
        assert sum(counts.column(0).to_pylist()) == sum(evaluate(tree, row) is True for row in ROWS), text


def test_case_of_every_letter_is_that_of_python(rows: Rows) -> None:
    """Many letters in one text, because rows are what takes time; ASCII letters, which are translated differently, also
    separately."""
    every = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    together = ["".join(every[start : start + 500]) for start in range(0, len(every), 500)]
    texts = ["".join(every[:127]), *together]
    show(rows.session, "letters", pa.table({"t": texts}))
    python = {"lower": lower, "upper": upper}
    items = [SPARK.expression(Call(name, (Column("t", Facts(T)),), Facts(T))) for name in python]
    table = rows.session.sql(f"SELECT t, {items[0]} AS c0, {items[1]} AS c1 FROM global_temp.letters").toArrow()
    read, *mapped = (column.to_pylist() for column in table.columns)
    assert sorted(read) == sorted(texts)
    for function, theirs in zip(python.values(), mapped, strict=True):
        assert [text for text, other in zip(read, theirs, strict=True) if function(text) != other] == []


def test_like_is_exact_and_takes_no_time_to_fail(rows: Rows) -> None:
    """A pattern with many % on a long text that almost matches: backtracking would take years."""
    texts = ["a" * 20_000, "a\nb", "a\r\n", "ab", "", "\u2028", "👍🏽", "a\\b", "$", "x^"]
    show(rows.session, "long_texts", pa.table({"t": texts}))
    patterns = ["%a%a%a%a%a%a%a%a%b", "a_b", "a__", "%_", "__", "%\\%", "%$", "_^", "%%%", "a%b%c", "", "%a%"]
    column = Column("t", Facts(T))
    items = [SPARK.expression(Call("like", (column, Literal(p, Facts(T))), Facts(B))) for p in patterns]
    table = rows.session.sql(
        f"SELECT {', '.join(f'{x} AS c{n}' for n, x in enumerate(items))} FROM global_temp.long_texts"
    ).toArrow()
    for pattern, theirs in zip(patterns, table.columns, strict=True):
        assert theirs.to_pylist() == [like(text, pattern) for text in texts], pattern


def test_clipping_is_refused_with_its_reason() -> None:
    with pytest.raises(Refusal) as refusal:
        SPARK.require_clipping()
    assert refusal.value.slug == "engine_function" and SPARK.without_clipping in refusal.value.message


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_function_that_is_not_exact_is_refused_with_its_reason(name: str) -> None:
    spec = next(spec for spec in SPECS if spec[0] == name)
    with pytest.raises(Refusal) as refusal:
        SPARK.expression(apply(random.Random(3), spec, 1))
    assert refusal.value.slug == "engine_function" and UNSUPPORTED[name] in refusal.value.message
