"""What is known of the results of functions of texts before any row is read, what they refuse, and their values at the ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import REGISTRY, WrongArguments, call
from dpsql.functions.text import MOST_PARTS, MOST_SHORT
from dpsql.functions.text_values import MOST_TEXT
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Column, Expr, Literal

T = Column("t", Facts(Type.TEXT, nullable=False))
U = Column("u", Facts(Type.TEXT, nullable=False))
NULLABLE = Column("t", Facts(Type.TEXT))
NUMBER = Column("n", Facts(Type.INTEGER, nullable=False))
WORDS = Column("t", Facts(Type.TEXT, values=("éé", "abc", "", None)))
NOTHING = Column("t", Facts(Type.TEXT, values=(None,)))


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


def refused(name: str, *arguments: Expr) -> str:
    with pytest.raises(WrongArguments) as caught:
        call(name, *arguments)
    return str(caught.value)


def value(name: str, text: str, *arguments: Any) -> Any:
    return evaluate(call(name, T, *map(literal, arguments)), {"t": text})


LITERALS: dict[str, tuple[Any, ...]] = {
    "like": ("a%",), "ilike": ("a%",), "left": (2,), "right": (2,), "substr": (1, 2), "replace": ("a", "b"),
    "regexp_matches": ("a",), "regexp_replace": ("a", "b", True), "split_part": (",", 1), "starts_with": ("a",),
    "ends_with": ("a",), "contains": ("a",), "strpos": ("a",), "lower": (), "upper": (), "trim": (), "ltrim": (),
    "rtrim": (), "length": (), "strlen": (), "concat": ("a",),
}  # fmt: skip
"""Further arguments with which each function takes a text."""
BOOLEAN = {"like", "ilike", "regexp_matches", "starts_with", "ends_with", "contains"}
COUNTING = {"length", "strlen", "strpos"}


@pytest.mark.parametrize("name", LITERALS)
def test_the_type_of_a_result_and_whether_it_may_be_null_follow_from_the_text(name: str) -> None:
    type_ = Type.BOOLEAN if name in BOOLEAN else Type.INTEGER if name in COUNTING else Type.TEXT
    for text, nullable in ((T, False), (NULLABLE, True)):
        facts = call(name, text, *map(literal, LITERALS[name])).facts
        assert (facts.type, facts.nullable) == (type_, nullable)


@pytest.mark.parametrize("name", LITERALS)
def test_a_number_is_no_text_and_neither_more_nor_fewer_arguments_fit(name: str) -> None:
    rest = [literal(argument) for argument in LITERALS[name]]
    assert refused(name, NUMBER, *rest) == "argument 1 must be text, not integer"
    if name != "concat":
        with pytest.raises(WrongArguments):
            call(name, T, *rest, literal("a"), literal("a"))
        assert rest == [] or refused(name, *rest)


# --- what is literal ------------------------------------------------------------------------------------------------

NO_LITERALS: list[tuple[str, tuple[Expr, ...], str]] = [
    ("like", (T, U), "takes a literal pattern"),
    ("ilike", (T, U), "takes a literal pattern"),
    ("regexp_matches", (T, U), "takes a literal pattern"),
    ("regexp_matches", (T, literal(None)), "takes a literal pattern"),
    ("regexp_replace", (T, U, literal("b"), literal(True)), "takes a literal pattern"),
    ("regexp_replace", (T, literal("a"), U, literal(True)), "takes a literal replacement"),
    ("replace", (T, U, literal("b")), "takes literal texts of at most 20 characters to find and to put"),
    ("replace", (T, literal("a"), U), "takes literal texts of at most 20 characters to find and to put"),
    ("replace", (T, literal("a"), literal(None)), "takes literal texts of at most 20 characters to find and to put"),
    ("split_part", (T, U, literal(1)), "takes a literal separator"),
    ("split_part", (T, literal(","), NUMBER), "takes a literal integer from 1 to 10000"),
    ("left", (T, NUMBER), "takes a literal integer from 0 to 10000"),
    ("right", (T, NUMBER), "takes a literal integer from 0 to 10000"),
    ("substr", (T, NUMBER), "takes a literal integer from 1 to 10000"),
    ("substr", (T, literal(1), NUMBER), "takes a literal integer from 0 to 10000"),
    ("concat_ws", (U, T), "takes a literal separator"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), NO_LITERALS)
def test_what_must_be_known_beforehand_is_a_literal(name: str, arguments: tuple[Expr, ...], words: str) -> None:
    assert refused(name, *arguments) == words


NUMBERS = [("left", (), 0), ("right", (), 0), ("substr", (), 1), ("substr", (1,), 0), ("split_part", (",",), 1)]


@pytest.mark.parametrize(("name", "before", "least"), NUMBERS)
def test_numbers_of_characters_and_parts_are_from_the_least_to_ten_thousand(
    name: str, before: tuple[Any, ...], least: int
) -> None:
    for count in (least, 10_000):
        assert call(name, T, *map(literal, (*before, count))).facts.type is Type.TEXT
    for count in (least - 1, 10_001, True):
        assert refused(name, T, *map(literal, (*before, count)))


@pytest.mark.parametrize(
    ("name", "arguments", "place"),
    [
        ("replace", ("a", "b"), 0),
        ("replace", ("a", "b"), 1),
        ("regexp_replace", ("a", "b", True), 1),
        ("split_part", (",", 1), 0),
    ],
)
def test_texts_that_are_put_in_are_short(name: str, arguments: tuple[Any, ...], place: int) -> None:
    longest = [*arguments[:place], "x" * MOST_SHORT, *arguments[place + 1 :]]
    assert call(name, T, *map(literal, longest)).facts.type is Type.TEXT
    longest[place] = "x" * (MOST_SHORT + 1)
    assert "20 characters" in refused(name, T, *map(literal, longest))


def test_a_separator_is_not_empty_where_it_splits_and_may_be_where_it_joins() -> None:
    assert refused("split_part", T, literal(""), literal(1)) == "takes a separator of 1 to 20 characters"
    assert call("concat_ws", literal(""), T).facts == Facts(Type.TEXT, nullable=False)
    assert call("concat_ws", literal("x" * MOST_SHORT), T).facts.type is Type.TEXT
    assert refused("concat_ws", literal("x" * (MOST_SHORT + 1)), T) == "takes a separator of at most 20 characters"


def test_as_many_texts_are_joined_as_are_allowed() -> None:
    assert call("concat", *[T] * MOST_PARTS).facts.type is Type.TEXT
    assert refused("concat", *[T] * (MOST_PARTS + 1)) == refused("concat") == "takes 1 to 20 texts"
    assert call("concat_ws", literal(","), *[T] * MOST_PARTS).facts.type is Type.TEXT
    for texts in ([], [T] * (MOST_PARTS + 1)):
        assert refused("concat_ws", literal(","), *texts) == "takes a separator and 1 to 20 texts"
    assert refused("concat", T, NUMBER) == "argument 2 must be text, not integer"


@pytest.mark.parametrize("pattern", ["(", "[", "(?<=a)b", r"(a)\1", r"\B", r"a\C", r"\Qa", "x" * 201])
def test_patterns_that_the_engine_would_fail_at_are_refused_by_both_functions(pattern: str) -> None:
    words = refused("regexp_matches", T, literal(pattern))
    assert (words.startswith("takes ") and "pattern" in words) or words == "takes a regular expression as RE2 reads it"
    assert refused("regexp_replace", T, literal(pattern), literal("b"), literal(True)) == words


def test_a_replacement_names_groups_that_the_pattern_has() -> None:
    assert call("regexp_replace", T, literal("(a)b"), literal(r"\1"), literal(False)).facts.type is Type.TEXT
    assert refused("regexp_replace", T, literal("ab"), literal(r"\1"), literal(False))


# --- what is known of the result ------------------------------------------------------------------------------------


def test_the_length_of_listed_texts_is_at_most_that_of_the_longest() -> None:
    """In characters, or in bytes of UTF-8."""
    for name, longest in (("length", 3), ("strlen", 4)):
        facts = call(name, WORDS).facts
        assert (facts.lower, facts.upper) == (0, longest)
        assert longest == max(evaluate(call(name, T), {"t": word}) for word in ("éé", "abc", ""))
        assert (call(name, NOTHING).facts.lower, call(name, NOTHING).facts.upper) == (0, 0)
        assert (call(name, T).facts.lower, call(name, T).facts.upper) == (Fraction(0), None)


def test_a_list_of_values_stays_one_where_the_part_that_is_read_is_all_of_them() -> None:
    for count, kept in ((2, None), (3, WORDS.facts.values), (10_000, WORDS.facts.values)):
        assert call("left", WORDS, literal(count)).facts.values == kept
        assert call("right", WORDS, literal(count)).facts.values == kept
    assert call("left", NOTHING, literal(0)).facts.values == (None,)
    assert call("left", T, literal(3)).facts.values is None


def test_a_place_in_a_text_is_none_or_from_one() -> None:
    assert (call("strpos", T, U).facts.lower, call("strpos", T, U).facts.upper) == (0, None)
    assert [value("strpos", "abcab", part) for part in ("a", "b", "ab", "c", "x", "")] == [1, 2, 1, 3, 0, 1]


# --- values ---------------------------------------------------------------------------------------------------------

VALUES: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("left", "abc", (0,), ""),
    ("left", "abc", (2,), "ab"),
    ("left", "abc", (4,), "abc"),
    ("right", "abc", (0,), ""),
    ("right", "abc", (2,), "bc"),
    ("right", "abc", (3,), "abc"),
    ("right", "abc", (4,), "abc"),
    ("substr", "abc", (1,), "abc"),
    ("substr", "abc", (3,), "c"),
    ("substr", "abc", (4,), ""),
    ("substr", "abc", (2, 0), ""),
    ("substr", "abc", (2, 1), "b"),
    ("substr", "abc", (2, 9), "bc"),
    ("ilike", "ABC", ("a%C",), True),
    ("like", "ABC", ("a%C",), False),
    ("like", "abc", ("a_",), False),
    ("starts_with", "abc", ("",), True),
    ("starts_with", "abc", ("b",), False),
    ("ends_with", "abc", ("bc",), True),
    ("ends_with", "abc", ("ab",), False),
    ("contains", "abc", ("b",), True),
    ("contains", "b", ("abc",), False),
    ("split_part", "a,b", (",", 2), "b"),
    ("split_part", "a,b", (",", 3), ""),
    ("replace", "aaa", ("a", "bb"), "bbbbbb"),
    ("regexp_replace", "aaa", ("a", "b", False), "baa"),
    ("regexp_replace", "aaa", ("a", "b", True), "bbb"),
    ("regexp_matches", "xay", ("a",), True),
    ("regexp_matches", "xay", ("^a",), False),
    ("strlen", "aé€", (), 6),
    ("length", "aé€", (), 3),
]


@pytest.mark.parametrize(("name", "text", "arguments", "expected"), VALUES)
def test_characters_are_counted_from_one_and_none_is_lost_at_either_end(
    name: str, text: str, arguments: tuple[Any, ...], expected: Any
) -> None:
    assert value(name, text, *arguments) == expected


def test_texts_that_grow_are_cut() -> None:
    long = "a" * MOST_TEXT
    assert value("concat", long, "b") == long and value("concat", long[1:], "b") == long[1:] + "b"
    assert len(value("replace", long, "a", "bb")) == MOST_TEXT
    assert value("regexp_replace", long, "a", "bb", True) == "b" * MOST_TEXT
    assert value("regexp_replace", long + "c", "a", "", False) == long[1:], "what is beyond is not read"


@pytest.mark.parametrize("name", sorted(LITERALS))
def test_functions_of_texts_are_null_only_where_a_text_is(name: str) -> None:
    assert REGISTRY[name].strict
    expression = call(name, NULLABLE, *map(literal, LITERALS[name]))
    assert evaluate(expression, {"t": None}) is None
    assert evaluate(expression, {"t": ""}) is not None
