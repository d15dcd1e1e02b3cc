"""Exact figures of disclosure risk: how many persons share a combination of values, and what their group reveals about them.

A *class* is the set of persons with the same values of the chosen columns (quasi-identifiers); NULL is a value like any other. A
person with several rows is in several classes and counted by the smallest: whoever finds one row has found the person.
k-anonymity: Samarati and Sweeney 1998 (k is the size of the smallest class). l-diversity: Machanavajjhala et al. 2007 (distinct:
fewest different sensitive values in a class; entropy: exp of the least Shannon entropy of a class). t-closeness: Li, Li and
Venkatasubramanian 2007, with equal distances between values (half the L1 distance between the distribution in the class and that
of all persons). Risks of being found: prosecutor model of El Emam (1 / size of the person's class).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from dpsql.disclosure.rows import PERSON, PersonRows, quoted
from dpsql.errors.exceptions import refuse

MOST_COLUMNS = 12
LARGEST_SUBSET = 3
"""Largest number of columns in a combination whose uniqueness is listed."""
SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 99), (100, None))
"""Ranges of class sizes that the report distinguishes; None: without upper end."""


@dataclass(frozen=True)
class ClassSizes:
    """Numbers of persons by the size of their smallest class. `classes`: number of different combinations of values.

    Without persons, `smallest` is 0 and every share is 0.
    """

    persons_by_size: tuple[tuple[int, int], ...]
    classes: int

    @property
    def persons(self) -> int:
        """The number of persons."""
        return sum(persons for _, persons in self.persons_by_size)

    @property
    def smallest(self) -> int:
        """The k of k-anonymity."""
        return min((size for size, _ in self.persons_by_size), default=0)

    @property
    def average_risk(self) -> float:
        """The mean over persons of 1 / size: the expected share of persons found by someone who knows the columns of all
        persons."""
        return sum(persons / size for size, persons in self.persons_by_size) / max(self.persons, 1)

    def below(self, k: int) -> int:
        """Return the number of persons in a class of fewer than `k`."""
        return sum(persons for size, persons in self.persons_by_size if size < k)

    def between(self, low: int, high: int | None) -> int:
        """Return the number of persons whose smallest class has from `low` to `high` persons."""
        return sum(persons for size, persons in self.persons_by_size if low <= size and (high is None or size <= high))


@dataclass(frozen=True)
class Diversity:
    """What classes reveal about one sensitive column.

    `distinct`, `entropy`: l of distinct and of entropy l-diversity; `closeness`: t of t-closeness, from 0 to 1; `disclosed`:
    number of persons in a class where everybody has the same value.
    """

    column: str
    distinct: int
    entropy: float
    closeness: float
    disclosed: int


@dataclass(frozen=True)
class Uniqueness:
    """The number of persons who are the only ones with their values of some columns."""

    columns: tuple[str, ...]
    persons: int


@dataclass(frozen=True)
class RiskReport:
    """The figures of one table; `uniqueness` begins with the combination that singles out the most persons."""

    table: str
    columns: tuple[str, ...]
    rows: int
    persons: int
    ownerless: int
    sizes: ClassSizes
    diversity: tuple[Diversity, ...]
    uniqueness: tuple[Uniqueness, ...]


def measure_risk(rows: PersonRows, columns: tuple[str, ...], sensitive: tuple[str, ...] = ()) -> RiskReport:
    """Return the report on `columns` (quasi-identifiers) and `sensitive` columns, all of which `rows` must have read. Raises
    Refusal risk_columns."""
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise refuse("risk_columns", most=MOST_COLUMNS)
    names = {name: quoted(name) for name in columns}
    subsets = [subset for size in range(1, LARGEST_SUBSET + 1) for subset in combinations(columns, size)]
    unique = [
        Uniqueness(subset, class_sizes(rows, {name: names[name] for name in subset}).below(2)) for subset in subsets
    ]
    return RiskReport(
        rows.table,
        columns,
        rows.rows,
        rows.persons,
        rows.ownerless,
        class_sizes(rows, names),
        tuple(_diversity(rows, names, column) for column in sensitive),
        tuple(sorted(unique, key=lambda entry: (-entry.persons, len(entry.columns)))),
    )


def class_sizes(rows: PersonRows, values: dict[str, str]) -> ClassSizes:
    """Return the numbers of persons by the size of their smallest class; `values`: name -> SQL over the local table `rows`."""
    items = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values.items())
    names = ", ".join(quoted(name) for name in values)
    if rows.one_row_each:
        counted = rows.fetch(
            f"SELECT size, SUM(size)::BIGINT, COUNT(*) FROM (SELECT COUNT(*) AS size FROM (SELECT {items} FROM rows) "
            f"GROUP BY {names}) GROUP BY size ORDER BY size"
        )
        return ClassSizes(
            tuple((size, persons) for size, persons, _ in counted), sum(classes for *_, classes in counted)
        )
    pairs = f'SELECT DISTINCT {items}, "{PERSON}" FROM rows'
    sized = f"SELECT *, COUNT(*) OVER (PARTITION BY {names}) AS size FROM ({pairs})"
    smallest = f'SELECT MIN(size) AS size FROM ({sized}) GROUP BY "{PERSON}"'
    persons = rows.fetch(f"SELECT size, COUNT(*) FROM ({smallest}) GROUP BY size ORDER BY size")
    classes = rows.fetch(f"SELECT COUNT(*) FROM (SELECT DISTINCT {items} FROM rows)")[0][0]
    return ClassSizes(tuple((size, number) for size, number in persons), classes)


def _diversity(rows: PersonRows, names: dict[str, str], column: str) -> Diversity:
    """Return the figures of one sensitive column. Shares are of pairs (person, value): a person with two values in one class
    counts once for each."""
    keys, value = ", ".join(names.values()), quoted(column)
    pairs = f'SELECT DISTINCT {keys}, {value} AS "#value", "{PERSON}" FROM rows'
    counted = f'SELECT {keys}, "#value", COUNT(*) AS n FROM ({pairs}) GROUP BY {keys}, "#value"'
    shared = f"SELECT *, n / SUM(n) OVER (PARTITION BY {keys}) AS share FROM ({counted})"
    everybody = f'SELECT "#value" AS v, SUM(n) / SUM(SUM(n)) OVER () AS p FROM ({counted}) GROUP BY "#value"'
    # Half of the L1 distance: values missing in a class add their whole share, which is 1 minus the shares of those present.
    apart = "0.5 * (SUM(abs(share - p)) + 1 - SUM(p))"
    joined = f'({shared}) AS c JOIN ({everybody}) AS e ON c."#value" IS NOT DISTINCT FROM e.v'
    entropy = "exp(-SUM(share * ln(share)))"
    by_class = (
        f"SELECT COUNT(*) AS kinds, {entropy} AS entropy, {apart} AS apart, SUM(n) AS n FROM {joined} GROUP BY {keys}"
    )
    distinct, least, farthest = rows.fetch(f"SELECT MIN(kinds), MIN(entropy), MAX(apart) FROM ({by_class})")[0]
    same = f"SELECT {keys} FROM ({counted}) GROUP BY {keys} HAVING COUNT(*) = 1"
    matched = " AND ".join(f"r.{name} IS NOT DISTINCT FROM s.{name}" for name in names.values())
    disclosed = rows.fetch(f'SELECT COUNT(DISTINCT r."{PERSON}") FROM rows AS r JOIN ({same}) AS s ON {matched}')[0][0]
    return Diversity(column, distinct or 0, least or 0.0, min(max(farthest or 0.0, 0.0), 1.0), disclosed)
