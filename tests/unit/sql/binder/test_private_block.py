"""An aggregating SELECT is split into one private block of keys and measures, and a SELECT over the block's columns."""

from __future__ import annotations

import pytest
from support.bound_questions import HOSPITAL, described, in_words, planned, refusal, select

from dpsql.plan.plan import Block, Join, Plan, UnitAggregate
from dpsql.plan.stability import matches
from dpsql.sql.binder.bind import bind
from dpsql.sql.binder.private_block import MOST_KEYS, MOST_MEASURES, MOST_WRITTEN, aggregates, measures
from dpsql.sql.parse import parse


def remainder(plan: Plan) -> str:
    return plan.remainder.sql("duckdb")


def only_block(sql: str) -> Block:
    (block,) = planned(sql).blocks
    return block


def keys_of(sql: str) -> list[str]:
    return [in_words(key.expression) for key in only_block(sql).keys]


def measures_of(sql: str) -> list[str]:
    """Return each measure as its word, its arguments, and its filter."""
    return [
        " ".join([measure.aggregate, *map(in_words, measure.arguments)])
        + ("" if measure.filter is None else f" if {in_words(measure.filter)}")
        for measure in only_block(sql).measures
    ]


@pytest.mark.parametrize(
    ("sql", "grouped", "measured"),
    [
        ("SELECT ward FROM visits", False, False),
        ("SELECT COUNT(*) FROM visits", True, True),
        ("SELECT 1 + SUM(cost) AS x FROM visits", True, True),
        ("SELECT ward FROM visits GROUP BY ward", True, False),
        ("SELECT DISTINCT ward FROM visits", True, False),
        ("SELECT 1 FROM visits HAVING TRUE", True, False),
        ("SELECT 1 FROM visits ORDER BY COUNT(*)", True, True),
        ("SELECT 1 FROM visits ORDER BY ward", False, False),
        ("SELECT ward, (SELECT COUNT(*) FROM labs) FROM visits", False, False),
        ("SELECT COUNT(*) OVER () FROM visits", False, False),
        ("SELECT SUM(COUNT(*)) OVER () FROM visits", True, True),
        ("SELECT ward FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", False, False),
    ],
)
def test_what_aggregates_is_seen_in_the_text(sql: str, grouped: bool, measured: bool) -> None:
    assert aggregates(select(sql)) is grouped
    assert measures(select(sql)) is measured


# --- keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT COUNT(*) FROM visits", []),
        ("SELECT COUNT(*) FROM visits GROUP BY ward", ["ward"]),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY 1", ["ward"]),
        ("SELECT COUNT(*), ward FROM visits GROUP BY 2", ["ward"]),
        ("SELECT nights + 1 AS more, COUNT(*) FROM visits GROUP BY more", ["add(nights, 1)"]),
        ("SELECT nights + 1 AS More, COUNT(*) FROM visits GROUP BY mORE", ["add(nights, 1)"]),
        # a column of the source takes precedence over an alias with the same name
        ("SELECT nights + 1 AS ward, COUNT(*) FROM visits GROUP BY ward, nights + 1", ["ward", "add(nights, 1)"]),
        ("SELECT ward, nights, COUNT(*) FROM visits GROUP BY ALL", ["ward", "nights"]),
        ("SELECT ward, nights + COUNT(*) FROM visits GROUP BY ALL, nights", ["nights", "ward"]),
        ("SELECT DISTINCT nights, ward FROM visits", ["nights", "ward"]),
        ("SELECT DISTINCT nights AS n FROM visits", ["nights"]),
        ("SELECT DISTINCT COUNT(*) FROM visits", []),
        # one key per expression, in any spelling
        ("SELECT ward, COUNT(*) FROM visits v GROUP BY ward, v.ward, 1, WARD", ["ward"]),
        ("SELECT nights % 2, COUNT(*) FROM visits GROUP BY nights % 2", ["mod(nights, 2)"]),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)", ["ward"]),
    ],
)
def test_keys_are_the_expressions_of_group_by(sql: str, keys: list[str]) -> None:
    plan = planned(sql)
    assert [in_words(key.expression) for key in plan.blocks[0].keys] == keys
    assert [key.name for key in plan.blocks[0].keys] == [f"k{number}" for number in range(len(keys))]


