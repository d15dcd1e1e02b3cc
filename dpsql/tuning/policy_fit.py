"""How well a policy fits its data: persons beyond each bound, outside each domain, without a value, and above each cap.

Everything is one question, composed as text: histograms of persons, each over a per-person aggregation whose result is in one of
a few public bins. One person is in one bin of each histogram, so that each histogram has sensitivity 1 however many rows a person
has (privacy.md 3 and 4). The text is bound, priced, reserved, measured and stored like any other; what is proposed follows from
the released numbers alone.

The question is asked of the policy without its bounds, domains and keys (`without_bounds`): rows above `max_rows`, values outside
of a domain, and texts that are no numbers would otherwise be no rows or no values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import refuse
from dpsql.policy.source_kinds import source_kind
from dpsql.policy.types import UNBOUNDED, ContributionBounds, Policy, PolicyColumn, Table, Value, smallest
from dpsql.privacy.loss import plain_decimal
from dpsql.session.session import open_session
from dpsql.storage.records import dataclass, field, replace
from dpsql.tuning.choices import HALF_WIDTH, least_count

if TYPE_CHECKING:
    from dpsql.privacy.mechanisms.contract import Noise
    from dpsql.release.release import Release
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session


_BEYOND = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), *map(Fraction, (1, 2, 4, 8, 32, 1024)))
"""How far steps lie beyond a bound, as multiples of the distance of the bounds."""
_HALVINGS = 6
_LARGEST, _SMALLEST = 40, -10
"""Exponents of the magnitudes around which columns without bounds are counted."""
_EPOCH = datetime(1970, 1, 1)
_YEARS = range(1900, 2101, 10)


@dataclass(frozen=True)
class Ladder:
    """Ascending steps between bins: (number, strict). A value is in the first bin whose step it is below (or, not strict, at or
    below), else in the last one. `low` and `high`: the bins that begin and end with the policy's bounds (0 and the last without).
    """

    type: str
    steps: tuple[tuple[Fraction, bool], ...]
    low: int
    high: int

    def cases(self, name: str) -> str:
        """Return the conditions of a CASE that numbers the bins from 1."""
        return " ".join(
            f"WHEN {name} {'<' if strict else '<='} {literal(value_at(number, self.type), self.type)} THEN {index + 1}"
            for index, (number, strict) in enumerate(self.steps)
        )


def value_ladder(column: PolicyColumn) -> Ladder | None:
    """Return the bins of a column's values, None for texts and truth values."""
    if column.type in ("text", "boolean"):
        return None
    if column.lower is None or column.upper is None:
        steps = tuple((number, False) for number in _magnitudes(column.type))
        return Ladder(column.type, steps, 0, len(steps))
    lower, upper = number_of(column.lower), number_of(column.upper)
    width = (upper - lower) or Fraction(1)
    below = [(lower - width * part, True) for part in _BEYOND] + [(lower, True)]
    halves = [width / 2**power for power in range(1, _HALVINGS + 1)]
    inside = [(number, False) for half in halves for number in (lower + half, upper - half)]
    above = [(upper, False)] + [(upper + width * part, False) for part in _BEYOND]
    around: set[tuple[Fraction, bool]] = set()
    for number, strict in (*below, *inside, *above):
        value = _rounded(number, column.type)
        if value is not None and (number in (lower, upper) or strict == (value <= lower)):
            around.add((value, strict))
    ordered = tuple(sorted(around, key=lambda step: (step[0], not step[1])))
    return Ladder(column.type, ordered, ordered.index((lower, True)) + 1, ordered.index((upper, False)))


