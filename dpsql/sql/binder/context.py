"""The interface through which parts of the binder use the binder of the whole statement."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from dpsql.plan.plan import Block, Expr, PublicInput
from dpsql.policy import Policy
from dpsql.sql.binder.scope import Bound, Environment, Protected, Released, Scope


class BindingContext(Protocol):
    """One statement being bound: its policy, what was collected from it, and how its parts are bound in turn.

    `blocks`: the private blocks so far, by name. `whole`: the statement itself. `public`: the public tables read so far, by
    text. `min_units`: groups with fewer counted units are not shown (None: all are). Every method raises refusals only.
    """

    policy: Policy
    blocks: dict[str, Block]
    whole: exp.Expr
    public: dict[str, PublicInput]
    min_units: int | None

    def add_block(self, block: Block) -> str:
        """Enter a private block and return its name; equal blocks are one release."""

    def environment(self, tree: exp.Query, outer: Environment) -> Environment:
        """Return the names that WITH puts in front of `tree`."""

    def source(self, node: exp.Expr, environment: Environment, rows: bool = False) -> tuple[str, Bound]:
        """Bind one item of FROM; return its alias and what it is."""

    def alone(self, node: exp.Expr, environment: Environment, around: Scope) -> Bound:
        """Bind a subquery of an expression that may not name columns of the query around it."""

    def rows(self, bound: Released, node: exp.Expr) -> Protected:
        """Return a result as a relation that a later block reads."""

    def value(self, node: exp.Expr, environment: Environment, around: Scope) -> Expr:
        """Return the one value of a subquery over results as an expression over protected rows."""

    def subquery(self, node: exp.Expr, environment: Environment) -> exp.Expr | None:
        """Return the released form of a subquery inside an expression, None for any other node."""

    def released_part(self, value: object, environment: Environment) -> object:
        """Return a part of the public remainder with its subqueries bound."""
