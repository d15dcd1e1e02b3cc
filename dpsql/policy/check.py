"""Reading of a policy, and checks across its entries. Each check adds to `problems`; none stops at the first."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql.errors.custodian_log import DATASETS
from dpsql.errors.exceptions import Error, PolicyRefusal, did_you_mean, refuse
from dpsql.policy.build import build_policy, key_columns
from dpsql.policy.fields import KeysOf
from dpsql.policy.reach import Hop, find_cycle, is_file, joins_of, lake_table, paths_to_unit
from dpsql.policy.source_kinds import SOURCE_KINDS, has_path, is_source_url, source_kind
from dpsql.policy.types import Policy, PolicyColumn, PrivacyUnit, Table
from dpsql.policy.values import MOST_DIGITS, OWNER
from dpsql.policy.versions import PERIODS, named_state
from dpsql.policy.yaml_text import Origin, Place, Problems, Unreadable, read_yaml
from dpsql.privacy.accounting import needs_delta
from dpsql.privacy.mechanisms.registry import MECHANISMS
from dpsql.storage.records import replace

_FILES = (
    "files ending in .parquet, .csv, .csv.gz (name others, such as .tsv and .txt, so, and say csv: {delimiter: ...}), or "
    "delta:FOLDER or iceberg:FOLDER on this machine"
)
_PHYSICAL = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(?:\.[A-Za-z_][A-Za-z0-9_$]{0,62}){0,2}\Z", re.ASCII)

_TWO_PEOPLE = (
    "If another column names another person (payer and payee, mother and child), write `unprotected: [COLUMN]`: that person may "
    "be in any number of rows, and nothing hides it; if it names the same person, let same_unit name it instead of foreign_keys"
)
_WILDCARD = re.compile(r"[*?\[]")


class Names:
    """The names in the file, invalid entries included, so that an invalid entry is not reported as missing."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def tree_at(self, *place: str) -> Any:
        """Return the part of the file at `place`, or None if there is nothing."""
        node = self._tree
        for part in place:
            node = node.get(part) if isinstance(node, dict) else None
        return node

    def below(self, *place: str) -> tuple[str, ...]:
        node = self.tree_at(*place)
        return tuple(node) if isinstance(node, dict) else ()


def check_policy(policy: Policy, tree: Any, problems: Problems) -> None:
    """Run all checks on `policy`, as far as it could be built from `tree`."""
    names = Names(tree)
    _check_addresses(policy, problems)
    _check_csv(policy, names, problems)
    _check_additions(policy, problems)
    if not problems.within(("budget",)):
        _check_limits(policy, problems)
    _check_case(("analysts",), names.below("analysts"), problems)
    _check_owner(names.below("analysts"), problems)
    for name in names.below("analysts"):
        _check_case(("analysts", name, "people"), names.below("analysts", name, "people"), problems)
    _check_case(("projects",), names.below("projects"), problems)
    _check_case(("tables",), names.below("tables"), problems)
    schemas = {("tables", name, "schema"): table.schema for name, table in policy.tables.items()}
    _check_spellings({path: schema for path, schema in schemas.items() if schema is not None}, problems)
    _check_access(policy, names, problems)
    if not policy.tables and not problems.within(("tables",)):
        problems.add(("tables",), "there is no table")
    for table in policy.tables.values():
        _check_links(policy, table, names, problems)
        _check_table(policy, table, names, problems)
    if not problems.within(("privacy_unit",)):
        _check_contributions(policy, problems)
        if policy.privacy_unit is not None:
            _check_unit(policy, policy.privacy_unit, names, problems)
            _check_units_have_no_outside(policy, policy.privacy_unit, problems)