def proposed_ends(
    ladder: Ladder, column: PolicyColumn, about: str, counts: Sequence[float], few: Fraction, unit: str,
    shares: Mapping[str, float], hidden: float,
) -> Iterator[tuple[str, Value, str]]:  # fmt: skip
    """Yield (`lower` or `upper`, its proposed value, why) for the persons in each bin of a ladder, by their highest or lowest
    value. `shares`: of the persons beyond each end, as they are shown; `hidden`: how many noise may hide in one bin.

    An end moves outwards until at most the share `few` of the persons is beyond it, and inwards if a half of the bounds or more
    is empty. Ends of columns without bounds are those of the bins that are not empty.
    """
    everybody = sum(counts)
    if not everybody:
        return
    last = len(ladder.steps)
    open_ends = column.lower is None
    if about != "highest":
        bottom = next(index for index in range(last, -1, -1) if sum(counts[:index]) <= few * everybody)
        beyond = sum(counts[: ladder.low]) / everybody
        if bottom > 0 and (open_ends or beyond > few or _is_wide(ladder, bottom, upper=False)):
            yield (
                "lower",
                value_at(ladder.steps[bottom - 1][0], ladder.type),
                _why(beyond > few, shares.get("lower", 0.0), "below", open_ends, unit, hidden),
            )
    if about != "lowest":
        top = next(index for index in range(last + 1) if sum(counts[index + 1 :]) <= few * everybody)
        beyond = sum(counts[ladder.high + 1 :]) / everybody
        if top < last and (open_ends or beyond > few or _is_wide(ladder, top, upper=True)):
            yield (
                "upper",
                value_at(ladder.steps[top][0], ladder.type),
                _why(beyond > few, shares.get("upper", 0.0), "above", open_ends, unit, hidden),
            )


def _why(cuts: bool, share: float, side: str, open_ends: bool, unit: str, hidden: float) -> str:
    if open_ends:
        return "the column has no bounds; nearly all values are inside these"
    if cuts:
        return f"{share:.1%} of the {unit} have a value {side} the bound"
    return (
        f"half of the bounds or more look empty, though noise hides up to about {hidden:,.0f} {unit} in one place; tighter "
        "bounds mean less noise"
    )


def _is_wide(ladder: Ladder, index: int, *, upper: bool) -> bool:
    """Return whether the bins from this one to the policy's bound make up at least half of the distance of the bounds."""
    lower, highest = ladder.steps[ladder.low - 1][0], ladder.steps[ladder.high][0]
    middle = (lower + highest) / 2
    if upper:
        return index < ladder.high and ladder.steps[index][0] <= middle
    return index > ladder.low and ladder.steps[index - 1][0] >= middle


# --- values as numbers ----------------------------------------------------------------------------------------------------


