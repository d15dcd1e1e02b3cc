"""Every refusal has a query: its slug, SQLSTATE and caret; the text says nothing of the data, which is not touched."""

import inspect
import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import pytest
from sqlglot import exp
from sqlglot.dialects import DuckDB
from support.neighbouring_hospitals import FIXED, Data, crowd, together, unit
from support.package_modules import AUDIT, PACKAGE
from support.places import policy
from support.recording_session import World

from dpsql.errors.exceptions import REGISTER, Error
from sql.corpus import REFUSED, Case

NODES = {name.upper() for name, node in vars(exp).items() if inspect.isclass(node) and issubclass(node, exp.Expr)}
SQL = {word for phrase in DuckDB.Tokenizer.KEYWORDS for word in phrase.split()} | set(DuckDB.Parser.FUNCTIONS)
INTERNAL = NODES - SQL - {"ALL", "COUNT", "DISTINCT", "SUM", "AVG"}
"""Names of the parser for parts of a text that are no words of SQL."""
SAID = re.compile(r"""(?:["'](?=[a-z_]+["'])|'dpsql:)([a-z_]+)""")
"""A slug as a text of Python, or in an error of the catalog's SQL."""
ROOMS = (
    "functions", "plan", "planning", "pricing", "privacy/mechanisms", "sql", "release/error_bars", "release/sandbox",
)  # fmt: skip
"""Where a question is refused; the words of other rooms are about policies, ledgers, engines and doors, and tested there."""
NOT_HERE = {
    "not_text": "a door's mistake",
    "policy_invalid": "a filter of the policy: tests/unit/session/test_access.py",
    "no_max_rows": "`dpsql check` finds it first",
    "public_grid": "needs a policy without delta (test_a_long_public_grid_is_refused)",
    "noise_too_large": "only of dp.mechanism = correlated_laplace: tests/answers/test_correlated_laplace.py",
    "outside_label": "needs a policy with outside: tests/answers/test_outside_values.py",
    "option_least": "needs a policy with min_units: tests/unit/session/test_min_units.py",
    "watch_grids": "of several questions of one watch: tests/unit/session/test_watches.py",
    "selection_epsilon": "the threshold answers where the table would be too long",
    "price_disagrees": "our own mistake",
    "internal": "our own mistake",
    "sandbox_time": "after the charge: tests/unit/release",
    "export_public": "no query but a command: tests/unit/session/test_row_export.py",
    "export_column": "no query but a command: tests/unit/session/test_row_export.py",
    "export_epsilon": "no query but a command: tests/unit/session/test_row_export.py",
    "export_columns": "no query but a command: tests/unit/session/test_row_export.py",
    "export_unit_key": "no query but a command: tests/unit/session/test_row_export.py",
    "export_count": "no query but a command: tests/unit/session/test_row_export.py",
    "mechanism_off": "needs a policy with mechanisms: tests/unit/pricing/test_mechanisms.py",
    "sandbox_memory": "after the charge: tests/unit/release",
    "sandbox_rows": "after the charge: tests/unit/release",
    "sandbox_value": "after the charge: tests/unit/release",
    "sandbox_broken": "after the charge: tests/unit/release",
}


@lru_cache(maxsize=2)
def worlds(rows: bool = False) -> list[World]:
    """The crowd, the crowd with one person more, nobody; `rows`: every row is a privacy unit."""
    found = []
    datasets: list[Data] = [together(crowd(), {}), together(crowd(), unit(FIXED[2], 900)), together({}, {})]
    for data in datasets:
        found.append(World(policy("hospital_rows" if rows else "hospital")))
        found[-1].load(data)
    return found


def said_in(rooms: Iterable[Path]) -> set[str]:
    """Slugs that stand as texts in the sources of some rooms."""
    files = [file for room in rooms for file in (room.rglob("*.py") if room.is_dir() else [room.with_suffix(".py")])]
    words = {word for file in files for word in SAID.findall(file.read_text(encoding="utf-8"))}
    return words & set(REGISTER)


def internal_words(error: Error, sql: str) -> set[str]:
    """Return the parser's own names that a refusal uses, other than those that the text has."""
    words = set(re.findall(r"[A-Z]{3,}", f"{error.message} {error.hint}")) & INTERNAL
    return {word for word in words if word not in sql.upper()}


def test_every_slug_has_a_query() -> None:
    """What a room of questions can say is refused by a query here, or the list above says why not."""
    here = {case.group for case in REFUSED}
    assert said_in(PACKAGE / room for room in ROOMS) - here - set(NOT_HERE) == set(), (
        "write tests/sql/refused/<slug>.sql"
    )
    assert here & set(NOT_HERE) == set()
    assert here - set(REGISTER) == set()


def test_every_slug_is_said() -> None:
    """No sentence of the register is there for nobody."""
    assert set(REGISTER) - said_in([PACKAGE, AUDIT]) == set()


def test_a_long_public_grid_is_refused() -> None:
    """Without a delta for private keys, a grid that is too long is refused."""
    known = policy("hospital")
    world = World(replace(known, per_query=replace(known.per_query, delta=Fraction(0), max_public_groups=1000)))
    world.load(together({}, {}))
    observed = world.observe("SELECT day, nights, COUNT(*) FROM visits GROUP BY day, nights")
    assert observed.outcome.startswith("54000 public_grid") and observed.charges == []


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_each_refusal_has_its_words_and_place_whatever_the_data(case: Case) -> None:
    """One text for D, D' and no data at all; the engine was not asked and nothing was charged."""
    texts = set()
    for world in worlds(case.mark("policy") == "rows"):
        world.engine.queries, world.ledger.charges, world.gate.blocks = [], [], []
        with world.options(case.marks.get("set", [])), pytest.raises(Error) as refusal:
            world.session.execute(case.sql, case.parameters)
        error = refusal.value
        texts.add(error.text())
        assert (world.engine.queries, world.ledger.charges, world.gate.blocks) == ([], [], [])
        assert (error.slug, error.sqlstate, error.charged) == (case.group, case.mark("sqlstate"), False)
        assert internal_words(error, case.sql) == set()
        at = case.mark("at")
        assert (error.position is None) == (at is None)
        if at is not None and error.position is not None:
            assert case.sql[error.position - 1 :].startswith(at.encode("ascii").decode("unicode_escape"))
    assert len(texts) == 1
    assert texts.pop().endswith("nothing was charged")