def _check_addresses(policy: Policy, problems: Problems) -> None:
    source = policy.source
    if source is not None and not (is_source_url(source) or is_file(source)):
        forms = ", ".join(kind.form for kind in SOURCE_KINDS.values())
        problems.add(("source",), f"is {forms}, or {_FILES}")
    if not (has_path(policy.ledger, "sqlite:///") or policy.ledger.startswith("postgresql://")):
        problems.add(("ledger",), "is sqlite:///FILE or postgresql://USER@HOST/DATABASE")
    witness = policy.witness
    if witness is not None and not (has_path(witness, "file:///") or witness.startswith("postgresql://")):
        problems.add(("witness",), "is file:///FOLDER or postgresql://USER@HOST/DATABASE, on another machine")
    if witness is not None and witness == policy.ledger:
        problems.add(("witness",), "is the place of the ledger itself, with which it would be set back")
    _check_preparation(policy, problems)
    if str(policy.data_version).lower() in PERIODS and policy.data_version not in PERIODS:
        problems.add(("data_version",), f"is {str(policy.data_version).lower()}, in lower case, if it means the period")
    for name, table in policy.tables.items():
        place = ("tables", name, "source")
        is_url = source_kind(source).reads_urls and "://" in (table.source or "")
        if table.source is not None and not (is_url or is_file(table.source) or _PHYSICAL.match(table.source)):
            problems.add(place, f"is a table's name (schema.table) or {_FILES}")
        if source_kind(source).is_server and lake_table(table.source or ""):
            problems.add(place, "is read by DuckDB, without a server: on Spark, name the table of its catalog")
        if table.source is None and source is not None and is_file(source) and len(policy.tables) > 1:
            problems.add(place, "is missing: the files of the dataset's source hold one table, so name this one's own")


def _check_preparation(policy: Policy, problems: Problems) -> None:
    """Check that copies in a schema or a folder have a server, and that the copied data have a name (data_version)."""
    prepare, copies = policy.prepare, source_kind(policy.source).copies
    if prepare.into is not None and copies is None:
        servers = (f"{kind.scheme}:// ({kind.copies.words})" for kind in SOURCE_KINDS.values() if kind.copies)
        problems.add(("prepare", "into"), f"is for a `source` of {' or '.join(servers)}; files need none")
    elif prepare.into is not None and named_state(policy) is None:
        problems.add(
            ("prepare", "into"),
            "needs a data_version that names the state of the data, which a copy is of",
        )
    elif prepare.into is not None and copies is not None and not copies.accepts(prepare.into):
        problems.add(("prepare", "into"), copies.problem)
    elif prepare.role is not None and (prepare.into is None or copies is None or not copies.has_role):
        problems.add(("prepare", "role"), "writes into a schema of PostgreSQL that `into` names, and there is none")
    elif prepare.automatic and prepare.into is None and copies is not None:
        problems.add(
            ("prepare",), "needs `into`: a schema of the PostgreSQL server that holds the data, or a folder for Spark"
        )


def _check_additions(policy: Policy, problems: Problems) -> None:
    """Check that append-only tables are protected, and read from files whose names show which rows are new."""
    on_server = source_kind(policy.source).is_server
    for name, table in policy.tables.items():
        place, source = ("tables", name, "append_only"), table.source or policy.source or ""
        if table.append_only and table.public:
            problems.add(place, "is about prepared copies of protected tables; a public table has none")
        elif table.append_only and (on_server or not is_file(source)):
            problems.add(
                place,
                "needs Parquet or CSV files read by DuckDB, one more for each load: new rows are known by the names of new "
                "files, and in a table by values of people's rows alone. Leave it out",
            )
        elif table.append_only and not _WILDCARD.search(source):
            problems.add(
                place, "needs a `source` with a wildcard, such as visits/*.parquet: new rows come in new files"
            )


def _check_csv(policy: Policy, names: Names, problems: Problems) -> None:
    """Check that a CSV dialect applies to a CSV source, and that its characters differ."""
    written = [name for name in names.below("tables") if "csv" in names.below("tables", name)]
    if "csv" in names.below() and not any(table.csv for table in policy.tables.values()):
        problems.add(("csv",), "no table is read from CSV files")
    for name in written:
        if name in policy.tables and policy.tables[name].csv is None:
            problems.add(("tables", name, "csv"), "the table is not read from CSV files")
    for name, table in policy.tables.items():
        place: Place = ("tables", name, "csv") if name in written else ("csv",)
        if table.csv is not None and not problems.within(place):
            if table.csv.quote == table.csv.delimiter:
                problems.add((*place, "quote"), "is the same character as the delimiter")
            if table.csv.multiline and not table.csv.quote:
                problems.add((*place, "multiline"), "needs a quote: line breaks stand inside quotes")


