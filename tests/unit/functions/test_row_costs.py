"""The bound on the cost of a row: every function has one, it grows with texts and programs, and anything beyond it is refused."""

import random

import pytest
from support.places import policy

from dpsql.errors.exceptions import Refusal
from dpsql.functions.row_costs import MOST_MATCHED, MOST_OF_A_QUESTION, MOST_READ, block_cost, cost, program
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Block, Call, Column, Expr, Filter, Literal
from dpsql.sql.binder.query import bind
from dpsql.sql.parse import parse

TEXT = Column("t", Facts(Type.TEXT))


def text(value: str) -> Literal:
    return Literal(value, literal_facts(value))


def number(value: int) -> Literal:
    return Literal(value, literal_facts(value))


def part(length: int) -> Call:
    return call("left", TEXT, number(length))


def block(where: str) -> Block:
    (found,) = bind(parse(f"SELECT COUNT(*) FROM patients WHERE {where}"), policy("hospital")).blocks
    return found


def condition(where: str) -> Expr:
    source = block(where).source
    assert isinstance(source, Filter)
    return source.predicate


@pytest.mark.parametrize(
    ("short", "longer"),
    [
        ("a", "ab"), ("a", "a{2}"), ("a{2}", "a{3}"), ("(ab){3}", "(ab){4}"), ("(a{10}){10}", "((a{10}){10}){10}"),
        ("[ab]", "[abc]"), (".", "..") , ("a", "(?i)a"), ("k", "(?i)k"), ("a|b", "a|b|c"), ("[a]", "[^a]"),
        ("[a-z]", "[\\pL]"), ("\\d", "\\D"), ("a{3}", "a{3,}"), ("x", "\\x{1F600}"), ("a", "\u00e4"),
    ],
)  # fmt: skip
def test_longer_patterns_have_longer_programs(short: str, longer: str) -> None:
    assert program(short) < program(longer)


def test_a_repetition_repeats_all_that_stands_before_it() -> None:
    """RE2 copies the repeated part; its limit of 1,000 applies to one repetition, and this bound counts products."""
    assert program("a.{480}z") > 2_400
    assert program("(a.{20}){20}") > 20 * program(".{20}")
    assert program("(?:[ab]{5}){3,9}") > 9 * 5 * 2


def test_functions_read_the_first_characters_of_a_column() -> None:
    assert condition("city LIKE '%a_'") == call("like", call("left", *_city(), number(MOST_READ)), text("%a_"))
    assert condition("city ~ 'a'") == call("regexp_matches", call("left", *_city(), number(MOST_MATCHED)), text("a"))
    assert condition("left(city, 3) ~ 'a'") == call("regexp_matches", call("left", *_city(), number(3)), text("a"))


def _city() -> list[Expr]:
    found = condition("city = 'x'")
    assert isinstance(found, Call)
    return [found.arguments[0]]


def test_all_branches_count_towards_the_cost() -> None:
    """A row takes one branch, but which one is unknown: the bound is the sum of all."""
    one, two = (block(f"city ~ '{pattern}'") for pattern in ("a.b", "a.c"))
    both = block("CASE WHEN age > 30 THEN city ~ 'a.b' ELSE city ~ 'a.c' END")
    assert block_cost(both) >= block_cost(one) + block_cost(two) - 100


def test_the_attack_is_refused() -> None:
    letters = "x" * 4_000
    dear = f"NOT concat(city, '{letters}') ~ 'a.{{480}}z'"
    with pytest.raises(Refusal) as caught:
        block(f"CASE WHEN patient_id = 7 AND smoker THEN {dear} ELSE FALSE END")
    assert caught.value.slug == "slow_expression"


def test_random_patterns_are_bounded_or_refused() -> None:
    """Everything accepted is within the bound, and the bound follows from length times program."""
    random_ = random.Random(7)
    accepted = 0
    for _ in range(300):
        pieces = [random_.choice(["a", ".", "[ab]", "\\d", "(a|b)", "[^x]"]) for _ in range(random_.randint(1, 6))]
        pattern = "".join(piece + random_.choice(["", "", "*", "+", "{3}", "{2,40}"]) for piece in pieces)
        length = random_.choice([10, 100, 1_000])
        try:
            found = block(f"left(city, {length}) ~ '{pattern}'")
        except Refusal as refusal:
            assert refusal.slug == "slow_expression" and program(pattern) * 4 * length * 10 > 900_000
            continue
        accepted += 1
        assert program(pattern) * 4 * length * 10 <= block_cost(found) <= MOST_OF_A_QUESTION
    assert 50 < accepted < 290


def test_backtracking_patterns_of_like_are_bounded() -> None:
    assert cost(call("like", part(1_000), text("%a%b%c%"))) < 1_000_000
    assert cost(call("like", part(1_000), text("%a_%b_%c_%d"))) > MOST_OF_A_QUESTION
