"""The policy's text to a tree of texts: nothing is guessed, nothing wins silently, and what YAML can do beyond that is refused."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import yaml

from dpsql.policy import values, yaml_text
from dpsql.policy.yaml_text import MOST_DEPTH, Problems, Unreadable, quoted, read_yaml


def tree(text: str) -> Any:
    """Return what is read, where nothing is wrong with it."""
    problems = Problems()
    read = read_yaml(text, problems)
    assert problems.listed() == []
    return read


def refused(text: str) -> str:
    with pytest.raises(Unreadable) as caught:
        read_yaml(text, Problems())
    return str(caught.value)


SCALARS = [
    "no", "true", "1e-6", "0x10", "1_0", "2024-01-01", "007", "1.0", ".inf", "NaN", "a b", "12:30:45", "Null", "NULL",
]  # fmt: skip


@pytest.mark.parametrize("text", SCALARS)
def test_every_scalar_is_the_text_that_is_written(text: str) -> None:
    assert tree(f"key: {text}") == {"key": text}
    assert tree(f"[a, {text}]") == ["a", text]
    assert tree(f'key: "{text}"') == tree(f"key: '{text}'") == {"key": text}


# --- problems with a place ------------------------------------------------------------------------------------------


def with_problems(text: str) -> tuple[Any, list[tuple[str, str]]]:
    problems = Problems()
    return read_yaml(text, problems), problems.listed()


def test_of_two_equal_keys_the_first_is_kept_and_the_second_is_a_problem() -> None:
    read, problems = with_problems("a: 1\nb: {c: 1, c: [2, 3]}\na: {d: 2}\na: 3\n")
    assert read == {"a": "1", "b": {"c": "1"}}
    assert problems == [
        ("$.a", "line 1: the key a is written twice (again on line 3)"),
        ("$.b.c", "line 2: the key c is written twice (again on line 2)"),
    ]


def test_every_key_and_item_has_its_line() -> None:
    problems = Problems()
    read_yaml("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\na: 4\n", problems)
    lines = {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "d"): 5}
    assert problems.lines == lines, "of a key that is written twice, the first line"


# --- what is not read -----------------------------------------------------------------------------------------------

REFUSED = [
    ("", "the file is empty"),
    ("# only a remark\n", "the file is empty"),
    ("a: 1\n---\nb: 2", "the file holds more than one YAML document"),
    ("a:\n\tb: 2", "line 2: cannot be read as YAML: there is a tab; indent with blanks"),
    ("a: &x 1\nb: 2", "line 1: anchors and aliases (& and *) are not allowed in a policy"),
    ("a: 1\nb: &x [1]", "line 2: anchors and aliases (& and *) are not allowed in a policy"),
    ("a: &x {b: 1}", "line 1: anchors and aliases (& and *) are not allowed in a policy"),
    ("a: 1\nb: *x", "line 2: anchors and aliases (& and *) are not allowed in a policy"),
    ("a: !!int 1", "line 1: tags (!) are not allowed in a policy"),
    ("a: 1\nb: ! 1", "line 2: tags (!) are not allowed in a policy"),
    ("a: !!python/object:os.system {}", "line 1: tags (!) are not allowed in a policy"),
    ("a: {b: 1}\nc:\n  <<: {b: 2}", "line 3: merges (<<) are not allowed in a policy"),
    ("? [a]\n: 1", "line 1: a key must be plain text"),
    ("a: 1\n? {b: 1}\n: 1", "line 2: a key must be plain text"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_a_policy_has_no_use_for_is_refused_with_its_line(text: str, sentence: str) -> None:
    assert refused(text) == sentence


def nested(depth: int) -> str:
    return "[" * depth + "x" + "]" * depth


def test_nesting_ends_at_the_greatest_depth() -> None:
    read = tree(nested(MOST_DEPTH))
    for _ in range(MOST_DEPTH):
        (read,) = read
    assert read == "x"
    for depth in (MOST_DEPTH + 1, 5_000):
        assert refused(nested(depth)).endswith(f"nested deeper than {MOST_DEPTH} levels")
    assert refused("{a: " * (MOST_DEPTH + 1) + "1" + "}" * (MOST_DEPTH + 1)) == "line 1: nested deeper than 10 levels"


def test_values_end_at_the_greatest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, items, lists and mappings are counted."""
    monkeypatch.setattr(yaml_text, "MOST_NODES", 6)
    assert tree("{a: [1, 2]}") == {"a": ["1", "2"]}
    assert tree("[1, 2, 3, 4, 5]") == ["1", "2", "3", "4", "5"]
    assert refused("- 1\n- 2\n- 3\n- 4\n- 5\n- 6\n") == "line 6: a policy has at most 6 values"
    assert refused("{a: [1, 2], b: 3}") == "line 1: a policy has at most 6 values"


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    assert refused("\n".join(lines)).startswith("line 1: anchors")


# --- writing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "", "a", 'say "no"', "back\\slash", "two\nlines", "tab\t", "\0", "\x85", "\u2028", "\ufeff", "é€😀",
        "# no: remark", "\u202e", "'",
    ],
)  # fmt: skip
def test_a_quoted_text_is_read_back_as_it_was_and_stands_on_one_line(text: str) -> None:
    written = quoted(text)
    assert tree(f"key: {written}") == {"key": text}
    assert len(written.splitlines()) == 1 and all(character.isprintable() for character in written)
    assert list(yaml.safe_load_all(written)) == [text]


# --- Text of the policy to exact values: the smallest and the largest that is read, and the sentence for each that is not ---


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
