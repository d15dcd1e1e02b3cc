"""Queries of the corpora with a few tokens deleted, repeated, swapped, or taken from another query."""

import random
import re
from collections.abc import Callable

from sql.corpus import ACCEPTED, REFUSED
from support.places import TESTS

_TOKEN = re.compile(r"\s+|--[^\n]*|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|::|<=|>=|<>|!=|\|\||->>?|.", re.DOTALL)
_WORD = re.compile(r"\w+\Z")
_COVERAGE = TESTS / "answers"
MOST_TOKENS = 400
"""Longer texts of the corpus are deliberately long and are tested separately (test_limits)."""


def tokens(text: str) -> list[str]:
    """Return the tokens of a text, with white space as separate tokens; joined, they are the text."""
    return _TOKEN.findall(text)


def corpus() -> dict[str, list[str]]:
    """Return the texts of tests/sql and tests/answers by the policy that they use."""
    found: dict[str, list[str]] = {"hospital": [], "hospital_rows": []}
    for case in (*ACCEPTED, *REFUSED):
        found["hospital_rows" if case.mark("policy") == "rows" else "hospital"].append(case.sql)
    for name, policy in (("tpch", "tpch"), ("clickbench", "clickbench"), ("bi", "shop")):
        text = (_COVERAGE / f"{name}.sql").read_text(encoding="utf-8")
        parts = re.split(r"^-- query: .*$", text, flags=re.MULTILINE)[1:]
        found[policy] = ["\n".join(line for line in part.splitlines() if not line.startswith("-- ")) for part in parts]
    return {policy: [text for text in texts if len(tokens(text)) <= MOST_TOKENS] for policy, texts in found.items()}


Change = Callable[[random.Random, list[str], list[str]], list[str]]


def _delete(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    start, end = _range(rng, one)
    return one[:start] + one[end:]


def _repeat(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    start, end = _range(rng, one)
    return [*one[:end], " ", *one[start:end], *one[end:]]


def _swap(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    a, b = sorted(rng.randrange(len(one)) for _ in range(2))
    changed = list(one)
    changed[a], changed[b] = changed[b], changed[a]
    return changed


def _splice(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    start, end = _range(rng, one)
    first, last = _range(rng, other)
    return [*one[:start], " ", *other[first:last], " ", *one[end:]]


def _exchange(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    """Replace a word by another word, a number by a number, or an operator by an operator: most results still parse."""
    at = rng.randrange(len(one))
    same = [token for token in other if bool(_WORD.match(token)) == bool(_WORD.match(one[at])) and not token.isspace()]
    return [*one[:at], rng.choice(same), *one[at + 1 :]] if same and not one[at].isspace() else one


def _operand(rng: random.Random, one: list[str], other: list[str]) -> list[str]:
    """Replace a bracketed part by another one: a subquery in place of arguments, a CASE in a list."""
    here, there = _bracketed(one), _bracketed(other)
    if not here or not there:
        return one
    (start, end), (first, last) = rng.choice(here), rng.choice(there)
    return one[:start] + other[first:last] + one[end:]


def _bracketed(parts: list[str]) -> list[tuple[int, int]]:
    found, opened = [], []
    for at, token in enumerate(parts):
        if token == "(":
            opened.append(at)
        elif token == ")" and opened:
            found.append((opened.pop(), at + 1))
    return found


def _range(rng: random.Random, parts: list[str]) -> tuple[int, int]:
    start = rng.randrange(len(parts))
    return start, min(len(parts), start + rng.choice([1, 1, 1, 2, 3, 5, 9]))


CHANGES: tuple[Change, ...] = (_delete, _repeat, _swap, _splice, _exchange, _exchange, _exchange, _operand, _operand)


def mutated(rng: random.Random, texts: list[str]) -> str:
    """Return one text of the corpus after one to three changes."""
    one = tokens(rng.choice(texts))
    for _ in range(rng.choice([1, 1, 2, 3])):
        other = tokens(rng.choice(texts))
        if one and other:
            one = rng.choice(CHANGES)(rng, one, other)
    return "".join(one)