def _check_limits(policy: Policy, problems: Problems) -> None:
    """Check the limits of parts: none may promise more than the budget contains."""
    budget, query = policy.budget, policy.per_query
    if budget.delta == 0 and needs_delta(budget.accountant):
        problems.add(
            ("budget", "delta"), f"must be given and greater than 0 under {budget.accountant}, for example 1e-6"
        )
    if budget.lifetime is not None and budget.every is None:
        problems.add(
            ("budget", "lifetime"), "limits all windows of a budget together; say every: month (or raise epsilon)"
        )
    elif budget.lifetime is not None:
        for name, window, in_all in (
            ("epsilon", budget.epsilon, budget.lifetime.epsilon), ("delta", budget.delta, budget.lifetime.delta),
        ):  # fmt: skip
            if in_all < window:
                problems.add(("budget", "lifetime", name), f"is less than the {name} of one window, {float(window):g}")
    most = "the budget's epsilon"
    _at_most(query.max_epsilon, budget.epsilon, most, ("per_query", "max_epsilon"), problems)
    _at_most(query.epsilon, budget.epsilon, most, ("per_query", "epsilon"), problems)
    if query.max_epsilon is not None:
        _at_most(query.epsilon, query.max_epsilon, "per_query.max_epsilon", ("per_query", "epsilon"), problems)
    _at_most(query.min_epsilon, query.epsilon, "per_query.epsilon", ("per_query", "min_epsilon"), problems)
    _at_most(query.delta, budget.delta, "the budget's delta", ("per_query", "delta"), problems)
    mechanism = MECHANISMS.get(query.mechanism)
    if mechanism is not None and not mechanism.pure and budget.delta == 0:
        problems.add(("per_query", "mechanism"), f"{mechanism.word} noise needs a delta, and the budget has none")
    limits: list[tuple[Place, Any]] = [(("analysts", name), limit) for name, limit in policy.analysts.items()]
    limits += [(("projects", name), limit) for name, limit in policy.projects.items()]
    shared = [(("analysts", name, "people"), limit.people) for name, limit in policy.analysts.items()]
    limits += [((*place, name), limit) for place, people in shared for name, limit in people.items()]
    for name, project in policy.projects.items():
        for number, member in enumerate(project.members or ()):
            if member not in policy.analysts:
                problems.add(("projects", name, "members", number), f"the policy names no analyst {member}")
    for place, limit in [*limits, (("session",), policy.session)]:
        if limit is not None:
            _at_most(limit.epsilon, budget.epsilon, most, (*place, "epsilon"), problems)
            _at_most(limit.delta, budget.delta, "the budget's delta", (*place, "delta"), problems)


def _check_access(policy: Policy, names: Names, problems: Problems) -> None:
    """Check that the names in an analyst's access exist, and that row filters are for protected tables."""
    tables = names.below("tables")
    for analyst, limit in policy.analysts.items():
        place = ("analysts", analyst)
        if limit.access is None or problems.within(("tables",)):
            continue
        for key in ("tables", "columns", "where"):
            written = names.tree_at(*place, key)
            listed = [written] if isinstance(written, str) else written or ()
            for number, name in enumerate(listed):
                spot: Place = (*place, key, name) if isinstance(written, dict) else (*place, key, number)
                if name not in tables:
                    problems.add(spot, f"there is no table {name}{did_you_mean(str(name), tables)}")
                elif key != "tables" and name not in limit.access:
                    problems.add(spot, f"table {name} is not among the tables of {analyst}")
                elif key == "where" and policy.tables[name].public:
                    problems.add(
                        spot, "the table is public: its rows are nobody's; leave it out of the analyst's tables"
                    )
        for name, access in limit.access.items():
            for number, column in enumerate(access.columns or ()):
                if column not in policy.tables[name].columns:
                    near = did_you_mean(column, policy.tables[name].columns)
                    problems.add((*place, "columns", name, number), f"table {name} has no column {column}{near}")


