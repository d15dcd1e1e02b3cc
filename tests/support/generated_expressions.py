"""Questions that match generated regular expressions, and patterns of LIKE and SIMILAR TO, in generated texts."""

import random
from collections.abc import Iterator

_SIGNS = (
    "a", "b", "c", "ab", "foo", "1", r"\d", r"\w", r"\s", "[ab]", "[^a]", ".", r"\W", "[[:alpha:]]", "[a-c1]", "A", r"\.", r"\n", "é", "{", "]",
)  # fmt: skip
_PLACES = ("^", "$", r"\y", r"\Y", r"\m", r"\M", r"\A", r"\Z", "[[:<:]]")
_WRONG = ("*", "(", ")", "[", r"\1", "a{1", "[z-a]", r"\q", "a{300}", "[[:no:]]")
_QUANTIFIERS = (
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{1,2}",
    "{0,2}",
    "{0}",
    "{1,2}?",
    "{2}?",
    "{1,}",
    "{1,1}?",
    "{2,}?",
)
_QUESTIONS = (
    "substring({t}, {f})", "regexp_match({t}, {f}, '{o}')", "regexp_matches({t}, {f}, 'g{o}')", r"regexp_replace({t}, {f}, '<\1\&>', 'g{o}')",
    "regexp_split_to_array({t}, {f}, '{o}')", "regexp_split_to_table({t}, {f})", "regexp_count({t}, {f}, {k}, '{o}')",
    "regexp_instr({t}, {f}, {k}, 2, 1)", "regexp_instr({t}, {f}, 1, 1, 0, '{o}', {k})", "regexp_substr({t}, {f}, 1, 1, '{o}', {k})",
    "{t} ~ {f}", "{t} !~* {f}", "regexp_like({t}, {f}, '{o}')", "regexp_replace({t}, {f}, '#', {k}, 2)",
)  # fmt: skip


def _part(numbers: random.Random, depth: int) -> str:
    kind = numbers.random()
    if kind < 0.01:
        return numbers.choice(_WRONG)
    if kind < 0.15:
        return numbers.choice(_PLACES)
    if kind < 0.2 and depth:
        return f"({numbers.choice(('?=', '?!', '?<=', '?<!'))}{_expression(numbers, depth - 1)})"
    part = (
        f"({numbers.choice(('', '?:'))}{_expression(numbers, depth - 1)})"
        if kind < 0.5 and depth
        else numbers.choice(_SIGNS)
    )
    return part + numbers.choice(_QUANTIFIERS) * (numbers.random() < 0.5)


def _expression(numbers: random.Random, depth: int) -> str:
    branches = numbers.choice((1, 1, 2, 3))
    return "|".join("".join(_part(numbers, depth) for _ in range(numbers.randint(0, 4))) for _ in range(branches))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def matches(seed: int, count: int) -> Iterator[str]:
    """Yield questions that match expressions and patterns in texts."""
    numbers = random.Random(seed)
    for _ in range(count):
        text = "".join(
            numbers.choice(("a", "b", "ab", "foo", "foobar", "1", " ", "\n", "A", "é", "."))
            for _ in range(numbers.randint(0, 7))
        )
        facts = {"t": _literal(text), "f": _literal(_expression(numbers, numbers.randint(0, 2)))}
        yield "SELECT " + numbers.choice(_QUESTIONS).format(
            **facts, o=numbers.choice(("", "", "i", "n", "p", "w")), k=numbers.randint(1, 2)
        )
        pattern = "".join(
            numbers.choice(("a", "b", "%", "_", "foo", r"\%", r"\\", ".")) for _ in range(numbers.randint(0, 5))
        )
        yield f"SELECT {facts['t']} {numbers.choice(('LIKE', 'NOT LIKE', 'ILIKE', 'SIMILAR TO'))} {_literal(pattern)}"
