"""The policy's text to a tree of texts: nothing is guessed, nothing wins silently, and what YAML can do beyond that is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dpsql.policy import yaml_text
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
    "no",
    "true",
    "1e-6",
    "0x10",
    "1_0",
    "2024-01-01",
    "007",
    "1.0",
    ".inf",
    "NaN",
    "a b",
    "12:30:45",
    "Null",
    "NULL",
]


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
        "",
        "a",
        'say "no"',
        "back\\slash",
        "two\nlines",
        "tab\t",
        "\0",
        "\x85",
        "\u2028",
        "\ufeff",
        "é€😀",
        "# no: remark",
        "\u202e",
        "'",
    ],
)
def test_a_quoted_text_is_read_back_as_it_was_and_stands_on_one_line(text: str) -> None:
    written = quoted(text)
    assert tree(f"key: {written}") == {"key": text}
    assert len(written.splitlines()) == 1 and all(character.isprintable() for character in written)
    assert list(yaml.safe_load_all(written)) == [text]