@pytest.mark.parametrize(
    ("sql", "slug", "place"),
    [
        ("SELECT ward, COUNT(*) FROM visits GROUP BY 0", "group_position", "0"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY 3", "group_position", "3"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY 1.0", "group_position", "1.0"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY 2", "nested_aggregate", "COUNT"),
        ("SELECT ward FROM visits GROUP BY SUM(cost)", "nested_aggregate", "SUM"),
        ("SELECT COUNT(*), * FROM visits GROUP BY 2", "raw_rows", "* FROM"),
        ("SELECT DISTINCT * FROM visits", "raw_rows", "*"),
        ("SELECT DISTINCT v.* FROM visits v", "raw_rows", "v.*"),
        ("SELECT *, COUNT(*) FROM visits", "raw_rows", "*"),
        ("SELECT COUNT(*), ward FROM visits", "not_grouped", "ward"),
        ("SELECT COUNT(*) FROM visits GROUP BY nights HAVING ward = 'er'", "not_grouped", "ward"),
        ("SELECT COUNT(*) FROM visits ORDER BY ward", "not_grouped", "ward"),
        ("SELECT COUNT(*), nowhere FROM visits", "unknown_column", "nowhere"),
        ("SELECT DISTINCT ON (ward) ward FROM visits", "clause", "ward) ward"),
        ("SELECT COUNT(*) FROM visits GROUP BY nothing", "unknown_column", "nothing"),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused_where_it_stands(sql: str, slug: str, place: str) -> None:
    error = refusal(sql)
    assert error.slug == slug
    assert error.position == sql.index(place) + 1


def test_null_is_no_key() -> None:
    assert refusal("SELECT COUNT(*) FROM visits GROUP BY NULL").slug == "null_key"


def test_there_are_at_most_twenty_keys() -> None:
    assert MOST_KEYS == 20
    listed = [f"nights * {number} > 3" for number in range(2, MOST_KEYS + 3)]
    accepted = f"SELECT COUNT(*) FROM visits GROUP BY {', '.join(listed[:MOST_KEYS])}, {listed[0]}"
    assert len(keys_of(accepted)) == MOST_KEYS
    error = refusal(f"SELECT COUNT(*) FROM visits GROUP BY {', '.join(listed)}")
    assert error.slug == "many_keys"
    assert "20" in error.message


# --- measures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT COUNT(*) FROM visits", ["count"]),
        ("SELECT COUNT(*), COUNT(*) + 1, SUM(cost) / COUNT(*) FROM visits", ["count", "sum cost"]),
        ("SELECT SUM(cost), SUM(change), SUM(v.cost) FROM visits v", ["sum cost", "sum change"]),
        ("SELECT COUNT(*), COUNT(*) FILTER (WHERE nights > 1) FROM visits", ["count", "count if gt(nights, 1)"]),
        ("SELECT COUNT(*) FROM visits HAVING SUM(cost) > 3 ORDER BY AVG(change)", ["count", "sum cost", "avg change"]),
        ("SELECT DISTINCT ward FROM visits", []),
        ("SELECT SUM(COUNT(*)) OVER () FROM visits GROUP BY ward", ["count"]),
    ],
)
def test_each_different_aggregate_is_one_measure(sql: str, columns: list[str]) -> None:
    assert measures_of(sql) == columns
    assert [measure.name for measure in only_block(sql).measures] == [f"m{number}" for number in range(len(columns))]


def test_an_aggregate_with_and_without_distinct_is_two() -> None:
    block = only_block("SELECT COUNT(ward), COUNT(DISTINCT ward) FROM visits")
    assert [measure.distinct for measure in block.measures] == [False, True]


def test_there_are_at_most_a_hundred_measures() -> None:
    assert MOST_MEASURES == 100
    listed = [f"SUM(cost + {number})" for number in range(MOST_MEASURES + 1)]
    assert len(only_block(f"SELECT {', '.join(listed[:-1])}, {listed[0]} FROM visits").measures) == MOST_MEASURES
    error = refusal(f"SELECT {', '.join(listed)} FROM visits")
    assert error.slug == "many_measures"
    assert "100" in error.message


def test_a_list_of_quantiles_is_a_list_of_measures() -> None:
    sql = "SELECT QUANTILE_CONT(nights, [0.25, 0.5]) AS q FROM visits"
    block = only_block(sql)
    assert [measure.aggregate for measure in block.measures] == ["listed_quantile_cont", "listed_quantile_cont"]
    assert remainder(planned(sql)) == 'SELECT [("m0"), ("m1")] AS "q" FROM dp_0'.replace("(", "").replace(")", "")


# --- the SELECT over the block --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "over"),
    [
        ("SELECT COUNT(*) FROM visits", 'SELECT "m0" AS "count" FROM dp_0'),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", 'SELECT "k0" AS "ward", "m0" AS "n" FROM dp_0'),
        ("SELECT upper(ward) AS u FROM visits GROUP BY ward", 'SELECT UPPER("k0") AS "u" FROM dp_0'),
        ("SELECT nights % 2 + 1 AS u FROM visits GROUP BY nights % 2", 'SELECT "k0" + 1 AS "u" FROM dp_0'),
        ("SELECT SUM(cost) / COUNT(*) AS a FROM visits", 'SELECT "m0" / "m1" AS "a" FROM dp_0'),
        ("SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 3", 'SELECT "k0" AS "ward" FROM dp_0 WHERE "m0" > 3'),
        ("SELECT COUNT(*) AS n FROM visits HAVING n > 3", 'SELECT "m0" AS "n" FROM dp_0 WHERE ("m0") > 3'),
        ("SELECT COUNT(*) AS n, n + 1 AS more FROM visits", 'SELECT "m0" AS "n", ("m0") + 1 AS "more" FROM dp_0'),
        ("SELECT COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 3 OFFSET 1",
         'SELECT "m0" AS "n" FROM dp_0 ORDER BY ("m0") DESC LIMIT 3 OFFSET 1'),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY 2",
         'SELECT "k0" AS "ward", "m0" AS "n" FROM dp_0 ORDER BY 2'),
        ("SELECT DISTINCT ward FROM visits", 'SELECT "k0" AS "ward" FROM dp_0'),
        ("SELECT DISTINCT COUNT(*) AS n FROM visits GROUP BY ward", 'SELECT DISTINCT "m0" AS "n" FROM dp_0'),
        ("SELECT ward, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY ward",
         'SELECT "k0" AS "ward", RANK() OVER (ORDER BY "m0" DESC) AS "r" FROM dp_0'),
        ("SELECT ward FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*)) = 1",
         'SELECT "k0" AS "ward" FROM dp_0 QUALIFY ROW_NUMBER() OVER (ORDER BY "m0") = 1'),
        ("SELECT GROUPING(ward) AS g FROM visits GROUP BY ward", 'SELECT 0 AS "g" FROM dp_0'),
        ("SELECT 3 AS c, COUNT(*) AS n FROM visits GROUP BY 1", 'SELECT 3 AS "c", "m0" AS "n" FROM dp_0'),
    ],
)  # fmt: skip
def test_what_is_left_reads_the_block_alone(sql: str, over: str) -> None:
    text = remainder(planned(sql)).replace(" NULLS FIRST", "").replace(" NULLS LAST", "")
    assert text == over


