"""Interface through which parts of the binder use the binder of the whole statement."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sqlglot import exp

from dpsql.functions.key_questions import PublicValues
from dpsql.plan.plan import Block, Expr, PublicInput
from dpsql.policy import Policy
from dpsql.sql.binder.scope import Bound, Environment, Protected, Released, Scope


class BindingContext(Protocol):
    """One statement while it is bound: its policy, what has been collected from it, and methods that bind its parts.

    `blocks`: the private blocks so far, by name. `whole`: the statement itself. `public`: the public tables read so far, by the
    table's name. `min_units`: groups with fewer counted units are not shown (None: all are). `public_values`: how the values of
    public keys are found. The methods raise only refusals.
    """

    policy: Policy
    blocks: dict[str, Block]
    whole: exp.Expr
    public: dict[str, PublicInput]
    min_units: int | None
    public_values: PublicValues

    def add_block(self, block: Block) -> str:
        """Add a private block and return its name; equal blocks are one release."""

    def environment(self, tree: exp.Query, outer: Environment) -> Environment:
        """Return the environment with the WITH entries of `tree`."""

    def source(self, node: exp.Expr, environment: Environment, rows: bool = False) -> tuple[str, Bound]:
        """Return the alias of one item of FROM, and its bound source. `rows`: the SELECT above aggregates."""

    def alone(self, node: exp.Expr, environment: Environment, around: Scope) -> Bound:
        """Bind a subquery of an expression that must not name columns of the outer query."""

    def rows(self, bound: Released, node: exp.Expr, null_safe: Collection[int] = ()) -> Protected:
        """Return a result as a relation that a later block reads. `null_safe`: columns that are compared with NULL as a value."""

    def value(self, node: exp.Expr, environment: Environment, around: Scope) -> Expr:
        """Return the single value of a subquery over results as an expression over protected rows."""

    def subquery(self, node: exp.Expr, environment: Environment) -> exp.Expr | None:
        """Return the released form of a subquery inside an expression, None for any other node."""

    def released_part(self, value: object, environment: Environment) -> object:
        """Return a part of the public remainder with its subqueries bound."""
