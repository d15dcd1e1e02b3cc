"""Plain remainders computed in vectors: the columns of one block, perhaps in another order, without the sandbox.

Most queries only list their groups and aggregates. Passing fifty rows to the sandbox's DuckDB and back takes longer than
drawing all of their noise, so this module does the same computation in numpy: the same formulas, in the same IEEE doubles,
operation by operation as the sandbox does it. Whatever is not listed here, and any intermediate number that is not finite,
goes to the sandbox. That changes the running time, but the time depends only on numbers that are released.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dpsql.plan.formulas import terms_of
from dpsql.release.error_bars.rowwise import Traced
from dpsql.release.formulas import formula_values
from dpsql.release.remainder import ROW, ReleasedBlock, Remainder
from dpsql.release.sandbox import plain

_SELECT = {"expressions", "from_", "order", "limit", "offset"}
_KEYS = (
    pa.types.is_signed_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_date32, pa.types.is_float64,
)  # fmt: skip


@dataclass(frozen=True)
class Direct:
    """A plain remainder over `block`. `columns`: for each output column the key or measure that it shows; `order`: the keys and
    measures by which rows are sorted, True for descending; `first` and `most`: OFFSET and LIMIT."""

    block: str
    columns: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    first: int
    most: int | None

    def run(self, block: ReleasedBlock, names: tuple[str, ...]) -> tuple[pa.Table, npt.NDArray[np.int64]] | None:
        """Return the rows as the sandbox would, and the group number of each; None if the sandbox has to compute them."""
        columns = _columns(block, {*self.columns, *(name for name, _ in self.order)})
        if columns is None or any(columns[name].null_count or _nan(columns[name]) for name, _ in self.order):
            return None
        rows = np.arange(block.rows, dtype=np.int64)
        if self.order:
            sorted_by = pa.table({**{name: columns[name] for name, _ in self.order}, ROW: rows})
            keys = [(name, "descending" if down else "ascending") for name, down in self.order]
            rows = pc.sort_indices(sorted_by, sort_keys=[*keys, (ROW, "ascending")]).to_numpy().astype(np.int64)
        rows = rows[self.first :][: self.most]
        table = pa.Table.from_arrays([columns[name] for name in self.columns], names=list(names))
        whole = not self.order and len(rows) == block.rows
        return (table if whole else table.take(pa.array(rows))), rows


def direct(remainder: Remainder, traced: Traced | None) -> Direct | None:
    """Return how to compute a remainder without the sandbox; None when it does more than show columns of one block."""
    if traced is None or traced.intervals:
        return None
    tree, block = traced.tree, remainder.block(traced.block)
    if block is None or any(value for name, value in tree.args.items() if name not in _SELECT):
        return None
    source = tree.args["from_"].this
    if not isinstance(source, exp.Table) or source.name != block.name or not _only(source, "alias"):
        return None
    if source.args.get("alias") is not None and source.args["alias"].args.get("columns"):
        return None
    if not all(terms_of(formula) for _, formula, _ in block.formulas):
        return None
    columns = tuple(_plain_column(output, block) for output in traced.outputs)
    order = _order(tree, columns, block)
    first, most = _number(tree.args.get("offset"), 0), _number(tree.args.get("limit"), None)
    if None in columns or order is None or first == -1 or first is None or most == -1:
        return None
    return Direct(block.name, tuple(name for name in columns if name is not None), order, first, most)


def _plain_column(output: exp.Expr | None, block: ReleasedBlock) -> str | None:
    """Return the column of the block that an output shows unchanged; None for any other output."""
    while isinstance(output, exp.Paren):
        output = output.this
    return output.name if isinstance(output, exp.Column) and output.name in block.columns else None


def _order(
    tree: exp.Select, columns: tuple[str | None, ...], block: ReleasedBlock
) -> tuple[tuple[str, bool], ...] | None:
    """Return the columns by which rows are sorted before the tie-breaking ROW; None if the order has anything but columns (a name
    refers to an output first)."""
    order = tree.args.get("order")
    if order is None:
        return ()
    if any(value for name, value in order.args.items() if name != "expressions"):
        return None
    names = [item.alias_or_name.lower() for item in tree.expressions[: len(columns)]]
    sorting: list[tuple[str, bool]] = []
    for item in order.expressions[:-1]:  # the last one is ROW, which breaks ties
        if not isinstance(item, exp.Ordered) or item.args.get("with_fill"):
            return None
        column = _sorted_by(item.this, names, columns, block)
        if column is None:
            return None
        sorting.append((column, bool(item.args.get("desc"))))
    return tuple(sorting)


def _sorted_by(by: exp.Expr, names: list[str], columns: tuple[str | None, ...], block: ReleasedBlock) -> str | None:
    if isinstance(by, exp.Literal) and by.is_int:
        return columns[int(by.name) - 1] if 0 < int(by.name) <= len(columns) else None
    while isinstance(by, exp.Paren):
        by = by.this
    if not isinstance(by, exp.Column) or by.table or by.name.lower() == "all":
        return None
    word = by.name.lower()
    if word in names:
        return columns[names.index(word)] if names.count(word) == 1 else None
    return by.name if by.name in block.columns else None


def _number(clause: exp.Expr | None, absent: int | None) -> int | None:
    """Return the number in a LIMIT or OFFSET; `absent` if there is no clause, -1 for anything but a literal."""
    if clause is None:
        return absent
    node = clause.args.get("expression")
    alone = not any(value for name, value in clause.args.items() if name != "expression")
    return int(node.name) if alone and isinstance(node, exp.Literal) and node.is_int else -1


# --- numbers ----------------------------------------------------------------------------------------------------------


def _columns(block: ReleasedBlock, names: set[str]) -> dict[str, pa.ChunkedArray] | None:
    """Return the keys and measures of a block in the sandbox's types; None where a type or number is not supported here."""
    columns = {}
    for name in block.keys.column_names:
        if name in names:
            values = block.keys.column(name)
            if not any(holds(values.type) for holds in _KEYS) and values.type != pa.timestamp("us"):
                return None
            columns[name] = plain(values)
    terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in block.terms}
    try:
        with np.errstate(all="raise", under="ignore"):
            for name, formula, _ in block.formulas:
                if name in names:
                    values = block.estimates[name] if name in block.estimates else formula_values(formula, terms)
                    if values.dtype == np.float64 and not np.isfinite(values).all():
                        return None
                    columns[name] = pa.chunked_array(
                        [pa.array(values, pa.string() if values.dtype == object else None)]
                    )
    except FloatingPointError:
        return None
    return columns


def _nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _only(node: exp.Expr, *allowed: str) -> bool:
    """Return whether a node has no arguments besides `this` and those in `allowed`."""
    return not any(value for name, value in node.args.items() if name not in ("this", *allowed))