def test_outputs_keep_their_names() -> None:
    plan = planned("SELECT ward, COUNT(*), SUM(cost) AS total FROM visits GROUP BY ward")
    assert plan.output_names == ("ward", "count", "total")


def test_an_alias_that_names_itself_is_refused() -> None:
    assert refusal("SELECT COUNT(*) + n AS n FROM visits").slug == "unknown_column"


def test_aliases_that_double_each_time_are_refused() -> None:
    assert MOST_WRITTEN == 20_000
    items = ["COUNT(*) AS a0", *(f"a{number} + a{number} AS a{number + 1}" for number in range(16))]
    assert remainder(planned(f"SELECT {', '.join(items[:8])} FROM visits")).count('"m0"') == 2**8 - 1
    assert refusal(f"SELECT {', '.join(items)} FROM visits").slug == "heavy_expression"


@pytest.mark.parametrize(
    "call",
    [
        "SUM(COUNT(*)) FILTER (WHERE ward = 'er') OVER ()",
        "LAG(COUNT(*)) IGNORE NULLS OVER (ORDER BY ward)",
    ],
)
def test_a_window_over_groups_has_no_clauses_inside(call: str) -> None:
    error = refusal(f"SELECT {call} FROM visits GROUP BY ward")
    assert error.slug == "clause"
    assert "in a window" in error.message