def _at_most(value: Fraction | None, limit: Fraction, limit_name: str, place: Place, problems: Problems) -> None:
    if value is not None and value > limit:
        problems.add(place, f"{float(value):g} is more than {limit_name}, {float(limit):g}")


def _check_case(place: Place, names: Iterable[str], problems: Problems) -> None:
    _check_spellings({(*place, name): name for name in names}, problems)


def _check_spellings(names: Mapping[Place, str], problems: Problems) -> None:
    """Check that names differ by more than case, which SQL ignores."""
    spellings: dict[str, str] = {}
    for path, name in names.items():
        first = spellings.setdefault(name.lower(), name)
        if first != name:
            problems.add(path, f"differs from {first} by case alone, which SQL does not see")


def _check_owner(names: Iterable[str], problems: Problems) -> None:
    """Check that no analyst has the owner's name: after a removal of that analyst, the login would be the owner's."""
    for name in names:
        if name.lower() == OWNER:
            why = f"is the login of the data's owner, who needs no account; choose another name than {name}"
            problems.add(("analysts", name), why)


def _check_table(policy: Policy, table: Table, names: Names, problems: Problems) -> None:
    place: Place = ("tables", table.name)
    if not table.columns and not names.below("tables", table.name, "columns"):
        problems.add((*place, "columns"), "the table has no columns; declare those that analysts may use")
    declared = (*table.columns, *names.below("tables", table.name, "columns"))
    _check_case((*place, "columns"), declared, problems)
    for name, column in table.columns.items():
        _check_column(column, (*place, "columns", name), problems)
        if column.source is not None and source_kind(policy.source).is_server:
            problems.add(
                (*place, "columns", name, "from"),
                "names a column of files or of DuckDB; servers rename columns in a view",
            )
        if table.public and column.outside is not None:
            problems.add(
                (*place, "columns", name, "outside"), "a public table's rows are known; name all values as domain"
            )
    for name, below in key_columns(table).items():
        if name not in declared:
            problems.add(
                (*place, *below),
                f"column {name} must be written under columns, with its type{did_you_mean(name, declared)}",
            )
        elif name in table.columns and table.columns[name].type == "real":
            problems.add((*place, *below), f"column {name} is real; keys are integers, text, dates or truth values")
    for key in table.bounds.declared():
        if table.public:
            problems.add((*place, key), "a public table belongs to nobody, so it has no such limit")
    _check_unprotected(table, declared, problems)
    if not table.public and table.max_multiplicity and not problems.within((*place, "public")):
        problems.add((*place, "max_multiplicity"), "is a promise about public tables; this one is protected")


def _check_unprotected(table: Table, declared: tuple[str, ...], problems: Problems) -> None:
    for number, name in enumerate(table.unprotected or ()):
        place: Place = ("tables", table.name, "unprotected", number)
        if table.public:
            problems.add(place, "a public table's rows are about nobody")
        elif name not in declared:
            problems.add(place, f"column {name} must be written under columns{did_you_mean(name, declared)}")


def _check_column(column: PolicyColumn, place: Place, problems: Problems) -> None:
    lower: Any = column.lower
    upper: Any = column.upper
    if (lower is None) != (upper is None):
        end, other = ("lower", "upper") if lower is None else ("upper", "lower")
        problems.add((*place, end), f"is missing: {other} is given, and one bound alone bounds nothing")
    bounded = lower is not None and upper is not None
    if bounded and lower > upper:
        problems.add((*place, "lower"), "lower is greater than upper")
        bounded = False
    if column.max_total is not None and column.type not in ("integer", "real"):
        problems.add((*place, "max_total"), f"bounds a sum, and a {column.type} column has none")
    if column.scale is not None:
        _check_scale(column, column.scale, place, problems)
    for index, value in enumerate(column.domain or ()):
        if value is None and not column.nullable:
            problems.add((*place, "domain", index), "null is listed, and the column is not nullable")
        if value is not None and bounded and not lower <= value <= upper:
            problems.add((*place, "domain", index), "the value lies outside lower and upper")

    if column.outside is not None:
        _check_outside(column, (*place, "outside"), problems)


