"""Questions about public values: DuckDB's answers are those of the functions' meaning; other engines share some functions only."""

import random
from datetime import date
from fractions import Fraction

import pytest
from support.random_expressions import literal
from support.seeds import seeds

from dpsql.functions import key_questions
from dpsql.functions.key_narrowing import remaining
from dpsql.functions.key_questions import EVALUATED, Candidates, PublicValues, Span, Unanswered, ValueQuestion
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Scan
from dpsql.planning.planner import AskedValues
from dpsql.release.sandbox import shared_sandbox

DAY, NUMBER, WORD = Column("d", Facts(Type.DATE)), Column("n", Facts(Type.INTEGER)), Column("w", Facts(Type.TEXT))
FLAG, REAL = Column("f", Facts(Type.BOOLEAN)), Column("x", Facts(Type.REAL))
TABLES = (
    Candidates(("d",), ((None,),), Span(date(2024, 2, 27), date(2024, 3, 2))), Candidates(("n",), (), Span(-2, 3)),
    Candidates(("w", "f"), (("a", True), ("", None), ("É", False), (None, True))), Candidates(("x",), ((0.5,), (-1.5,), (None,))),
)  # fmt: skip
KEYS: tuple[Expr, ...] = (
    DAY, NUMBER, WORD, FLAG, REAL, call("date_trunc", literal("month"), DAY), call("mod", NUMBER, literal(2)), call("upper", WORD),
    call("concat", WORD, literal("-"), call("to_text", NUMBER)), call("add", NUMBER, REAL), call("round", REAL), call("not", FLAG),
    call("strftime", DAY, literal("%d")), call("case", call("gt", NUMBER, literal(0)), WORD, literal("none")),
)  # fmt: skip
CONDITIONS: tuple[Expr, ...] = (
    call("gt", DAY, literal(date(2024, 2, 28))), call("is_null", DAY), call("or", FLAG, call("eq", NUMBER, literal(1))),
    call("ne", WORD, literal("a")), call("lt", REAL, NUMBER), call("not_distinct", FLAG, literal(None)),
)  # fmt: skip


@pytest.mark.parametrize("seed", seeds(10, 1))
def test_the_engine_answers_as_the_functions_mean(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    engine = AskedValues(shared_sandbox())
    monkeypatch.setattr(key_questions, "MOST_EVALUATED", 10**7)
    for _ in range(8):
        keys = tuple(chance.sample(KEYS, chance.randrange(3)))
        question = ValueQuestion(keys, TABLES, tuple(chance.sample(CONDITIONS, chance.randrange(3))))
        rows = engine.rows(question)
        if keys:
            assert set(rows) == set(EVALUATED.rows(question)) and len(set(rows)) == len(rows)
        else:
            assert bool(rows) == bool(EVALUATED.rows(question))


def test_questions_of_too_many_candidates_are_not_answered() -> None:
    wide = tuple(Candidates((name,), (), Span(0, 9999)) for name in ("n", "m"))
    question = ValueQuestion((call("add", NUMBER, Column("m", NUMBER.facts)),), wide, ())
    for values in (EVALUATED, AskedValues(shared_sandbox()).for_engine("duckdb")):
        with pytest.raises(Unanswered):
            values.rows(question)
    with pytest.raises(Unanswered):
        AskedValues(shared_sandbox()).rows(ValueQuestion((Call("like", (NUMBER, WORD), FLAG.facts),), TABLES, ()))


@pytest.mark.parametrize(("engine", "remain"), [("duckdb", ("A", "É")), ("postgresql", ("?",)), ("spark", ("?",))])
def test_images_hold_on_engines_that_share_the_function(engine: str, remain: tuple[str, ...]) -> None:
    """Letters beyond ASCII are changed by other rules elsewhere: there, the key keeps the values that it has without the image."""
    values = AskedValues(shared_sandbox()).for_engine(engine)
    for written, left_values in ((("a", "é"), remain), (("a", "b"), ("A", "B"))):
        word = Column("w", Facts(Type.TEXT, values=written, nullable=False))
        asked = [(call("upper", word), ("?",))]
        assert remaining(Scan("t", (word,)), asked, public_values=values).values == (left_values,)
    number = Column("n", Facts(Type.INTEGER, Fraction(0), Fraction(3), nullable=False))
    left = remaining(Scan("t", (number,)), [(call("mul", number, literal(2)), None)], public_values=values)
    assert left.values == ((0, 2, 4, 6),)
    part = Column("r", Facts(Type.REAL, Fraction(0), Fraction(1), nullable=False))
    bucket = call("width_bucket", part, literal(0), literal(1), literal(2))
    assert remaining(Scan("t", (part,)), [(bucket, None)], public_values=values).values == ((1, 2, 3),)


def test_spans_are_short_to_write_and_long_to_list() -> None:
    assert len(Span(-2, 3)) == 6 and list(Span(-1, 1)) == [-1, 0, 1]
    assert list(Span(date(2024, 2, 28), date(2024, 3, 1))) == [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]
    assert PublicValues().shares(call("upper", WORD)) and not PublicValues().shares(
        Call("sample.of", (WORD,), FLAG.facts)
    )