@pytest.mark.parametrize("call", ["GROUPING()", "GROUPING(nights)", "GROUPING(ward, nights)"])
def test_grouping_takes_keys(call: str) -> None:
    assert refusal(f"SELECT {call} FROM visits GROUP BY ward").slug in ("wrong_arguments", "syntax")


# --- conditions on keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("having", "values"),
    [
        ("TRUE", ("er", "icu", "day", None)),
        ("ward = 'er'", ("er",)),
        ("ward IN ('er', 'icu') AND ward <> 'er'", ("icu",)),
        ("COUNT(*) > 3 AND ward = 'er'", ("er",)),
        ("COUNT(*) > 3 OR ward = 'er'", ("er", "icu", "day", None)),
        ("w = 'er'", ("er",)),
        ("(ward) = 'day'", ("day",)),
        ("ward IS NULL", (None,)),
        ("upper(ward) = 'ICU'", ("icu",)),
    ],
)
def test_groups_that_having_excludes_by_their_keys_are_none(having: str, values: tuple[str | None, ...]) -> None:
    (key,) = only_block(f"SELECT ward AS w, COUNT(*) FROM visits GROUP BY ward HAVING {having}").keys
    assert key.values is not None
    assert set(key.values) == set(values)


def test_a_source_column_goes_before_an_alias_in_having() -> None:
    sql = "SELECT ward AS nights, COUNT(*) FROM visits GROUP BY ward, nights HAVING nights = 3"
    assert [key.values for key in only_block(sql).keys][1] == (3,)


# --- several sets of keys -------------------------------------------------------------------------------------------------


def test_each_set_of_keys_is_a_block_of_its_own() -> None:
    plan = planned("SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (nights), ())")
    assert [[in_words(key.expression) for key in block.keys] for block in plan.blocks] == [["ward"], ["nights"], []]
    assert all(key.name == "k0" for block in plan.blocks for key in block.keys)


@pytest.mark.parametrize(
    ("having", "keys"),
    [
        ("COUNT(*) > 3", [["ward"], []]),
        ("ward IS NOT NULL", [["ward"]]),
        ("GROUPING(ward) = 1", [[]]),
        ("GROUPING(ward) = 0", [["ward"]]),
        ("ward = 'nowhere'", [["ward"]]),
        # none can be shown; all of them are measured, so that the answer has its columns
        ("GROUPING(ward) = 7", [["ward"], []]),
    ],
)
def test_sets_that_having_excludes_are_not_measured(having: str, keys: list[list[str]]) -> None:
    plan = planned(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) HAVING {having}")
    assert [[in_words(key.expression) for key in block.keys] for block in plan.blocks] == keys


def test_having_narrows_the_keys_of_the_sets_that_have_them() -> None:
    sql = (
        "SELECT ward, nights, COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward), (nights))"
        " HAVING ward = 'er' OR nights = 3"
    )
    assert [[key.values for key in block.keys] for block in planned(sql).blocks] == [[("er",)], [(3,)]]


def test_order_by_over_a_union_names_outputs_by_position() -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) ORDER BY COUNT(*), ward"
    text = remainder(planned(sql))
    assert text[text.index("ORDER BY") :].replace(" NULLS FIRST", "").replace(" NULLS LAST", "") == "ORDER BY 2, 1"


# --- the unit's key -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "further"),
    [
        ("patient_id", []),
        ("patient_id + 1", []),
        ("patient_id, ward", ["ward"]),
        ("ward, patient_id + 1", ["ward"]),
        ("patient_id, patient_id + 1", []),
        # not proven to be a unit's own, but the unit's key is next to it
        ("patient_id * patient_id, patient_id", ["mul(patient_id, patient_id)"]),
    ],
)
def test_groups_of_one_unit_each_are_rows_of_it(keys: str, further: list[str]) -> None:
    (block,) = planned(f"SELECT COUNT(*) FROM (SELECT {keys}, SUM(cost) AS s FROM visits GROUP BY {keys}) AS t").blocks
    relation = block.source
    while hasattr(relation, "source") and not isinstance(relation, UnitAggregate):
        relation = relation.source
    assert isinstance(relation, UnitAggregate)
    assert [in_words(key) for _, key in relation.keys] == further


