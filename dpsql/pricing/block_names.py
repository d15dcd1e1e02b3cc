"""Names of a plan's blocks in notices: the outputs that read a block, or else its tables and keys.

The names of blocks in a plan (`dp_0`) mean nothing to the analyst. Outputs, tables and keys occur in the analyst's own text.
"""

from __future__ import annotations

from collections import Counter

from dpsql.plan.expression_text import expression_text
from dpsql.plan.plan import Block, Plan
from dpsql.plan.stability import tables
from dpsql.pricing.explain import used_by

MOST_NAMED = 5
"""Most outputs, tables or keys that are named; further ones are counted."""


def block_names(plan: Plan) -> dict[str, str]:
    """Return each block's name in words: "the aggregation behind mean, n" where outputs read it and no other block has the same
    outputs, otherwise "the aggregation of patients by region"."""
    outputs = {block.name: _outputs(plan, block) for block in plan.blocks}
    readers = Counter(outputs.values())
    return {
        block.name: _of_rows(block, behind) if not behind or readers[behind] > 1 else f"the aggregation behind {behind}"
        for block in plan.blocks
        for behind in (outputs[block.name],)
    }


def _of_rows(block: Block, behind: str) -> str:
    keys = [expression_text(key.expression) for key in block.keys]
    by = f" by {_listed(keys)}" if keys else ""
    return f"the aggregation of {_listed(sorted(tables(block.source)))}{by}{f' behind {behind}' if behind else ''}"


def _outputs(plan: Plan, block: Block) -> str:
    """Return the outputs that read a measure of `block`, "" if there are none."""
    used = used_by(plan, block.name)
    return _listed(list(dict.fromkeys(name for measure in block.measures for name in used.get(measure.name, ()))))


def _listed(names: list[str]) -> str:
    further = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {further} more" if further > 0 else "")
