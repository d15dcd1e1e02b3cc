"""Rewrites of a text into spellings that the binder knows: one visible tuple for tokens, one for trees, each in its order."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from dpsql.sql.rewrites.bigquery import with_group_bounds
from dpsql.sql.rewrites.comparisons import lists_as_in, with_plain_comparisons
from dpsql.sql.rewrites.pivots import without_pivots, without_unpivots
from dpsql.sql.rewrites.postgresql import in_own_words, interval_texts, with_memberships, with_plain_intervals
from dpsql.sql.rewrites.spellings import in_own_spelling, with_plain_casts
from dpsql.sql.rewrites.tokens import (
    characters_apart,
    decimals_as_reals,
    joined_on_conditions,
    limits_alone,
    plain_strings,
    tops_as_limits,
)

TOKENS: tuple[Callable[[list[Token]], list[Token]], ...] = (
    plain_strings, characters_apart, interval_texts, decimals_as_reals, tops_as_limits,
    joined_on_conditions, limits_alone,
)  # fmt: skip

_SPELT = (
    exp.Anonymous, exp.WithinGroup, exp.Subquery, exp.Values, exp.ApproxDistinct, exp.Fetch, exp.Limit, exp.Offset,
    exp.ArrayContains, exp.IsInf, exp.IsNan, exp.SafeDivide, exp.ToChar, exp.UnixToTime, exp.Join, exp.Distinct,
)  # fmt: skip
TREES: tuple[tuple[Callable[[exp.Query], exp.Query], tuple[type[exp.Expr], ...]], ...] = (
    (lists_as_in, (exp.Any, exp.Anonymous)),
    (in_own_words, (exp.Window, exp.CTE, exp.Anonymous, exp.Localtimestamp, exp.Min, exp.Max)),
    (with_plain_intervals, (exp.Interval, exp.Cast, exp.MakeInterval)),
    (without_unpivots, (exp.Pivot,)),
    (without_pivots, (exp.Pivot,)),
    (with_memberships, (exp.In, exp.Any, exp.All)),
    (with_plain_comparisons, (exp.Tuple, exp.Anonymous, exp.Any, exp.All)),
    (in_own_spelling, _SPELT),
    (with_group_bounds, (exp.Anonymous,)),
    (with_plain_casts, (exp.Cast,)),
)
"""Each rewrite with the types of nodes of which a tree has one if it is to change."""