@pytest.mark.parametrize(
    ("group", "slug"),
    [
        ("ROLLUP (patient_id)", "unit_sets"),
        ("GROUPING SETS ((patient_id, ward), (ward))", "unit_sets"),
        ("patient_id * patient_id", "unit_expression"),
    ],
)
def test_what_may_be_one_unit_or_many_is_refused(group: str, slug: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM visits GROUP BY {group}"
    error = refusal(sql)
    assert error.slug == slug
    assert error.position is not None


def test_a_coarse_function_of_the_key_is_a_key_like_others() -> None:
    assert keys_of("SELECT COUNT(*) FROM visits GROUP BY patient_id % 7") == ["mod(patient_id, 7)"]


@pytest.mark.parametrize(("least", "condition"), [(None, ""), (5, ' WHERE "m1" >= 5')])
def test_few_units_are_not_shown_where_the_owner_says_so(least: int | None, condition: str) -> None:
    plan = bind(parse("SELECT SUM(cost) AS s FROM visits"), HOSPITAL, least)
    assert remainder(plan) == f'SELECT "m0" AS "s" FROM dp_0{condition}'
    assert [measure.aggregate for measure in plan.blocks[0].measures] == ["sum", "count_units"][: 1 + bool(least)]


def test_equal_blocks_are_one_release() -> None:
    plan = planned("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits")
    assert len(plan.blocks) == 1


# --- public rows without a partner ----------------------------------------------------------------------------------------

UNPAIRED = "regions r LEFT JOIN patients p ON p.region = r.region"


def test_rows_without_a_partner_are_not_counted() -> None:
    error = refusal(f"SELECT COUNT(*) FROM {UNPAIRED}")
    assert error.slug == "join"
    assert planned(f"SELECT COUNT(p.patient_id) FROM {UNPAIRED}").blocks


def test_rows_without_a_partner_belong_to_no_unit() -> None:
    units = f"SELECT COUNT(*) FROM (SELECT p.patient_id, COUNT(p.age) AS n FROM {UNPAIRED} GROUP BY p.patient_id) AS t"
    assert refusal(units).slug == "join"


def test_rows_without_a_partner_have_groups() -> None:
    (key,) = only_block(f"SELECT p.region, COUNT(p.patient_id) FROM {UNPAIRED} GROUP BY p.region").keys
    assert key.values is not None
    assert None in key.values


# --- facts of the result ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "met"),
    [("", None), (" LIMIT 7", 7), (" LIMIT 1", 1)],
)
def test_a_limit_says_how_many_rows_there_are(limit: str, met: int | None) -> None:
    inner = f"(SELECT city, COUNT(*) AS n FROM patients GROUP BY city{limit}) AS t"
    sql = f"SELECT COUNT(*) FROM visits CROSS JOIN {inner}"
    if met is None:
        assert refusal(sql).slug == "join"
    else:
        (block,) = [block for block in planned(sql).blocks if not block.keys]
        assert isinstance(block.source, Join)
        assert matches(block.source, HOSPITAL) == (met, None)


def test_sets_of_keys_that_all_have_the_units_key_are_rows_of_units() -> None:
    units = (
        "SELECT patient_id, ward, GROUPING(ward) AS g, SUM(nights) AS s FROM visits"
        " GROUP BY patient_id, ROLLUP (ward) HAVING COUNT(*) > 1"
    )
    block = only_block(f"SELECT SUM(s) AS total FROM ({units}) AS t WHERE ward IS NULL AND g = 1")
    text = described(block.source)
    assert text.count("units(visits)") == 2
    assert text.count("gt(") == 2


def test_a_window_calls_functions_that_are_allowed() -> None:
    assert refusal("SELECT nosuch(COUNT(*)) OVER () FROM visits").slug == "unknown_function"
