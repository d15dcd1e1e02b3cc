"""Text of the policy to exact values: the smallest and the largest that is read, and the sentence for each that is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
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


@pytest.mark.parametrize(
    "text", ["dp_a", "DP_A", "pg_", "Pg_class", "__", "__a", "information_schema", "Information_Schema"]
)
def test_names_of_the_system_are_reserved_in_any_case(text: str) -> None:
    assert (
        sentence(values.name, text) == f"{text} is reserved; names beginning with dp_, pg_ or __ belong to the system"
    )


def test_logins_may_hold_dots_at_signs_and_hyphens_after_the_first_character() -> None:
    good = ["a", "_", "ann.lee-2@example.org", "dp_ann", "x" * 63]
    assert [values.login(text) for text in good] == good
    for text in ("", "9a", ".a", "@a", "-a", "a b", "a\n", "é", "a:b", "x" * 64):
        assert sentence(values.login, text).startswith(f"{values.quoted(text)} is no name for an analyst")


def test_lists_of_names_hold_each_once() -> None:
    assert values.names(["a", "b"]) == ("a", "b")
    assert values.name_sets(["a", ["b", "c"], ["a"]]) == (("a",), ("b", "c"), ("a",))
    assert values.name_set("a") == ("a",) and values.name_set("a , b,c") == ("a", "b", "c")
    for repeated in ([], ["a", "a"]):
        assert sentence(values.names, repeated) == "column names are expected here, each once"
    assert sentence(values.name_set, "a,a") == "column names are expected here, each once"
    no_lists: list[Any] = [[], "a", {"a": "b"}, None]
    for raw in no_lists:
        assert sentence(values.name_sets, raw).startswith("a list is expected here")
    for text in ("a,", "", "a\t, b", "a b"):
        assert "is not a plain name" in sentence(values.name_set, text)


def test_long_texts_of_the_owner_are_shortened_in_messages() -> None:
    assert values.quoted("x" * 40) == repr("x" * 40)
    assert values.quoted("x" * 41) == repr("x" * 40 + "...")
    assert len(sentence(values.boolean, "y" * 10_000)) < 100


def test_text_values_have_no_nul_and_at_most_a_thousand_characters() -> None:
    assert [values.plain_text(text) for text in ("", "é" * 1000)] == ["", "é" * 1000]
    for text in ("\0", "a\0b", "x" * 1001):
        with pytest.raises(ValueError, match="at most 1000 characters and no NUL"):
            values.plain_text(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-02-09", datetime(2024, 2, 9)),
        ("2024-02-09 10:11", datetime(2024, 2, 9, 10, 11)),
        ("2024-02-09T10:11:12", datetime(2024, 2, 9, 10, 11, 12)),
        ("2024-02-09 10:11:12.5", datetime(2024, 2, 9, 10, 11, 12, 500_000)),
        ("2024-02-09 10:11:12.000007", datetime(2024, 2, 9, 10, 11, 12, 7)),
        ("9999-12-31 23:59:59.999999", datetime.max),
    ],
)
def test_timestamps_are_read_to_the_microsecond_and_without_a_zone(text: str, moment: datetime) -> None:
    assert values.timestamp(text) == moment and values.timestamp(text).tzinfo is None


@pytest.mark.parametrize("text", ["2024-02-09 24:00", "2024-02-09 10:60", "2024-02-09 10:11:60"])
def test_times_that_no_clock_shows_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not in the calendar$"):
        values.timestamp(text)


def test_lists_of_values_keep_their_order_and_null() -> None:
    assert values.scalars(["b", None, "a", "b"]) == ("b", None, "a", "b")
    no_lists: list[Any] = [[], "a", {"a": "b"}, None]
    for raw in no_lists:
        assert sentence(values.scalars, raw) == "a list of at least one value is expected here"
    assert sentence(values.scalars, ["a", ["b"]]) == "one value is expected here, not a list"


def test_values_outside_a_domain_are_dropped_or_one_more_group() -> None:
    assert values.outside("drop") == ()
    assert values.outside("other") == ("other",)
    assert values.outside({"other": "rest"}) == ("other", "rest")
    for raw in (
        "Drop",
        "",
        None,
        [],
        ["other"],
        {"other": None},
        {"other": ["a"]},
        {"drop": "a"},
        {"other": "a", "b": "c"},
    ):
        assert sentence(values.outside, raw).startswith("write drop, other, or {other: VALUE}")


def test_a_delimiter_is_one_character_that_no_cell_is_written_with() -> None:
    assert [values.delimiter(text) for text in (",", ";", "|", "\t", " ")] == [",", ";", "|", "\t", " "]
    for text in ("", ",,", "a", "Z", "0", '"', "'", "\r", "\n", "\0", "§"):
        assert sentence(values.delimiter, text).startswith("a delimiter is one ASCII character and no letter")


def test_a_quote_is_one_character_or_none() -> None:
    assert [values.quote(text) for text in ('"', "'", "none", "|")] == ['"', "'", "", "|"]
    for text in ("", "None", '""', "a", "0", " ", "\t", "\n", "\0", "«"):
        assert sentence(values.quote, text).startswith("a quote is one ASCII character and no letter")


def test_a_header_is_true_or_the_names_of_the_columns_each_once() -> None:
    assert values.header("true") is None
    assert values.header(["b", "a column"]) == ("b", "a column")
    for raw in ("false", "True", "a", None, {"a": "b"}):
        assert sentence(values.header, raw).startswith("write true where the first line names the columns")
    for repeated in ([], ["a", "a"], ["a", "A"]):
        assert sentence(values.header, repeated) == "the list names each column once"


def test_texts_that_mean_null_are_one_or_several() -> None:
    assert values.null_texts("NA") == ("NA",)
    assert values.null_texts(["", "NA"]) == ("", "NA")
    assert sentence(values.null_texts, [None]) == "a text that means NULL is expected here, not null"
    assert sentence(values.null_texts, None) == "a text that means NULL is expected here, not null"