def _check_scale(column: PolicyColumn, scale: int, place: Place, problems: Problems) -> None:
    if column.type != "real":
        problems.add((*place, "scale"), f"a {column.type} column has no digits after the point; a real column may")
        return
    listed: list[tuple[Place, Any]] = [(("domain", index), value) for index, value in enumerate(column.domain or ())]
    for key, value in [(("lower",), column.lower), (("upper",), column.upper), *listed]:
        steps = Fraction(value or 0) * 10**scale
        if steps.denominator != 1:
            problems.add((*place, *key), f"has more digits after the point than the scale, {scale}")
        elif abs(steps) >= 10**MOST_DIGITS:
            problems.add((*place, *key), "has more than 14 digits, scale included; so many are exact")


def _check_outside(column: PolicyColumn, place: Place, problems: Problems) -> None:
    """Check that the key of the group of other values is not one of the values inside."""
    label: Any = column.outside
    lower: Any = column.lower
    upper: Any = column.upper
    if column.domain is None and (lower is None or upper is None):
        missing = "a domain" if column.type == "text" else "lower and upper, or a domain"
        problems.add(place, f"needs {missing}: without it no value is outside")
    elif label in column.domain if column.domain is not None else lower <= label <= upper:
        problems.add(place, f"{label} is one of the values inside, so it cannot name those outside")


def _check_units_have_no_outside(policy: Policy, unit: PrivacyUnit, problems: Problems) -> None:
    for table in policy.tables.values():
        for name, column in table.columns.items():
            target = table.foreign_keys.get(name)
            names_units = (table.name, name) == (unit.table, unit.column) or (
                target is not None and target[0] in policy.tables and not policy.tables[target[0]].public
            )
            if names_units and column.outside is not None:
                place: Place = ("tables", table.name, "columns", name, "outside")
                problems.add(place, "the column leads to the privacy unit, and units are not merged into one group")


def _check_links(policy: Policy, table: Table, names: Names, problems: Problems) -> None:
    """Check the columns of other tables that foreign keys and promises of one unit name."""
    links = [("foreign_keys", *link) for link in table.foreign_keys.items()]
    links += [("same_unit", *link) for link in table.same_unit.items()]
    for field, column, (parent_name, parent_column) in links:
        place: Place = ("tables", table.name, field, column)
        if parent_name not in names.below("tables"):
            problems.add(place, f"there is no table {parent_name}{did_you_mean(parent_name, policy.tables)}")
            continue
        parent = policy.tables.get(parent_name)
        if parent is None:
            continue
        declared = (*parent.columns, *names.below("tables", parent_name, "columns"))
        if parent_column not in declared:
            problems.add(
                place, f"table {parent_name} declares no column {parent_column}{did_you_mean(parent_column, declared)}"
            )
            continue
        if field == "same_unit" and (table.public or parent.public):
            problems.add(place, "compares rows of two protected tables; rows of a public table belong to nobody")
        elif table.public and not parent.public:
            problems.add(
                place,
                f"a public table cannot refer to {parent_name}, which is protected; its rows would "
                "belong to privacy units",
            )
        mine, other = table.columns.get(column), parent.columns.get(parent_column)
        if mine is not None and other is not None and mine.type != other.type:
            problems.add(place, f"{column} is of type {mine.type}, {parent_name}.{parent_column} of type {other.type}")


def _check_contributions(policy: Policy, problems: Problems) -> None:
    """Check that every protected table says how many rows one unit contributes."""
    for name, table in policy.tables.items():
        place = ("tables", name, "max_rows")
        if table.public or problems.within(("tables", name, "public")):
            continue
        if policy.privacy_unit is None:
            _check_no_clips(table, problems)
        if policy.privacy_unit is None and table.bounds.max_rows != 1:
            problems.add(place, "is 1 under row privacy: each row is somebody else")
        if policy.privacy_unit is not None and table.bounds.max_rows is None:
            problems.add(
                place,
                "is missing: how many rows does one privacy unit contribute at most? "
                "(a table about nobody is marked public: true)",
            )