def number_of(value: Value) -> Fraction:
    """Return a value of a column as a number: days and seconds for dates and timestamps."""
    if isinstance(value, datetime):
        return Fraction((value - _EPOCH) // timedelta(microseconds=1), 10**6)
    if isinstance(value, date):
        return Fraction(value.toordinal())
    return Fraction(value)


def value_at(number: Fraction, type_: str) -> Value:
    """Return the value of a column's type that `number_of` makes this number."""
    if type_ == "date":
        return date.fromordinal(int(number))
    if type_ == "timestamp":
        return _EPOCH + timedelta(seconds=int(number))
    return int(number) if type_ == "integer" else number


def literal(value: Value, type_: str) -> str:
    """Return a value of a column's type as a literal of SQL."""
    if isinstance(value, (date, datetime)):
        return f"{type_.upper()} '{value.isoformat(' ') if isinstance(value, datetime) else value.isoformat()}'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return decimal_text(Fraction(value))


def decimal_text(number: Fraction) -> str:
    """Return a number without an exponent."""
    if number.denominator == 1:
        return str(number.numerator)
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _rounded(number: Fraction, type_: str) -> Fraction | None:
    """Return the number as a value of the type, None if there is none so large."""
    if type_ == "real":
        return number
    whole = Fraction(number.numerator // number.denominator)
    if type_ == "integer":
        return whole if abs(whole) < 2**62 else None
    least, most = (1, date.max.toordinal()) if type_ == "date" else (-(10**10), 10**11)
    return whole if least <= whole <= most else None


def _magnitudes(type_: str) -> list[Fraction]:
    if type_ == "date":
        return [number_of(date(year, 1, 1)) for year in _YEARS]
    if type_ == "timestamp":
        return [number_of(datetime(year, 1, 1)) for year in _YEARS]
    positive = [Fraction(2) ** power for power in range(0 if type_ == "integer" else _SMALLEST, _LARGEST + 1)]
    return sorted({*positive, *(-number for number in positive), Fraction(0)})


FEW = Fraction(1, 100)
"""The share of persons that a bound may cut off before another one is proposed."""
MOST_DOUBLINGS = 20
"""Histograms of rows reach 2**20 rows of one person, fewer where the rows of joined tables multiply."""
_TEXTS = "dp_texts_of_"
"""Before the name of a table: the same rows with their values as texts, in which a value that cannot be read is not missing."""
_TEXT_TYPES = ("CHAR", "TEXT", "STRING", "JSON")
NULLS, OUTSIDE, UNREADABLE = 1, 2, 3
"""Bins of persons by what they have a row with; bin 0: nothing of that."""


# --- the question -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PersonHistogram:
    """Persons in bins. `about`: "rows", "missing", "outside", "highest", "lowest" (values), "value" (of a table with one row for
    each person), "labels", values outside of a domain by themselves, or what a person adds of a column: "max_total" (a sum),
    "different" (values). `bins`: the number of bins, of which `edges` are the upper ends; 0: they are private."""

    table: str
    column: str
    about: str
    bins: int
    text: str
    ladder: Ladder | None = None
    edges: tuple[Fraction | int, ...] = ()


def without_bounds(policy: Policy, *, texts: bool = True) -> Policy:
    """Return the policy with all rows and all values of its protected tables, for questions that count persons in public bins.

    Bounds of values, domains and the claims that nothing is missing or repeated are dropped, and `max_rows` is very large:
    nothing is left out before it is counted. Keys by which a table reaches its person stay: joins rest on them. Each table of
    files has a second one with the same rows, whose values are texts, unless not `texts`.
    """
    joins = {name: policy.unit_joins(name) for name in policy.tables}
    parents = {hop[2] for hops in joins.values() for hop in hops}
    most = 2 ** min(MOST_DOUBLINGS, 29 // max((len(hops) + 1 for hops in joins.values()), default=1))
    tables = dict(policy.tables)
    for name, table in policy.tables.items():
        if table.public:
            continue
        columns = {key: _without_bounds(column) for key, column in table.columns.items()}
        keys = (table.primary_key, table.unique) if name in parents else ((), ())
        rows = ContributionBounds(max_rows=1 if policy.privacy_unit is None else most)
        tables[name] = replace(table, columns=columns, primary_key=keys[0], unique=keys[1], bounds=rows)
        # A server's columns have the types of the policy, or are refused.
        if texts and not source_kind(policy.source).is_server:
            tables[_TEXTS + name] = _with_texts(tables[name], policy)
    return replace(policy, tables=tables)


def name_in_policy(name: str) -> str:
    """Return the name in the owner's policy of a table or column of the policy without bounds."""
    return name.removeprefix(_TEXTS)


def _without_bounds(column: PolicyColumn) -> PolicyColumn:
    return replace(column, lower=None, upper=None, domain=None, nullable=True, outside=None, max_total=None)


def _with_texts(table: Table, policy: Policy) -> Table:
    """Return the table under its second name, with texts except in the columns that lead to its person."""
    linking = {hop[1] for hop in policy.unit_path(table.name)} | {policy.unit_column(table.name)}
    columns = {
        key: column if key in linking else replace(column, type="text", timezone=None)
        for key, column in table.columns.items()
    }
    links = dict(table.foreign_keys)
    unit = policy.privacy_unit
    if unit is not None and table.name == unit.table:
        links[unit.column] = (unit.table, unit.column)
    source = table.source or (table.name if table.schema is None else f"{table.schema}.{table.name}")
    if policy.source is not None and table.source is None and policy.table_source(table.name) != source:
        source = policy.source  # the files of the whole policy
    return replace(
        table, name=_TEXTS + table.name, columns=columns, source=source, foreign_keys=links, primary_key=(), unique=()
    )


class _Questions:
    """The histograms of the tables of a policy, as texts."""

    def __init__(self, session: Session, policy: Policy) -> None:
        self.session, self.policy = session, policy

    def of_table(self, table: Table) -> Iterator[PersonHistogram]:
        """Yield the histograms of a protected table: rows, then those of each column that is no key."""
        by_row = self.policy.privacy_unit is None
        if by_row:
            yield self._counted(table, "", "rows", 1, "0", "MAX")
        else:
            most = self.session.policy.tables[table.name].bounds.max_rows or 1
            bounds = {table.bounds.max_rows or 1, table.bounds.max_count or 1}
            edges = tuple(sorted({*(2**power for power in range(most.bit_length())), *bounds}))
            yield self._added(table, "", "rows", "COUNT(*)", edges)
        keys = {hop[1] for hop in self.policy.unit_path(table.name)} | {self.policy.unit_column(table.name)}
        keys |= {*table.primary_key, *table.foreign_keys}
        for column in table.columns.values():
            if column.name not in keys:
                yield from self._of_column(table, column)
                if not by_row:
                    yield from self._of_bounds(table, column)

    def _of_bounds(self, table: Table, column: PolicyColumn) -> Iterator[PersonHistogram]:
        """Yield the histograms of what one person adds of a column, for the bounds on it that the policy has."""
        name = f'"{column.name}"'
        if column.max_total is not None and column.lower is not None and column.upper is not None:
            totals = {column.max_total * Fraction(2) ** power for power in range(-6, 11)}
            clamped = f"CLAMP({name}, {literal(column.lower, column.type)}, {literal(column.upper, column.type)})"
            yield self._added(table, column.name, "max_total", f"SUM(ABS({clamped}))", tuple(sorted(totals)))
        if bounds := bounds_of_different(self.policy, table, column):
            counts = {*bounds.values(), *(2**power for power in range(11))}
            yield self._added(table, column.name, "different", f"COUNT(DISTINCT {name})", tuple(sorted(counts)))

    def _added(
        self, table: Table, column: str, about: str, measured: str, edges: Sequence[Fraction | int]
    ) -> PersonHistogram:
        """Return the histogram of persons by what they add, an aggregate of their rows."""
        cases = " ".join(
            f"WHEN n <= {plain_decimal(Fraction(edge))} THEN {index}" for index, edge in enumerate(edges[:-1])
        )
        unit = self._unit(table)
        of_persons = f"SELECT {unit} AS unit, {measured} AS n FROM {self._rows(table.name)} GROUP BY {unit}"
        text = (
            f"SELECT CASE WHEN n IS NULL THEN 0 {cases} ELSE {len(edges) - 1} END AS bin FROM ({of_persons}) AS counted"
        )
        return PersonHistogram(table.name, column, about, len(edges), text, edges=tuple(edges))

    def _of_column(self, table: Table, column: PolicyColumn) -> Iterator[PersonHistogram]:
        name, single = f'"{column.name}"', table.bounds.max_rows == 1
        ladder = value_ladder(column)
        has_texts = self._is_text(table, column)
        if has_texts or ladder is None or not single:
            yield self._missing(table, column, has_texts)
        if column.domain is not None:
            listed = ", ".join(literal(value, column.type) for value in column.domain if value is not None)
            inside = f"{name} IN ({listed})" if listed else "FALSE"
            outside = f"CASE WHEN {name} IS NULL OR {inside} THEN 0 ELSE {OUTSIDE} END"
            yield self._counted(table, column.name, "outside", OUTSIDE + 1, outside, "MAX")
            if column.type in ("text", "integer") and self.session.options.delta:
                yield self._labels(table, column, f"NOT {inside}" if listed else "TRUE")
        elif ladder is not None:
            last = len(ladder.steps)
            ranked = f"CASE WHEN {name} IS NULL THEN {{}} {ladder.cases(name)} ELSE {last + 1} END"
            if single:
                yield self._counted(table, column.name, "value", last + 2, ranked.format(0), "MAX", ladder)
            else:
                yield self._counted(table, column.name, "lowest", last + 2, ranked.format(last + 1), "MIN", ladder)
                yield self._counted(table, column.name, "highest", last + 2, ranked.format(0), "MAX", ladder)

    def _missing(self, table: Table, column: PolicyColumn, has_texts: bool) -> PersonHistogram:
        name = f'"{column.name}"'
        if not has_texts:
            return self._counted(
                table, column.name, "missing", 2, f"CASE WHEN {name} IS NULL THEN {NULLS} ELSE 0 END", "MAX"
            )
        read = f"TRY_CAST({_plainly(table, column)} AS {_CASTS[column.type]}) IS NULL"
        if column.type in ("date", "timestamp") and table.csv is not None and table.csv.days != "ymd":
            day = f"LEFT(TRANSLATE(SPLIT_PART(LEFT(TRIM({name}), {_TO_THE_MINUTE}), ' ', 1), '/-', '..'), 10)"
            order = ".".join(f"%{part}" for part in table.csv.days).replace("y", "Y")
            read += f" AND TRY_STRPTIME({day}, '{order}') IS NULL"
        value = f"CASE WHEN {name} IS NULL THEN {NULLS} WHEN {read} THEN {UNREADABLE} ELSE 0 END"
        texts = self.session.policy.tables[_TEXTS + table.name]
        return replace(self._counted(texts, column.name, "missing", UNREADABLE + 1, value, "MAX"), table=table.name)

    def _labels(self, table: Table, column: PolicyColumn, outside: str) -> PersonHistogram:
        """Return the histogram of values outside of a domain; a person with several has the last of them."""
        value, where = f'"{column.name}"', f"WHERE {outside}"
        if self.policy.privacy_unit is None:
            text = f"SELECT {value} AS bin FROM {self._rows(table.name)} {where}"
        else:
            unit = self._unit(table)
            text = f"SELECT {unit} AS unit, MAX({value}) AS bin FROM {self._rows(table.name)} {where} GROUP BY {unit}"
        return PersonHistogram(table.name, column.name, "labels", 0, text)

    def _counted(
        self, table: Table, column: str, about: str, bins: int, value: str, chosen: str, ladder: Ladder | None = None
    ) -> PersonHistogram:
        """Return a histogram of persons by the largest or smallest (`chosen`) bin of their rows."""
        if self.policy.privacy_unit is None:
            text = f"SELECT {value} AS bin FROM {self._rows(table.name)}"
        else:
            unit = self._unit(table)
            text = f"SELECT {unit} AS unit, {chosen}({value}) AS bin FROM {self._rows(table.name)} GROUP BY {unit}"
        return PersonHistogram(table.name, column, about, bins, text, ladder)

    def _is_text(self, table: Table, column: PolicyColumn) -> bool:
        """Return whether the source has texts where the policy has another type."""
        if column.type == "text" or _TEXTS + table.name not in self.session.policy.tables:
            return False
        types = self.session.context.engine.source(_TEXTS + table.name).types
        return any(word in types[column.name].upper() for word in _TEXT_TYPES)

    def _rows(self, name: str) -> str:
        """Return the table, joined with those by which it reaches its person."""
        text = f'"{name}" AS s0'
        for index, (_, column, parent, key) in enumerate(self.session.policy.unit_joins(name)):
            text += f' JOIN "{parent}" AS s{index + 1} ON s{index}."{column}" = s{index + 1}."{key}"'
        return text

    def _unit(self, table: Table) -> str:
        policy = self.session.policy
        return f's{len(policy.unit_joins(table.name))}."{policy.unit_column(table.name)}"'


_CASTS = {
    "integer": "DOUBLE", "real": "DOUBLE", "boolean": "BOOLEAN", "date": "TIMESTAMP", "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The types as which texts are read if the policy reads them: parts of integers are rounded, times of dates cut off."""
_TO_THE_MINUTE = len("2024-06-01T23:30")
_LONGEST_NUMBER = 60


def _plainly(table: Table, column: PolicyColumn) -> str:
    """Return a column of texts as questions cast it: without decimal commas and offsets of times."""
    name = f'"{column.name}"'
    if column.type in ("date", "timestamp"):
        return f"LEFT(TRIM({name}), {_TO_THE_MINUTE})"  # what is cast has a bounded length
    if column.type in ("integer", "real") and table.csv is not None and table.csv.decimal == ",":
        return f"REPLACE(REPLACE(LEFT({name}, {_LONGEST_NUMBER}), '.', ''), ',', '.')"
    return name


def bounds_of_different(policy: Policy, table: Table, column: PolicyColumn) -> dict[str, int]:
    """Return the policy's bounds on the number of different values of a column that one person has: groups if it has a domain."""
    groups = smallest(table.bounds.max_groups, policy.per_query.bounds.max_groups) if column.domain else None
    bounds = {"max_groups": groups, "max_values": table.bounds.max_values}
    return {name: most for name, most in bounds.items() if most is not None}


# --- the answer ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitFinding:
    """A count about a column (of the table's rows if `column` is ""). `kind`: "rows" (over `max_rows`), "below", "above",
    "outside", "missing", "unreadable", or the bound that they are over; `persons`: how many have a row of that kind, 0 if noise
    hides them; `bar`: half width of a 95 % error bar."""

    table: str
    column: str
    kind: str
    persons: float
    share: float
    bar: float


@dataclass(frozen=True)
class Proposal:
    """One change of the policy: the place in its file, the value there (a list: values that are added to it), and why."""

    place: tuple[str, ...]
    value: object
    why: str


@dataclass(frozen=True)
class PolicyFit:
    """What the measurement says of a policy. `unit`: "persons", or "rows" under row privacy; `persons`: about how many each table
    has; `least`: how many noise may hide in one bin; `price` and `receipt` of the charge."""

    findings: tuple[FitFinding, ...]
    proposals: tuple[Proposal, ...]
    unit: str
    persons: dict[str, float]
    bar: float
    least: float
    price: str
    receipt: str


class Fitting:
    """The measurement of how well a policy fits its data: `plan` first, then `measure`. Close it in the end."""

    def __init__(
        self, policy: Policy, *, epsilon: Fraction | None = None, tables: Sequence[str] = (), source: Any = None
    ) -> None:
        """`epsilon`: the price of the whole measurement, by default that of one question; `tables`: only these; `source`: the
        rows to read instead of the policy's own source, as of `open_session`.

        Raises fit_tables, and what planning a question raises.
        """
        chosen = [table for name, table in policy.tables.items() if not table.public and (not tables or name in tables)]
        if not chosen:
            raise refuse("fit_tables")
        self.policy = policy
        self.session = open_session(without_bounds(policy, texts=source is None), source=source)
        try:
            if epsilon is not None:
                self.session.set_option("epsilon", str(float(epsilon)))
            questions = _Questions(self.session, policy)
            self.histograms = tuple(part for table in chosen for part in questions.of_table(table))
            statement = self.session.parse(
                " UNION ALL ".join(_select(*part) for part in enumerate(self.histograms)), None
            )
            self.planned = self.session.plan(
                statement, options=replace(self.session.options, target_error=None, bounds=UNBOUNDED)
            )
        except BaseException:
            self.close()
            raise

    def plan(self) -> PrivacyPlan:
        """Return the price of the measurement; nothing is charged and no data is read."""
        return self.session.explain_planned(self.planned)

    def measure(self, request_id: str | None = None) -> PolicyFit:
        """Measure (charged), and compute what follows from the released counts (free)."""
        release = self.session.answer(self.planned, request_id)
        with registering(charged=release.receipt.is_paid):
            return _Fitted(self, release).result()

    def close(self) -> None:
        self.session.close()


SELECTED = "SELECT {} AS histogram, bin, NULL AS label, COUNT(*) AS persons FROM ("


def _select(index: int, histogram: PersonHistogram) -> str:
    """Return the select of one histogram: its number, bin, label and count of persons."""
    if histogram.bins:
        return f"{SELECTED.format(index)}{histogram.text}) AS h GROUP BY bin"
    return f"SELECT {index}, 0, CAST(bin AS VARCHAR), COUNT(*) FROM ({histogram.text}) AS h GROUP BY bin"


@dataclass
class _Fitted:
    """The findings and proposals that follow from a release."""

    fitting: Fitting
    release: Release
    counts: dict[int, dict[int, float]] = field(default_factory=dict)
    labels: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    findings: list[FitFinding] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    persons: dict[str, float] = field(default_factory=dict)

    def result(self) -> PolicyFit:
        histograms = self.fitting.histograms
        for number, bin_, label, persons in self.release.rows():
            histogram = histograms[int(number)]
            if histogram.bins:
                self.counts.setdefault(int(number), {})[int(bin_)] = float(persons)
            elif label is not None:
                self.labels.setdefault((histogram.table, histogram.column), []).append(str(label))
        for index, histogram in enumerate(histograms):
            if histogram.about == "rows":
                self._rows(index, histogram)
        for index, histogram in enumerate(histograms):
            if histogram.about == "outside":
                share = self._find(index, "outside", range(OUTSIDE, OUTSIDE + 1))
                if labels := self.labels.get((histogram.table, histogram.column), []):
                    whole = self.fitting.policy.tables[histogram.table].columns[histogram.column].type == "integer"
                    why = f"{share:.1%} of the {self.unit} have a value outside the domain"
                    self._propose(histogram, "domain", sorted(map(int, labels)) if whole else sorted(labels), why)
            elif histogram.about in ("max_total", "different"):
                self._bounded(index, histogram)
            elif histogram.about in ("missing", "value"):
                self._missing(index, histogram)
            if histogram.ladder is not None:
                self._ends(index, histogram, histogram.ladder)
        receipt, least = self.release.receipt, max(map(self._least, range(len(histograms))))
        return PolicyFit(
            tuple(self.findings), tuple(filter(self._is_whole, self.proposals)), self.unit, self.persons, self._bar(1), least,
            receipt.price or receipt.charged,
            self.release.receipt_id,
        )  # fmt: skip

    def _clear(self, index: int) -> list[float]:
        """Return the counts of a histogram's bins, 0 where noise alone may be all of it."""
        return [count if count >= self._least(index) else 0.0 for count in self._counts(index)]

    def _counts(self, index: int) -> list[float]:
        counts = self.counts.get(index, {})
        return [counts.get(position, 0.0) for position in range(self.fitting.histograms[index].bins)]

    def _noise(self, index: int) -> Noise:
        return self.fitting.planned.price.blocks[index].noise.terms[0].noise

    def _least(self, index: int) -> float:
        return least_count(self._noise(index), max(1, self.fitting.histograms[index].bins))

    def _bar(self, bins: int) -> float:
        """Return the half width of a 95 % error bar of the sum of some bins; all histograms have the same noise."""
        return float(HALF_WIDTH * self._noise(0).standard_deviation() * math.sqrt(max(1, bins)))

    def _find(self, index: int, kind: str, bins: range) -> float:
        """Add a finding about some bins of a histogram, and return the share of persons in them.

        Bins are added from the bound to the next one after the last that is not empty: beyond it they hold noise alone, as far as
        nobody is there. If all are empty each by itself, they may still not be so together.
        """
        histogram, counts, clear = self.fitting.histograms[index], self._counts(index), self._clear(index)
        filled = [position for position in bins if clear[position]]
        near = list(bins)
        if filled:
            near = near[near.index(filled[0]) - 1 :] if kind == "below" and filled[0] > near[0] else near
            near = near if kind == "below" else near[: near.index(filled[-1]) + 2]
        persons, everybody = sum(counts[position] for position in near), self.persons.get(histogram.table, 0.0)
        if not filled and persons < self._least(index) * math.sqrt(len(near)):
            persons = 0.0
        share = min(1.0, persons / everybody) if everybody else 0.0
        self.findings.append(FitFinding(histogram.table, histogram.column, kind, persons, share, self._bar(len(near))))
        return share

    def _propose(self, histogram: PersonHistogram, name: str, value: object, why: str) -> None:
        columns = ("columns", histogram.column) if histogram.column else ()
        self.proposals.append(Proposal(("tables", histogram.table, *columns, name), value, why))

    def _is_whole(self, proposal: Proposal) -> bool:
        """Return whether a policy may say what is proposed: a lower bound only below an upper one, and neither alone."""
        *above, name = proposal.place
        if name not in ("lower", "upper"):
            return True
        column = self.fitting.policy.tables[above[1]].columns[above[-1]]
        ends: dict[str, Any] = {"lower": column.lower, "upper": column.upper}
        ends |= {other.place[-1]: other.value for other in self.proposals if list(other.place[:-1]) == above}
        return None not in (ends["lower"], ends["upper"]) and bool(ends["lower"] < ends["upper"])

    def _rows(self, index: int, histogram: PersonHistogram) -> None:
        table, counts = self.fitting.policy.tables[histogram.table], self._clear(index)
        self.persons[histogram.table] = everybody = sum(counts)
        if self.fitting.policy.privacy_unit is None or not everybody:
            return
        self._over(index, "rows", "max_rows", table.bounds.max_rows or 1, "rows")
        if table.bounds.max_count is not None:
            self._over(index, "max_count", "max_count", table.bounds.max_count, "rows")

    def _bounded(self, index: int, histogram: PersonHistogram) -> None:
        table = self.fitting.policy.tables[histogram.table]
        column = table.columns[histogram.column]
        if histogram.about == "max_total":
            self._over(index, "max_total", "max_total", column.max_total or 1, f"of {column.name} in all")
            return
        for name, most in bounds_of_different(self.fitting.policy, table, column).items():
            self._find(index, name, range(histogram.edges.index(most) + 1, len(histogram.edges)))

    def _over(self, index: int, kind: str, name: str, most: Fraction | int, measured: str) -> None:
        """Find how many persons are over a bound, and propose another one if these are too many, or none is near it."""
        histogram, counts = self.fitting.histograms[index], self._clear(index)
        edges, few = histogram.edges, FEW * sum(counts)
        share = self._find(index, kind, range(edges.index(most) + 1, len(edges)))
        enough = next(edge for position, edge in enumerate(edges) if sum(counts[position + 1 :]) <= few)
        if share > FEW and enough > most:
            why = f"{share:.1%} of the {self.unit} have more than {plain_decimal(Fraction(most))} {measured}"
            self._propose(histogram, name, enough, why)
        elif 2 * enough <= most and any(counts):
            number = plain_decimal(Fraction(enough))
            why = f"nearly everybody has at most {number} {measured}, and a smaller {name} means less noise"
            self._propose(histogram, name, enough, why)

    def _missing(self, index: int, histogram: PersonHistogram) -> None:
        if histogram.about == "missing":
            self._absent(index, histogram, NULLS)
            if histogram.bins > UNREADABLE:
                self._find(index, "unreadable", range(UNREADABLE, UNREADABLE + 1))
        elif not any(same_column(histogram, other) and other.about == "missing" for other in self.fitting.histograms):
            self._absent(index, histogram, 0)

    def _absent(self, index: int, histogram: PersonHistogram, position: int) -> None:
        share = self._find(index, "missing", range(position, position + 1))
        if share and not self.fitting.policy.tables[histogram.table].columns[histogram.column].nullable:
            self._propose(histogram, "nullable", True, f"{share:.1%} of the {self.unit} lack a value")

    def _ends(self, index: int, histogram: PersonHistogram, ladder: Ladder) -> None:
        """Find and propose by a histogram of values, whose bin 0 holds persons without a value."""
        column = self.fitting.policy.tables[histogram.table].columns[histogram.column]
        shares: dict[str, float] = {}
        if histogram.about != "highest" and column.lower is not None:
            shares["lower"] = self._find(index, "below", range(1, ladder.low + 1))
        if histogram.about != "lowest" and column.upper is not None:
            shares["upper"] = self._find(index, "above", range(ladder.high + 2, len(ladder.steps) + 2))
        counts = self._clear(index)[1:]
        for name, value, why in proposed_ends(
            ladder, column, histogram.about, counts, FEW, self.unit, shares, self._least(index)
        ):
            self._propose(histogram, name, value, why)

    @property
    def unit(self) -> str:
        return "rows" if self.fitting.policy.privacy_unit is None else "persons"


def fit_policy(policy: Policy, *, epsilon: Fraction | None = None, source: Any = None) -> PolicyFit:
    """Measure and propose in one step; see `Fitting`."""
    fitting = Fitting(policy, epsilon=epsilon, source=source)
    try:
        return fitting.measure()
    finally:
        fitting.close()


def same_column(histogram: PersonHistogram, other: PersonHistogram) -> bool:
    return (histogram.table, histogram.column) == (other.table, other.column)
