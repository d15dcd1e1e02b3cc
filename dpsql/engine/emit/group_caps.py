"""SQL text of `max_groups` without a window, where public keys have few combinations (privacy.md 4).

The groups of a unit are a set of bits. A unit with more than `max_groups` of them has a *limit*: the hash of the first group
that is left out, found by sorting the hashes of the unit's own groups. Groups with a smaller hash stay. These are at most
`max_groups`, whatever the data are, because no more of the unit's different groups are before the limit; where the hashes of two
groups are equal there, which no accident does, both are left out. Otherwise the window keeps the same groups. A unit without a
limit keeps its groups, and no row of it is hashed. All this depends on the unit's own rows and the secret alone.

The rows are stored before they are read twice: a unit that has few groups where they are counted, and many where they are
summed, would keep all of these.

Measured at 1 and 10 million rows and 50 groups, in processor time of the window, with the reading of the view: 0.9 to 1.05 if
nearly all units have a limit, 0.46 to 0.88 if half of them or fewer have one, 0.57 over a copy.
"""

from __future__ import annotations

from math import prod

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bounded_view import keyed_order
from dpsql.functions.public_domains import place_of
from dpsql.plan.intervals import Type
from dpsql.plan.plan import UNIT, Column, Key

_ROWS, _BITS, _LIMITED, _LIMIT = '"#of groups"', '"#bits"', '"#limited"', '"#limit"'
_EXACT = {Type.INTEGER, Type.TEXT, Type.DATE}
"""Types whose values are equal only if they are the same, so that equal groups have one place and one hash."""


def within_limits(rows: str, owner: str, keys: tuple[Key, ...], most: int, secret: str, dialect: Dialect) -> str | None:
    """Return a SELECT of `rows` in the first `most` groups of each unit, or None if the keys or the engine do not allow it.

    `rows`: a SELECT, of which each row is inside the domains of the keys; `owner`: the column that identifies units; `secret`:
    that of keyed orders."""
    domains = [[*(value for value in key.values or () if value is not None)] for key in keys]
    sizes = [len(domain) + (None in (key.values or ())) for key, domain in zip(keys, domains, strict=True)]
    types = [key.expression.facts.type for key in keys]
    if not 0 < prod(sizes) <= dialect.most_places or not _EXACT.issuperset(types) or not all(domains):
        return None
    unit, place, stride = dialect.identifier(UNIT), [], prod(sizes)
    listed, key_texts = [], []
    for key, type_, domain, size in zip(keys, types, domains, sizes, strict=True):
        stride //= size
        of_key = dialect.expression(place_of(Column(key.name, key.expression.facts), tuple(domain)))
        place.append(f"coalesce({of_key}, {len(domain)}) * {stride}")
        values = ", ".join(map(dialect.constant, domain))
        listed.append(f"CAST(([{values}])[i // {stride} % {size} + 1] AS {dialect.types[type_]})")
        key_texts.append(f"CAST({key.name} AS {dialect.types[type_]})")
    groups = f"bit_or(CAST(1 AS BIGINT) << CAST({' + '.join(place)} AS INTEGER))"
    unit_column = "" if owner == unit else f"any_value({unit}) AS {unit}, "
    units = f"SELECT {owner}, {unit_column}{groups} AS {_BITS} FROM {_ROWS} GROUP BY {owner} HAVING bit_count({groups}) > {most}"
    present = f"list_filter(range({prod(sizes)}), lambda i: ({_BITS} >> CAST(i AS INTEGER)) & 1 = 1)"
    hashes = f"list_transform({present}, lambda i: {keyed_order(dialect, secret, tuple(listed))})"
    limits = f"SELECT {owner} AS {_LIMITED}, list_sort({hashes})[{most + 1}] AS {_LIMIT} FROM ({units})"
    stays = f"CASE WHEN {_LIMIT} IS NULL THEN true ELSE {keyed_order(dialect, secret, tuple(key_texts))} < {_LIMIT} END"
    joined = f"{_ROWS} LEFT JOIN ({limits}) ON {owner} IS NOT DISTINCT FROM {_LIMITED}"
    limited = f"SELECT * EXCLUDE ({_LIMITED}, {_LIMIT}) FROM {joined} WHERE {stays}"
    return f"WITH {_ROWS} AS MATERIALIZED ({rows}) {limited}"
