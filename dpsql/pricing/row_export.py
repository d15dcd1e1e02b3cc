"""Plan of a table of randomised rows: how each column is randomised, and what the whole table costs.

**Why R rows of a unit cost R epsilon.** Every column of a row goes through a window law of `local_randomizers`, all columns and
rows independently. So any two rows have outputs whose laws are epsilon apart, and rho apart, summed over columns; the same holds
between a row and a padding row. A unit has at most R rows of the table (the bounded view), and each of them is randomised alone,
without knowledge of the others.

**The number of rows.** First m = max(0, n + noise) is drawn, where n is the number of rows of the bounded view and changes by at
most R between neighbours; under `change_one` as well, because a unit has between 0 and R rows before and after. If m > n, m - n
padding rows are added; if m < n, a uniform choice of m rows is written. Given m, let D' be D with r <= R further rows of a unit.
For D', draw which rows are written, and let j <= r of them be the unit's. Replace these j rows by others of D that were not
chosen, and by padding rows where D has too few. The result has the law of the output for D, because a uniform choice of m rows
(all of them, and padding) is one of m - j rows followed by one of j others. So the two laws, with j drawn alike, differ in j
places, each by epsilon; mixing over j and shuffling increase no divergence. Replacing a unit's rows by others of the same unit
(`change_one`) changes at most R places as well. In total: the loss of m's noise, and R times the loss of a row. Under row privacy
with `change_one`, neighbours have equally many rows, and m = n costs nothing if no row is left out because of its values
(`_is_count_public`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

from dpsql.errors.exceptions import refuse, suggestion
from dpsql.functions.public_domains import as_key, domain_of
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Filter, Key, Promise, Relation, Scan, Term, base_scan, facts_of
from dpsql.plan.stability import promises, rows_per_unit
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.pricing.plan_check import NO_FILTERS, RowFilters
from dpsql.pricing.pricing import key_array
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.loss import Neighbours, PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.local_randomizers import (
    LEAST_EPSILON,
    MOST_CATEGORIES,
    MOST_EPSILON,
    CategoryLaw,
    LocalLaw,
    NumberLaw,
)
from dpsql.privacy.mechanisms.rational_bounds import exp_lower
from dpsql.privacy.mechanisms.registry import RANDOMISED_ROWS, require_allowed
from dpsql.storage.records import dataclass

MOST_COLUMNS = 64
COUNT_SHARE = Fraction(1, 10)
"""Default price of the number of rows, relative to the price of the rows."""
MOST_PADDING = 10_000_000
"""Most padding rows that are added, except with probability `_TOO_RARE`: they must fit into memory."""
_TOO_RARE = 1e-15


@dataclass(frozen=True)
class ExportedColumn:
    """One column of the written table. `values`: for a category, its values in the order of its codes (pyarrow.Array, may include
    NULL); `term`: for a number, the term whose row integers count from `lower` (0) to `upper` (the term's magnitude)."""

    name: str
    expression: Expr
    law: LocalLaw
    values: Any | None = None
    term: Term | None = None
    lower: float = 0.0
    upper: float = 0.0
    whole: bool = False

    @property
    def size(self) -> int:
        """The number of values that the engine distinguishes: those of the list, or the term's integers, and NULL."""
        if self.values is not None:
            return len(self.values) + 1
        assert self.term is not None
        return int(self.term.magnitude) + 2


@dataclass(frozen=True)
class ExportPlan:
    """Plan of a table of randomised rows before data is touched. `source`: the rows that exist for the analyst; `epsilon`: price
    of one row; `count_noise`: None where the number of rows is public."""

    table: str
    source: Relation
    columns: tuple[ExportedColumn, ...]
    epsilon: Fraction
    rows_per_unit: int
    count_noise: Noise | None
    loss: PrivacyLoss
    promises: frozenset[Promise] = frozenset()

    @property
    def combinations(self) -> int:
        """The number of different rows, in the engine's values, that the table may have."""
        return prod(column.size for column in self.columns)


def plan_export(
    policy: Policy,
    table: str,
    columns: Sequence[str],
    epsilon: Fraction,
    count_epsilon: Fraction | None = None,
    row_filters: RowFilters = NO_FILTERS,
) -> ExportPlan:
    """Plan and price an export of `columns` at `epsilon` per row, split evenly among its columns.

    `count_epsilon`: price of the number of rows (None: a tenth of the price of a unit's rows). `row_filters`: the conditions
    on the rows that exist for the asker. Raises refusals export_*, and mechanism_off where the policy allows no randomised rows.
    """
    require_allowed([RANDOMISED_ROWS], policy.mechanisms)
    declared = _protected(policy, table)
    names = _names(policy, declared, columns)
    part = epsilon / len(names)
    if not LEAST_EPSILON <= part <= MOST_EPSILON:
        raise refuse(
            "export_epsilon",
            part=plain_decimal(part), columns=len(names), least=plain_decimal(LEAST_EPSILON), most=MOST_EPSILON,
        )  # fmt: skip
    source = _source(policy, declared.name, row_filters)
    rows = rows_per_unit(source, policy)
    exported = tuple(_exported(declared.columns[name], part) for name in names)
    loss = PrivacyLoss.nothing()
    for column in exported:
        _require_ratio(column)
        loss = loss + column.law.loss.times(rows)
    noise = None
    if not _is_count_public(policy, source, exported):
        noise = _count_noise(rows, COUNT_SHARE * rows * epsilon if count_epsilon is None else count_epsilon)
        if noise.loss != noise.recomputed_loss():
            raise refuse("price_disagrees")
        loss = loss + noise.loss
    return ExportPlan(declared.name, source, exported, epsilon, rows, noise, loss, promises(source, policy))


def _require_ratio(column: ExportedColumn) -> None:
    """Check the ratio of a column's law against the charge by computing it a second time, from its probabilities."""
    if max(column.law.recomputed_ratios()) > exp_lower(column.law.epsilon):
        raise refuse("price_disagrees")


def _is_count_public(policy: Policy, source: Relation, columns: Sequence[ExportedColumn]) -> bool:
    """Return whether all neighbours write equally many rows: one replaces another, and no filter or value leaves one out."""
    replaced = policy.privacy_unit is None and policy.neighbours is Neighbours.CHANGE_ONE
    return replaced and isinstance(source, Scan) and all(map(_keeps_all, columns))


def _keeps_all(column: ExportedColumn) -> bool:
    """Return whether the column holds every value, NULL and unlisted ones, too. A promise of no NULL is not used."""
    if isinstance(column.law, NumberLaw):
        return column.law.missing
    total = column.expression.facts.type is Type.BOOLEAN or isinstance(column.expression, Call)
    return total and column.values is not None and column.values.null_count > 0


def _count_noise(rows: int, epsilon: Fraction) -> Noise:
    """Return the noise of the number of rows, which one unit changes by at most `rows`."""
    noise = laplace.noise_for(Sensitivity(1, rows, rows * rows, rows), epsilon)
    if noise.half_width(1 - _TOO_RARE) > MOST_PADDING:
        raise refuse("export_count", most=f"{MOST_PADDING:,}")
    return noise


def _protected(policy: Policy, name: str) -> Table:
    table = policy.table(name)
    if table is None:
        raise refuse("unknown_table", name=name, hint=suggestion(name, policy.visible))
    if table.public:
        raise refuse("export_public", table=table.name)
    return table


def _source(policy: Policy, table: str, row_filters: RowFilters) -> Relation:
    """Return the rows of a table that exist for the analyst. Whether a row passes the row filter depends on that row alone."""
    scan = base_scan(policy.tables[table])
    if policy.row_filter(table) is None:
        return scan
    if table not in row_filters:
        raise refuse("internal", what="a row filter that was not read")
    return Filter(scan, row_filters[table])


def _names(policy: Policy, table: Table, columns: Sequence[str]) -> list[str]:
    """Return the columns by their names in the policy, each once. Raises refusals for columns that must not be exported."""
    keys = {child_column for child, child_column, _, _ in policy.unit_path(table.name) if child == table.name}
    unit = policy.unit_column(table.name)
    if unit is not None and not policy.unit_joins(table.name):
        keys.add(unit)
    names: list[str] = []
    for name in columns:
        column = table.column(name)
        if column is None:
            raise refuse("unknown_column", name=name, hint=suggestion(name, table.columns))
        if column.name in keys:
            raise refuse("export_unit_key", column=column.name)
        if column.name not in names:
            names.append(column.name)
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise refuse("export_columns", most=MOST_COLUMNS)
    return names


def _exported(declared: PolicyColumn, epsilon: Fraction) -> ExportedColumn:
    """Return one column with its law: a category if it has a list of values, a number if it has bounds."""
    column = Column(declared.name, facts_of(declared))
    if declared.domain is None and column.facts.type.numeric:
        return _number(column, epsilon)
    expression = as_key(column)
    values = domain_of(expression)
    if values is None or len(values) > MOST_CATEGORIES:
        reason = f"it has more than {MOST_CATEGORIES} values" if values else "it has no list of values"
        raise refuse("export_column", column=declared.name, reason=reason)
    if len(values) < 2:
        raise refuse("export_column", column=declared.name, reason="it has one value only")
    array = key_array(Key(declared.name, expression, values))
    return ExportedColumn(declared.name, expression, CategoryLaw.for_epsilon(epsilon, len(values)), array)


def _number(column: Column, epsilon: Fraction) -> ExportedColumn:
    if not column.facts.bounded:
        raise refuse("export_column", column=column.name, reason="it has neither bounds nor a list of values")
    term, _ = summed(column, None, Fraction(column.facts.lower))
    if not term.magnitude:
        raise refuse("export_column", column=column.name, reason="it has one value only")
    ends = float(column.facts.lower), float(column.facts.upper)
    law = NumberLaw.for_epsilon(epsilon, column.facts.nullable)
    return ExportedColumn(
        column.name, column, law, term=term, lower=ends[0], upper=ends[1], whole=column.facts.type is Type.INTEGER
    )
