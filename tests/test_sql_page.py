"""The pages of SQL name every function, type, option, aggregate and unit, and nothing that is not there."""

import re

import pytest
from sqlglot import exp
from support.places import POLICIES, ROOT

from dpsql.aggregates.contract import aggregates
from dpsql.functions import numeric as functions
from dpsql.plan.intervals import Type
from dpsql.policy import load_policy
from dpsql.pricing.options import Options
from dpsql.sql.binder import query  # noqa: F401 (enters the handlers of functions)
from dpsql.sql.binder.aggregates import function_name

PAGE = "\n".join(
    (ROOT / "docs" / f"{name}.md").read_text() for name in ("sql", "options", "measurements", "expressions")
)
ROWS = [
    line.split(" | ")
    for line in PAGE.split("## Expressions")[1].split("## Types")[0].splitlines()
    if line.startswith("| `")
]
NAMED = [name for row in ROWS for name in re.findall("`([a-z_0-9]+)`", row[0])]


WITHOUT_SPELLING = {"place_in"}
"""Functions that plans are made of and that no text can call."""


def test_no_text_can_call_a_function_of_plans_alone() -> None:
    for name in WITHOUT_SPELLING:
        entry = functions.REGISTRY[name]
        assert not entry.spellings and not entry.nodes


def test_every_function_stands_once() -> None:
    assert sorted(NAMED) == sorted(functions.REGISTRY.keys() - WITHOUT_SPELLING)


def test_the_page_lists_every_option_type_unit_and_aggregate() -> None:
    options = Options.of_policy(load_policy(POLICIES / "hospital.yaml")).show()
    missing = [name for name in options if f"`{name}`" not in PAGE]
    missing += [type_.value for type_ in Type if type_ is not Type.NULL and f"| `{type_.value}` |" not in PAGE]
    missing += [
        unit for unit in {*functions.DATE_PARTS, *functions.TRUNC_UNITS, *functions.DIFF_UNITS} if unit not in PAGE
    ]
    called = [function_name(spelling) for aggregate in aggregates() for spelling in aggregate.spellings]
    missing += [name for name in called if f"`{name.upper()}" not in PAGE]
    assert not missing


def test_the_page_names_the_limits_of_texts() -> None:
    for limit in (functions.MOST_TEXT, functions.MOST_PARTS):
        assert f"{limit:,}" in PAGE


@pytest.mark.parametrize("cell", [cell for row in ROWS for cell in re.findall("`(.+?)`", row[1])])
def test_spellings_are_sql_that_binds(cell: str) -> None:
    """Every whole expression of the page binds; bare operators and elided lists are not expressions."""
    from unit.sql.binder.test_function_calls import bound

    text = cell.replace("\\|", "|").replace(", ...", "")
    if not re.search(r"\(.*\)|[-@/*+^%|:] ?[a-z]|IN \(", text) or "..." in text or re.search(r"\btype\b|\[", text):
        return
    for word, value in {"start": "2", "digits": "2", "lower,": "0,", "upper)": "5)", "low,": "0,", "high,": "9,",
    "buckets": "3",
                        "old": "'a'", "new": "'b'", "n": "2", "c": "b"}.items():  # fmt: skip
        if word.isalpha():
            text = re.sub(rf"(?<=[ (,]){word}(?=[),]| FOR)", value, text)
        else:
            text = text.replace(word, value)
    text = text.replace("date_diff('day', 2, end)", "date_diff('day', d, e)")
    assert not isinstance(bound(text), exp.Expr)