def _check_no_clips(table: Table, problems: Problems) -> None:
    why = "clips what one privacy unit adds up to, and under row privacy every row is its own unit"
    if table.bounds.max_count is not None:
        problems.add(("tables", table.name, "max_count"), why)
    if table.bounds.max_values is not None:
        alone = "bounds the different values of one privacy unit, and under row privacy every row is its own unit"
        problems.add(("tables", table.name, "max_values"), alone)
    for column in table.columns.values():
        if column.max_total is not None:
            problems.add(("tables", table.name, "columns", column.name, "max_total"), why)


def _check_unit(policy: Policy, unit: PrivacyUnit, names: Names, problems: Problems) -> None:
    """Check that every protected table reaches the unit by exactly one path, and that no join on it repeats rows."""
    table = policy.tables.get(unit.table)
    if unit.table not in names.below("tables"):
        near = did_you_mean(unit.table, policy.tables)
        problems.add(("privacy_unit", "table"), f"there is no table {unit.table}{near}")
        return
    if table is None:
        return
    if table.public:
        problems.add(("tables", unit.table, "public"), "the table of the privacy unit cannot be public")
        return
    declared = (*table.columns, *names.below("tables", unit.table, "columns"))
    if unit.column not in declared:
        near = did_you_mean(unit.column, declared)
        problems.add(("privacy_unit", "column"), f"table {unit.table} declares no column {unit.column}{near}")
        return
    if unit.column in table.columns and table.columns[unit.column].type == "real":
        problems.add(("privacy_unit", "column"), f"column {unit.column} is real, which cannot tell units apart exactly")
    for other in policy.tables.values():
        if other.public:
            _check_public_names(other, unit, problems)
    keys = {name: t.foreign_keys for name, t in policy.tables.items() if not t.public}
    cycle = find_cycle(keys)
    if cycle is not None:
        within = f". {_TWO_PEOPLE}" if len(cycle) == 2 else ""
        problems.add(
            ("tables", cycle[0], "foreign_keys"), f"foreign keys run in a circle: {' -> '.join(cycle)}{within}"
        )
        return
    paths = paths_to_unit(keys, unit.table)
    for name in keys:
        _check_paths(policy, name, paths[name], unit, problems)


def _check_public_names(table: Table, unit: PrivacyUnit, problems: Problems) -> None:
    """Check that no public table lists units: a public table with a column named like the unit's column most likely lists the
    units themselves.

    A column named just `id` is every table's own number and does not count.
    """
    for column in table.columns:
        if column.lower() == unit.column.lower() != "id":
            place: Place = ("tables", table.name, "columns", column)
            problems.add(
                place,
                f"a public table names the privacy unit ({column}); make the table protected, "
                "or rename the column in a view if it is something else",
            )


def _check_paths(
    policy: Policy, name: str, paths: list[tuple[Hop, ...]], unit: PrivacyUnit, problems: Problems
) -> None:
    """Check that foreign keys lead to the unit. Only the table whose own keys cause a problem has it, not its children."""
    place: Place = ("tables", name, "foreign_keys")
    if problems.within(place) or problems.within(("tables", name, "public")):
        return
    parents = [parent for parent, _ in policy.tables[name].foreign_keys.values()]
    if not paths and not any(parent not in policy.tables or policy.is_protected(parent) for parent in parents):
        problems.add(
            place,
            f"no foreign keys lead from {name} to the privacy unit {unit.table}.{unit.column}; "
            "add one, or mark the table public: true when it is about nobody",
        )
    elif len({path[:1] for path in paths}) > 1:
        ways = " and ".join(" -> ".join([f"{hop[0]}.{hop[1]}" for hop in path] + [unit.table]) for path in paths)
        problems.add(
            place,
            f"two paths lead to the privacy unit, {ways}, and a row is protected as that of one person: keep the path that says "
            f"whose it is. {_TWO_PEOPLE}",
        )
    elif len(paths) == 1:
        for child, column, parent, parent_column in joins_of(paths[0], unit.column):
            if child == name and not policy.tables[parent].is_unique((parent_column,)):
                problems.add(
                    (*place, column),
                    f"{parent}.{parent_column} must be the primary key of {parent} "
                    "(or listed under unique): the privacy unit is read through it",
                )


