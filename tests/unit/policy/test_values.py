"""Text of the policy to exact values: the smallest and the largest that is read, and the sentence for each that is not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpsql.policy import values

Reader = Callable[[Any], object]


def sentence(reader: Reader, raw: object) -> str:
    """Return what the owner reads about `raw`; fails where it is read."""
    with pytest.raises(ValueError) as caught:
        reader(raw)
    assert type(caught.value) is ValueError, "a mistake of the program, and no sentence"
    return str(caught.value)


ENDS = [
    (values.epsilon, ["1e-9", "10000"], ["0.99e-9", "10000.0000000001"], "epsilon must lie between 1e-9 and 10000"),
    (values.delta, ["1e-30", "0.000999999999999999"], ["0.9e-30", "0.001"], "delta must be at least 1e-30 and below"),
    (values.delta, ["0"], ["-1e-30", "1", "2"], "delta must lie between 0 and 1"),
    (values.confidence, ["0.5", "0.999999"], ["0.4999999", "0.9999991", "1"], "confidence must lie between 0.5 and"),
    (values.count, ["1", "1000000000"], ["0", "-1", "1000000001", "1.5"], "a whole number between 1 and 1000000000"),
    (values.amount, ["1e-300", "1e18"], ["0", "-1", "1000000000000000001"], "a number greater than 0 and at most 1e18"),
    (values.seconds, ["1", "86400"], ["86401"], "a timeout is at most 86400 seconds"),
    (values.delay, ["0.01", "3600"], ["0.00999", "3600.01", "-1"], "a time of response is from 0.01 to 3600 seconds"),
    (values.integer, ["-9223372036854775808", "9223372036854775807"], ["9223372036854775808"], "does not fit into 64"),
    (values.integer, ["0"], ["-9223372036854775809"], "does not fit into 64 bits"),
    (values.real, ["0", "1e-15", "-1e-15", "1e15", "-1e15"], ["0.9e-15", "-0.9e-15", "1.1e15", "-1.1e15"], "is absurd"),
]
"""A reader of numbers, the ends of what it reads, numbers just outside them, and how the sentence about those begins."""


@pytest.mark.parametrize(("reader", "inside", "beyond", "words"), ENDS)
def test_numbers_are_read_exactly_up_to_both_ends_and_refused_beyond(
    reader: Reader, inside: list[str], beyond: list[str], words: str
) -> None:
    assert [reader(text) for text in inside] == [Fraction(text) for text in inside]
    assert [words in sentence(reader, text) for text in beyond] == [True] * len(beyond)


WORDS: list[tuple[Reader, list[tuple[Any, Any]], list[Any], str]] = [
    (
        values.login,
        [(text, text) for text in ("a", "_", "ann.lee-2@example.org", "dp_ann", "x" * 63)],
        ["", "9a", ".a", "@a", "-a", "a b", "a\n", "é", "a:b", "x" * 64],
        "is no name for an analyst",
    ),
    (values.plain_text, [("", ""), ("é" * 1000, "é" * 1000)], ["\0", "a\0b", "x" * 1001], "at most 1000 characters and no NUL"),
    (values.scalars, [(["b", None, "a", "b"], ("b", None, "a", "b"))], [[], "a", {"a": "b"}, None], "a list of at least one value"),
    (values.scalars, [], [["a", ["b"]]], "one value is expected here, not a list"),
    (
        values.outside,
        [("drop", ()), ("other", ("other",)), ({"other": "rest"}, ("other", "rest"))],
        ["Drop", "", None, [], ["other"], {"other": None}, {"other": ["a"]}, {"drop": "a"}, {"other": "a", "b": "c"}],
        "write drop, other, or {other: VALUE}",
    ),
    (
        values.delimiter,
        [(text, text) for text in (",", ";", "|", "\t", " ")],
        ["", ",,", "a", "Z", "0", '"', "'", "\r", "\n", "\0", "§"],
        "a delimiter is one ASCII character and no letter",
    ),
    (
        values.quote,
        [('"', '"'), ("'", "'"), ("none", ""), ("|", "|")],
        ["", "None", '""', "a", "0", " ", "\t", "\n", "\0", "«"],
        "a quote is one ASCII character and no letter",
    ),
    (
        values.header,
        [("true", None), (["b", "a column"], ("b", "a column"))],
        ["false", "True", "a", None, {"a": "b"}],
        "write true where the first line names the columns",
    ),
    (values.header, [], [[], ["a", "a"], ["a", "A"]], "the list names each column once"),
    (values.null_texts, [("NA", ("NA",)), (["", "NA"], ("", "NA"))], [[None], None], "a text that means NULL is expected here, not null"),
]  # fmt: skip
"""A reader of texts and lists, what it reads as what, what it refuses, and words of the sentence."""


@pytest.mark.parametrize(("reader", "good", "bad", "words"), WORDS)
def test_texts_and_lists_are_read_or_refused_with_a_sentence(
    reader: Reader, good: list[tuple[Any, Any]], bad: list[Any], words: str
) -> None:
    assert [reader(raw) for raw, _ in good] == [value for _, value in good]
    assert [words in sentence(reader, raw) for raw in bad] == [True] * len(bad)


@pytest.mark.parametrize(
    "text", ["dp_a", "DP_A", "pg_", "Pg_class", "__", "__a", "information_schema", "Information_Schema"]
)
def test_names_of_the_system_are_reserved_in_any_case(text: str) -> None:
    assert (
        sentence(values.name, text) == f"{text} is reserved; names beginning with dp_, pg_ or __ belong to the system"
    )


def test_long_texts_of_the_owner_are_shortened_in_messages() -> None:
    assert values.quoted("x" * 40) == repr("x" * 40)
    assert values.quoted("x" * 41) == repr("x" * 40 + "...")
    assert len(sentence(values.boolean, "y" * 10_000)) < 100
