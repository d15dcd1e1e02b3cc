"""Text of the policy to exact values: the smallest and the largest that is read, and the sentence for each that is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest

from dpsql.policy import values
from dpsql.policy.types import COLUMN_TYPES

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


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "-1e-9"])
def test_an_epsilon_that_is_not_positive_has_a_sentence_of_its_own(text: str) -> None:
    assert sentence(values.epsilon, text) == "epsilon must be greater than 0"


NUMBERS = [values.epsilon, values.delta, values.confidence, values.count, values.amount, values.seconds, values.delay]


@pytest.mark.parametrize("reader", [*NUMBERS, values.integer, values.real])
@pytest.mark.parametrize("text", ["", "NaN", "inf", "1_0", "0x10", "1/2", " 1", "1\n", "one", "١"])
def test_what_is_no_decimal_number_is_read_as_none(reader: Reader, text: str) -> None:
    assert "is expected here (not a decimal number" in sentence(reader, text)


def test_whole_numbers_may_be_written_with_a_point_or_a_power() -> None:
    assert [values.count(text) for text in ("7.0", "7e3", "70e-1")] == [7, 7000, 7]
    assert all(type(reader("5.0")) is int for reader in (values.count, values.seconds, values.integer))
    assert "is not a whole number, and the column is of type integer" in sentence(values.integer, "7.5")


READERS_OF_TEXT: list[tuple[Reader, str]] = [
    (values.epsilon, "an epsilon, a number greater than 0,"),
    (values.delta, "a delta, a number between 0 and 1,"),
    (values.confidence, "a confidence such as 0.95"),
    (values.count, "a whole number of at least 1"),
    (values.amount, "a number greater than 0"),
    (values.delay, "a number of seconds"),
    (values.boolean, "true or false"),
    (values.name, "a name"),
    (values.login, "an analyst's name"),
    (values.reference, "a target written table.column"),
    (values.name_set, "column names"),
    (values.prose, "text"),
    (values.scalar, "one value"),
    (lambda raw: values.typed(raw, "date"), "a value of type date"),
    (lambda raw: values.choice(("day", "week"), raw), "one of day, week"),
    (values.delimiter, "a delimiter, one character,"),
    (values.quote, "a quote, one character or none,"),
]


@pytest.mark.parametrize(("reader", "expected"), READERS_OF_TEXT)
@pytest.mark.parametrize(("raw", "kind"), [(None, "null"), (["1"], "a list"), ({"a": "1"}, "a mapping"), (1, "someth")])
def test_a_list_a_mapping_and_null_are_named_as_what_stands_there(
    reader: Reader, expected: str, raw: object, kind: str
) -> None:
    assert sentence(reader, raw).startswith(f"{expected} is expected here, not {kind}")


def test_true_and_false_are_spelled_exactly() -> None:
    assert values.boolean("true") is True and values.boolean("false") is False
    for text in ("True", "FALSE", "yes", "on", "1", "", "true "):
        assert sentence(values.boolean, text) == f"true or false is expected here, not {text!r}"


@pytest.mark.parametrize("text", ["a", "_a", "A9_", "dp", "dpx_a", "pg", "pgx", "_", "_a__", "x" * 63, "information"])
def test_plain_names_are_read_as_they_stand(text: str) -> None:
    assert values.name(text) == text
    assert values.names(text) == (text,)


@pytest.mark.parametrize(
    "text", ["", "9a", "a-b", "a b", "a\n", "é", "a.b.", ".a", "a.", "a.9", "1.b", "x" * 64, "a;--"]
)
def test_what_is_no_plain_name_is_refused_with_what_one_is(text: str) -> None:
    assert sentence(values.name, text).startswith(f"{values.quoted(text)} is not a plain name: a letter or _, then")


@pytest.mark.parametrize(
    "text", ["dp_a", "DP_A", "pg_", "Pg_class", "__", "__a", "information_schema", "Information_Schema"]
)
def test_names_of_the_system_are_reserved_in_any_case(text: str) -> None:
    assert (
        sentence(values.name, text) == f"{text} is reserved; names beginning with dp_, pg_ or __ belong to the system"
    )


def test_a_table_in_a_schema_is_refused_with_how_it_is_written() -> None:
    assert sentence(values.name, "sales.orders").endswith(
        "has a dot; of a table in a schema write orders and below it schema: sales"
    )


def test_logins_may_hold_dots_at_signs_and_hyphens_after_the_first_character() -> None:
    good = ["a", "_", "ann.lee-2@example.org", "dp_ann", "x" * 63]
    assert [values.login(text) for text in good] == good
    for text in ("", "9a", ".a", "@a", "-a", "a b", "a\n", "é", "a:b", "x" * 64):
        assert sentence(values.login, text).startswith(f"{values.quoted(text)} is no name for an analyst")


def test_a_target_is_a_table_a_dot_and_a_column() -> None:
    assert values.reference("visits.id") == ("visits", "id")
    for text in ("visits", "visits.", ".id", "a.b.c", "a. b", "a.b\n", "9.b", ""):
        assert sentence(values.reference, text) == f"a target written table.column is expected here, not {text!r}"


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


def test_a_word_that_is_no_choice_is_refused_with_the_choices_and_the_nearest() -> None:
    words = ("day", "week", "month")
    assert [values.choice(words, word) for word in words] == list(words)
    assert sentence(lambda raw: values.choice(words, raw), "wekk") == (
        "'wekk' is not one of day, week, month; did you mean week?"
    )
    assert sentence(lambda raw: values.choice(words, raw), "Day").endswith("did you mean day?")
    assert sentence(lambda raw: values.choice(words, raw), "") == "'' is not one of day, week, month"


def test_long_texts_of_the_owner_are_shortened_in_messages() -> None:
    assert values.quoted("x" * 40) == repr("x" * 40)
    assert values.quoted("x" * 41) == repr("x" * 40 + "...")
    assert len(sentence(values.boolean, "y" * 10_000)) < 100


def test_text_for_people_has_one_to_a_thousand_characters() -> None:
    assert [values.prose(text) for text in ("x", "é" * 1000)] == ["x", "é" * 1000]
    for text in ("", "x" * 1001):
        assert sentence(values.prose, text) == "text of 1 to 1000 characters is expected here"


def test_text_values_have_no_nul_and_at_most_a_thousand_characters() -> None:
    assert [values.plain_text(text) for text in ("", "é" * 1000)] == ["", "é" * 1000]
    for text in ("\0", "a\0b", "x" * 1001):
        with pytest.raises(ValueError, match="at most 1000 characters and no NUL"):
            values.plain_text(text)


@pytest.mark.parametrize(
    ("text", "day"),
    [("0001-01-01", date.min), ("9999-12-31", date.max), ("2024-02-29", date(2024, 2, 29))],
)
def test_dates_of_the_calendar_are_read(text: str, day: date) -> None:
    assert values.calendar_date(text) == day and type(values.calendar_date(text)) is date


NO_DATES = [
    "2024-2-9",
    "24-02-09",
    "20240209",
    "2024-W06-5",
    "2024-02-09 ",
    "2024-02-09\n",
    "2024/02/09",
    "٢٠٢٤-02-09",
    "",
]
NOT_IN_THE_CALENDAR = ["2023-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "0000-01-01"]


@pytest.mark.parametrize("text", [*NO_DATES, "2024-02-09 10:00"])
def test_dates_in_another_writing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a date written YYYY-MM-DD is expected here, not"):
        values.calendar_date(text)


@pytest.mark.parametrize("text", NOT_IN_THE_CALENDAR)
def test_days_that_there_are_not_are_refused(text: str) -> None:
    for reader, written in (
        (values.calendar_date, text),
        (values.timestamp, text),
        (values.timestamp, f"{text} 10:00"),
    ):
        with pytest.raises(ValueError) as caught:
            reader(written)
        assert str(caught.value) == f"{written!r} is not in the calendar"


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


@pytest.mark.parametrize(
    "text",
    [
        *NO_DATES[:-2],
        "2024-02-09 10",
        "2024-02-09 10:11:12.",
        "2024-02-09 10:11:12.1234567",
        "2024-02-09 10:11Z",
        "2024-02-09 10:11+00:00",
        "2024-02-09  10:11",
        "2024-02-09_10:11",
        "2024-02-09 10:11.5",
    ],
)
def test_timestamps_in_another_writing_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^a timestamp written YYYY-MM-DD HH:MM:SS, without zone, is expected here, not"
    ):
        values.timestamp(text)


@pytest.mark.parametrize("text", ["2024-02-09 24:00", "2024-02-09 10:60", "2024-02-09 10:11:60"])
def test_times_that_no_clock_shows_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not in the calendar$"):
        values.timestamp(text)


TYPED = [
    ("integer", "7", 7),
    ("real", "7.25", Fraction(29, 4)),
    ("text", "7", "7"),
    ("boolean", "true", True),
    ("date", "2024-02-09", date(2024, 2, 9)),
    ("timestamp", "2024-02-09", datetime(2024, 2, 9)),
]


@pytest.mark.parametrize(("column_type", "text", "value"), TYPED)
def test_a_value_is_read_by_the_type_of_its_column(column_type: str, text: str, value: object) -> None:
    read = values.typed(text, column_type)
    assert read == value and type(read) is type(value)


def test_every_type_that_a_column_may_have_has_a_reader() -> None:
    assert set(values.READERS) == {case[0] for case in TYPED} == set(COLUMN_TYPES)


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