# --- reading of a policy ----------------------------------------------------------------------------------------------
# File to text, text to tree, tree to values, these to a policy; all problems are reported together.

Check = Callable[[Policy, Problems], None]
"""A check that adds what is wrong in a policy to its problems."""
MOST_BYTES = 1 << 20
_FILLED = {
    "dataset": "filled",
    "privacy_unit": None,
    "budget": {"epsilon": Fraction(10_000), "delta": Fraction(9, 10_000)},
    "ledger": "sqlite:///filled.db",
    "tables": {},
}
"""Values of required keys with a problem, so that the rest of the file can be checked: they never reach a policy in force."""


def load_policy(path: str | Path) -> Policy:
    """Return the policy in the file at `path`; relative paths in it start at the file's folder.

    Raises PolicyRefusal: `policy_file` if the file cannot be read as text, `policy_invalid` with all `.problems` otherwise.
    """
    place = Path(path)
    return parse_policy(policy_text(place), str(place), place.parent)


def parse_policy(text: str, origin: str = "policy", folder: Path = Path(".")) -> Policy:
    """Return the policy in `text`; `origin` names it in messages. Raises PolicyRefusal (`policy_invalid`)."""
    policy, problems = _read(text, folder)
    if policy is None or problems:
        raise refusal(origin, problems)
    DATASETS.add(policy.dataset)
    return replace(policy, origin=replace(policy.origin, name=origin))


def policy_problems(text: str, further: Check | None = None) -> list[tuple[str, str]]:
    """Return (path, sentence) for every problem of the policy in `text`; empty if it is acceptable. `further`: a check that
    packages above this one add. Parts of the policy that have problems may be missing from what it is given."""
    return _read(text, Path("."), further)[1]


def policy_text(path: Path) -> str:
    """Return the text of a policy file. Raises PolicyRefusal (`policy_file`)."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise refuse("policy_file", origin=str(path), problem="it is not a file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no such place"
        raise refuse("policy_file", origin=str(path), problem=reason.lower()) from None
    if len(data) > MOST_BYTES:
        raise refuse("policy_file", origin=str(path), problem=f"it is longer than {MOST_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse("policy_file", origin=str(path), problem=f"line {line} is not UTF-8") from None


def refusal(origin: str, problems: list[tuple[str, str]]) -> Error:
    """Return the refusal of the policy called `origin` with its problems, (path, sentence), of which there is at least one."""
    path, sentence = problems[0]
    more = "" if len(problems) == 1 else f" (and {len(problems) - 1} more)"
    error = refuse("policy_invalid", origin=origin, path=path, sentence=sentence, more=more)
    error.path = path
    if isinstance(error, PolicyRefusal):
        error.problems = tuple(problems)
    return error


def _read(text: str, folder: Path, further: Check | None = None) -> tuple[Policy | None, list[tuple[str, str]]]:
    problems = Problems()
    if len(text) > MOST_BYTES:
        return None, [("$", f"the policy is longer than {MOST_BYTES} characters")]
    try:
        tree = read_yaml(text, problems)
    except Unreadable as error:
        return None, [("$", str(error))]
    if not isinstance(tree, dict):
        return None, [("$", "a policy is a mapping of keys (dataset, privacy_unit, budget, ledger, tables, ...)")]
    stated = KeysOf(Policy).read(tree, (), problems, _FILLED)
    policy = replace(build_policy(stated, folder, problems), origin=Origin(lines=problems.lines))
    check_policy(policy, tree, problems)
    if further is not None:
        further(policy, problems)
    return policy, problems.listed()
