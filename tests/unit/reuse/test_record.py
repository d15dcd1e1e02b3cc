"""Released blocks in written form: what identifies a sum, what a description contains, and that it is read back unchanged."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsql.errors.exceptions import Fault
from dpsql.functions.numeric import call
from dpsql.noise.perturb import NoisyAnswer, NoisyTerm
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.combinations import combinations
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.measurements import MostFrequentValue
from dpsql.plan.plan import (
    BoundedBlock,
    Caps,
    Clip,
    Column,
    Expr,
    Filter,
    Key,
    Literal,
    Relation,
    Scan,
    Term,
    TermKind,
    columns_read,
)
from dpsql.policy.bounds import ContributionBounds
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Noise, NoisePlan, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.most_frequent import MostFrequent, MostFrequentPlan
from dpsql.privacy.mechanisms.partition_selection import threshold
from dpsql.reuse import record
from dpsql.reuse.record import StoredFactor, StoredKey, StoredTerm, base_of, complete, conjuncts, measure_of, ranked_by
from dpsql.reuse.store import ReleaseNote, StoredRelease

ONE = Sensitivity(1, 1, 1, 1)
NOISE = laplace.noise_for(ONE, Fraction(1, 2))
NORMAL_NOISE = gaussian.noise_for(ONE, Fraction(1, 8))
TABLE = Scan("t", ())
NOTHING = PrivacyLoss.nothing()


def integer(name: str, lower: int, upper: int, nullable: bool = False) -> Column:
    return Column(name, Facts(Type.INTEGER, Fraction(lower), Fraction(upper), nullable=nullable))


def text(name: str, *values: str | None) -> Column:
    return Column(name, Facts(Type.TEXT, values=values or None, nullable=None in values))


def literal(value: object) -> Literal:
    return Literal(value, literal_facts(value))


A, B = integer("a", -4, 10), integer("b", 1, 4)
OVER, UNDER, EQUAL = call("gt", A, literal(3)), call("lt", B, literal(2)), call("eq", A, B)


def total(kind: TermKind = TermKind.SUM, value: Expr | None = A, **facts: Any) -> Term:
    return Term(**{"name": "s", "kind": kind, "value": value, "filter": None, "magnitude": 10, **facts})


def block(*terms: Term, source: Relation = TABLE, keys: tuple[Key, ...] = (), **facts: Any) -> BoundedBlock:
    caps = Caps(5, 3, ContributionBounds(max_groups=3, max_rows_per_group=2))
    return BoundedBlock("dp_0", source, keys, terms, (), None, caps, **facts)


def priced(measured: BoundedBlock, *terms: TermNoise, selection: Selection | None = None) -> PricedBlock:
    return PricedBlock(measured, NoisePlan((), terms, selection), NOTHING)


def term_noise(name: str, noise: Noise = NOISE) -> TermNoise:
    return TermNoise(name, noise, 0, True)


def release(payload: bytes, **metadata: Any) -> StoredRelease:
    return StoredRelease(ReleaseNote("k" * 64, "block", "2026-01-01", metadata), payload)


# --- measurements of a block ------------------------------------------------------------------------------------------


def test_a_condition_is_the_set_of_its_conjuncts_however_they_are_nested() -> None:
    nested = call("and", OVER, call("and", UNDER, EQUAL))
    assert conjuncts(None) == {}
    assert conjuncts(OVER) == {fingerprint(OVER): OVER}
    assert conjuncts(nested) == {fingerprint(part): part for part in (OVER, UNDER, EQUAL)}
    either = call("or", OVER, UNDER)
    assert conjuncts(either) == {fingerprint(either): either}


def test_the_base_is_what_lies_below_the_filters_on_top() -> None:
    assert base_of(TABLE) == (TABLE, {})
    filtered = Filter(Filter(TABLE, call("and", OVER, UNDER)), EQUAL)
    assert base_of(filtered) == (TABLE, {fingerprint(part): part for part in (OVER, UNDER, EQUAL)})


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"filter": OVER},
        {"centre": 3},
        {"grid": 7},
        {"magnitude": 99},
        {"shares": "set"},
        {"place": 1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_sum_is_the_same_number_whatever_its_name_condition_centre_and_grid(changed: dict[str, Any]) -> None:
    assert measure_of(total(**changed)) == measure_of(total())


COUNT, SQUARE, PRODUCT = TermKind.COUNT, TermKind.SQUARE_PART, TermKind.PRODUCT_PART
PAIR, DISTINCT, DISTINCT_SUM = TermKind.PAIR_PART, TermKind.DISTINCT, TermKind.DISTINCT_SUM
MULTIPLIED = call("mul", A, B)


@pytest.mark.parametrize(
    ("term", "changed"),
    [
        (total(), {"kind": COUNT}),
        (total(), {"value": B}),
        (total(), {"value": None}),
        (total(), {"lower": -1}),
        (total(), {"upper": 9}),
        (total(), {"clip": Clip(5)}),
        (total(clip=Clip(5)), {"clip": Clip(6)}),
        (total(clip=Clip(5)), {"grid": 1}),
        (total(COUNT, shares="set"), {"shares": ""}),
        (total(COUNT, shares="set"), {"magnitude": 11}),
        (total(COUNT, shares="set"), {"grid": 1}),
        (total(SQUARE), {"place": 1}),
        (total(SQUARE), {"grid": 2}),
        (total(PRODUCT, MULTIPLIED), {"grid": 1}),
        (total(PRODUCT, MULTIPLIED), {"value": call("mul", A, integer("b", 1, 5))}),
        (total(PAIR, MULTIPLIED), {"grid": 1}),
        (total(PAIR, MULTIPLIED), {"value": call("mul", integer("a", -5, 10), B)}),
        (total(DISTINCT), {"places": literal(2)}),
        (total(DISTINCT, places=literal(2)), {"places": literal(3)}),
        (total(DISTINCT, places=literal(2)), {"magnitude": 11}),
        (total(DISTINCT_SUM), {"centre": 1}),
        (total(DISTINCT_SUM), {"grid": 1}),
    ],
)
def test_what_makes_another_number_makes_another_measure(term: Term, changed: dict[str, Any]) -> None:
    assert measure_of(replace(term, **changed)) != measure_of(term)


@pytest.mark.parametrize("changed", [{"magnitude": 11}, {"grid": 1}], ids=str)
def test_a_count_of_its_own_is_the_same_in_any_steps(changed: dict[str, Any]) -> None:
    assert measure_of(total(COUNT, **changed)) == measure_of(total(COUNT))


@pytest.mark.parametrize(("kind", "powers"), [(PRODUCT, 2), (PAIR, 3)])
def test_products_in_the_other_order_are_the_same_parts_at_turned_places(kind: TermKind, powers: int) -> None:
    """The part of powers i of the first and j of the second factor is at i + powers j."""
    turned = call("mul", B, A)
    for first in range(powers):
        for second in range(powers):
            part = total(kind, MULTIPLIED, place=first + powers * second)
            same = total(kind, turned, place=second + powers * first)
            assert measure_of(part) == measure_of(same)
    assert len({measure_of(total(kind, MULTIPLIED, place=place)) for place in range(powers**2)}) == powers**2


def test_sums_of_products_have_one_name_in_both_orders_and_quotients_two() -> None:
    assert measure_of(total(value=MULTIPLIED)) == measure_of(total(value=call("mul", B, A)))
    assert measure_of(total(value=call("sub", A, B))) != measure_of(total(value=call("sub", B, A)))


LISTED = text("c", "x", "y")
NULLS = text("c", "x", "y", None)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Key("k0", LISTED, ("x", "y")), True),
        (Key("k0", NULLS, ("x", "y", None)), True),
        (Key("k0", LISTED, None), False),
        (Key("k0", LISTED, ("x",), whole=False), False),
        (Key("k0", B, (1, 2, 3, 4)), False),  # bounds promise nothing
        (Key("k0", call("gt", integer("n", 0, 9), literal(3)), (False, True)), True),
        (Key("k0", call("gt", integer("n", 0, 9), literal(3)), (False, True), drops=("n",)), False),
        (Key("k0", call("eq", LISTED, literal("x")), (False, True), drops=("c",)), True),
        (Key("k0", call("upper", LISTED), ("X", "Y")), True),
        (Key("k0", call("upper", text("free")), ("X",)), False),
        (Key("k0", literal(7), (7,)), True),
        (Key("k0", call("case", OVER, literal("big"), literal("small")), ("big", "small")), True),
        (Key("k0", call("case", OVER, text("free"), literal("small")), ("small",)), False),
        (Key("k0", call("coalesce", NULLS, literal("z")), ("x", "y", "z")), True),
        (Key("k0", call("coalesce", text("free"), literal("z")), ("z",)), False),
        (Key("k0", call("add", B, literal(1)), (2, 3, 4, 5)), False),
    ],
)
def test_a_key_is_complete_where_lists_say_all_that_it_can_be(key: Key, expected: bool) -> None:
    read = {column.name: column for column in columns_read(key.expression)}
    assert complete(key, Scan("t", tuple(read.values()))) is expected


# --- writing and reading ----------------------------------------------------------------------------------------------


def selection_of_units() -> Selection:
    return threshold("#units", 1, NOISE, Fraction(1, 10**6))


def test_a_description_says_what_is_measured_with_which_noise_and_is_plain_json() -> None:
    measured = block(
        total(COUNT, None, name="n", filter=call("and", OVER, UNDER), magnitude=1),
        total(name="s", centre=3),
        source=Filter(TABLE, EQUAL),
        keys=(Key("k0", LISTED, ("x", "y")), Key("k1", text("free"), None), Key("k2", B, (1, 2), whole=False)),
    )
    noises = (term_noise("n"), TermNoise("s", NORMAL_NOISE, 4, False), term_noise("#units"))
    facts = record.description(priced(measured, *noises, selection=selection_of_units()))
    assert json.loads(json.dumps(facts)) == facts
    assert facts["conditions"] == [fingerprint(EQUAL)]
    assert facts["caps"] == [3, 2]
    assert "gaps" not in facts and "measurements" not in facts
    assert [(key["name"], key["text"], key["public"], key["complete"], key["nulls"]) for key in facts["keys"]] == [
        ("k0", "c", True, True, True),
        ("k1", "free", False, False, False),
        ("k2", "b", True, False, False),
    ]
    assert [key["expression"] for key in facts["keys"]] == [fingerprint(key.expression) for key in measured.keys]
    count, added, admitting = facts["terms"]
    assert (count["kind"], count["centre"], count["grid"], count["whole"]) == ("count", "0", 0, True)
    assert count["conditions"] == sorted([fingerprint(OVER), fingerprint(UNDER)])
    assert (added["kind"], added["centre"], added["grid"], added["whole"]) == ("sum", "3", 4, False)
    assert added["measure"] == measure_of(measured.terms[1]) and added["noise"]["mechanism"] == "gaussian"
    assert {"shares", "absent", "everything", "width", "place", "factors"}.isdisjoint(added)
    assert (admitting["name"], admitting["kind"], admitting["measure"]) == ("#units", "selection", "")


@pytest.mark.parametrize(("whole", "gaps"), [(True, False), (False, True)])
def test_groups_that_a_condition_left_out_are_noted_as_gaps(whole: bool, gaps: bool) -> None:
    listed = combinations(np.array([0, 2]), whole)
    assert record.description(priced(block(combinations=listed))).get("gaps", False) is gaps


MAYBE = integer("m", 0, 6, nullable=True)


@pytest.mark.parametrize(
    ("term", "everything"),
    [
        (total(shares="set"), True),
        (total(shares="set", value=MAYBE), False),
        (total(shares="set", value=MAYBE, absent=True), True),
        (total(COUNT, None, shares="set"), False),
    ],
)
def test_shared_sums_say_whether_every_row_has_a_part(term: Term, everything: bool) -> None:
    (entry,) = record.description(priced(block(term), term_noise("s")))["terms"]
    assert (entry["shares"], entry["absent"], entry["everything"]) == ("set", term.absent, everything)


def test_squares_and_products_say_the_width_of_what_is_multiplied() -> None:
    """A square of a width of 14 with 2 fractional bits is (14 * 4) ** 2, on a grid of 4 bits."""
    square = total(SQUARE, name="q", magnitude=(14 * 4) ** 2, grid=4)
    product = total(PRODUCT, MULTIPLIED, name="p", place=2)
    facts = record.description(priced(block(square, product), term_noise("q"), term_noise("p")))
    squared, multiplied = facts["terms"]
    assert squared["width"] == "14" and "factors" not in squared
    assert multiplied["place"] == 2 and "width" not in multiplied
    assert multiplied["factors"] == [
        {"value": record.value_mark(A), "width": "14", "lower": "-4"},
        {"value": record.value_mark(B), "width": "3", "lower": "1"},
    ]


def test_a_pair_of_squares_says_its_factors_too() -> None:
    (entry,) = record.description(priced(block(total(PAIR, MULTIPLIED, place=5)), term_noise("s")))["terms"]
    assert entry["place"] == 5 and [factor["width"] for factor in entry["factors"]] == ["14", "3"]


def test_a_number_within_other_bounds_has_another_mark() -> None:
    marks = {record.value_mark(value) for value in (A, integer("a", -4, 11), integer("a", -5, 10), B)}
    assert len(marks) == 4 and record.value_mark(integer("a", -4, 10)) in marks


def test_a_release_is_read_back_as_it_was_written() -> None:
    square = total(SQUARE, name="q", magnitude=14**2, shares="set", absent=True, value=MAYBE)
    product = total(PRODUCT, MULTIPLIED, name="p", place=3, filter=OVER)
    favourite = MostFrequentValue("f0", A, total(name="", lower=-4, upper=10, centre=-4, magnitude=14))
    measured = block(square, product, source=Filter(TABLE, EQUAL), keys=(Key("k0", LISTED, ("x", "y")),))
    measured = replace(measured, measurements=(favourite,), combinations=combinations(np.array([1]), False))
    chosen = MostFrequentPlan("f0", 15, MostFrequent(ONE, Fraction(1, 3)))
    noises = (term_noise("q", NORMAL_NOISE), TermNoise("p", NOISE, 2, False))
    facts = record.description(PricedBlock(measured, NoisePlan((), noises, None, (chosen,)), NOTHING))
    values = NoisyTerm("q", np.array([3, -1]), 1.0, NOISE, 0, True)
    payload = record.packed(NoisyAnswer(pa.table({"k0": ["x", "y"]}), (values,), 2))
    stored = record.opened(release(payload, receipt="r-1", loss="1/2", **json.loads(json.dumps(facts))))
    assert stored is not None
    assert (stored.key, stored.created, stored.receipt, stored.loss) == ("k" * 64, "2026-01-01", "r-1", "1/2")
    assert stored.conditions == {fingerprint(EQUAL)} and stored.selection == () and stored.gaps is True
    assert stored.bounds == ContributionBounds(max_groups=3, max_rows_per_group=2)
    assert stored.keys == (StoredKey("k0", fingerprint(LISTED), "c", True, True, True),)
    factors = (
        StoredFactor(record.value_mark(A), Fraction(14), Fraction(-4)),
        StoredFactor(record.value_mark(B), Fraction(3), Fraction(1)),
    )
    none: frozenset[str] = frozenset()
    assert stored.terms == (
        StoredTerm(
            *("q", "square part", measure_of(square), none, Fraction(0), NORMAL_NOISE, 0, True),
            *("set", True, True, Fraction(14)),
        ),
        StoredTerm(
            *("p", "product part", measure_of(product), frozenset({fingerprint(OVER)}), Fraction(0), NOISE, 2, False),
            factors=factors,
            place=3,
        ),
    )
    assert [(number.name, number.mechanism) for number in stored.numbers] == [("f0", chosen.law)]
    assert stored.table.select(["k0", "q"]).to_pydict() == {"k0": ["x", "y"], "q": [3, -1]}


def test_an_entry_without_terms_is_no_release() -> None:
    assert record.opened(release(b"", receipt="r-1")) is None


def facts_of_a_count(**changed: Any) -> dict[str, Any]:
    facts = record.description(priced(block(total(COUNT, None, name="n")), term_noise("n")))
    return {"receipt": "r-7", "loss": "1", **facts, **changed}


PAYLOAD = record.packed(NoisyAnswer(pa.table({}), (NoisyTerm("n", np.array([5]), 1.0, NOISE, 0, True),), 1))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda facts: facts["terms"][0]["noise"].update(mechanism="cauchy"),
        lambda facts: facts["terms"][0]["noise"].update(t=0),
        lambda facts: facts["terms"][0].update(colour="red"),
        lambda facts: facts.pop("caps"),
        lambda facts: facts.pop("loss"),
        lambda facts: facts.update(measurements=[{"word": "new", "numbers": []}]),
    ],
)
def test_what_this_version_cannot_read_is_a_fault_with_its_receipt(spoil: Callable[[dict[str, Any]], object]) -> None:
    facts = facts_of_a_count()
    assert record.opened(release(PAYLOAD, **facts)) is not None
    spoil(facts)
    with pytest.raises(Fault, match="r-7") as error:
        record.opened(release(PAYLOAD, **facts))
    assert error.value.slug == "release_unknown"


def test_a_filter_is_as_good_as_a_where_and_order_does_not_matter() -> None:
    keys = (Key("k0", LISTED, ("x",)), Key("k1", B, (1,)))
    count, added = total(COUNT, None, name="n", filter=OVER), total(name="s", filter=call("and", UNDER, OVER))
    shape = record.shape_of(block(count, added, keys=keys))
    filtered = Filter(TABLE, OVER)
    again = block(replace(added, filter=UNDER), replace(count, filter=None), source=filtered, keys=keys[::-1])
    assert record.shape_of(again) == shape
    assert record.shape_of(replace(again, keys=keys[:1])) != shape
    assert record.shape_of(replace(again, source=TABLE)) != shape
    assert record.shape_of(replace(again, terms=again.terms[:1])) != shape


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (total(TermKind.UNITS, None, name="#units"), "threshold"),
        (total(COUNT, None, name="#units"), "threshold_of_rows"),
    ],
)
def test_a_selection_is_its_rule_and_the_size_that_it_shows_half_of_the_time(term: Term, kind: str) -> None:
    """The threshold is on the grid of rows, so a key of that size is shown half of the time."""
    rule = threshold("#units", 1, NOISE, Fraction(1, 10**6))
    selected = record.selection_of(priced(block(term), term_noise("#units"), selection=rule))
    assert selected == (kind, fingerprint(rule), rule.tau)


def test_public_keys_are_admitted_by_no_rule() -> None:
    assert record.selection_of(priced(block())) == ()


def test_the_number_of_rows_is_kept_where_there_is_no_column() -> None:
    with pa.ipc.open_stream(io.BytesIO(record.packed(NoisyAnswer(pa.table({}), (), 4)))) as reader:
        assert reader.read_all().num_rows == 4


@pytest.mark.parametrize(("rows", "compressed"), [(record.COMPRESSED_FROM // 8 - 1, False), (1 << 13, True)])
def test_answers_of_64_kilobytes_and_more_are_compressed(rows: int, compressed: bool) -> None:
    answer = NoisyAnswer(pa.table({}), (NoisyTerm("n", np.zeros(rows, np.int64), 1.0, NOISE, 0, True),), rows)
    payload = record.packed(answer)
    assert (len(payload) < 8 * rows / 10) is compressed
    with pa.ipc.open_stream(payload) as reader:
        assert reader.read_all().column("n").to_pylist() == [0] * rows


def test_counts_and_sums_add_up_over_groups_and_distinct_values_do_not() -> None:
    assert set(record.ADDITIVE) == {"count", "sum", "square part", "product part", "pair part"}


def test_rows_are_ranked_by_the_values_and_conditions_that_terms_read() -> None:
    """A count of all rows does not distinguish rows, unless it has a condition."""
    plain = total(COUNT, None)
    assert ranked_by((plain, total(TermKind.UNITS, None))) == set()
    assert ranked_by((replace(plain, filter=OVER),)) == {
        (measure_of(plain), Fraction(0), 0, frozenset({fingerprint(OVER)}))
    }
    assert ranked_by((plain, total(centre=3, grid=2))) == {(measure_of(total()), Fraction(3), 2, frozenset())}
