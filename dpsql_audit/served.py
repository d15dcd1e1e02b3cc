"""Audit of a server: the contract of the check, and databases that contain many trials in separate groups.

`server_check` starts the server and speaks its protocol; nothing here depends on a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from dpsql.media.text import sql_name
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.pricing.pricing import Price
from dpsql_audit.findings import Finding
from dpsql_audit.lower_bounds import LowerBound
from dpsql_audit.questions import Question
from dpsql_audit.synthetic import PROFILES, Data, Profile, Synthetic

TRIALS = 500
"""Number of trials in one answer: groups of a public key, each with the rows of a different privacy unit, or without rows."""
TRIAL = "audit trial"
"""The column with the number of the trial."""


@dataclass(frozen=True)
class ServedBound:
    """A lower bound of epsilon from the answers of a server, and the `claimed` epsilon."""

    question: Question
    bound: LowerBound
    claimed: float


@dataclass
class ServedCheck:
    """The result of auditing a server: questions whose messages were compared, findings, bounds from its answers. `cut_short`:
    the server did not answer in time, and the remaining checks were not tried."""

    compared: int = 0
    findings: list[Finding] = field(default_factory=list)
    cut_short: bool = False
    bounds: list[ServedBound] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Return a sentence for the report."""
        trials = sum(2 * bound.bound.trials for bound in self.bounds)
        end = "; the server did not answer in time, so that the rest was not tried" if self.cut_short else ""
        compared = f"messages of {self.compared} questions compared over the wire"
        return f"{compared}, {trials} trials of {len(self.bounds)} questions{end}"


CheckServer = Callable[[Policy, Sequence[tuple[Question, Price | None]], float, int], ServedCheck]
"""A check of a server, given the policy, questions with their prices (None: refused), seconds and a seed."""


class PackedTrials:
    """One table of a policy with an additional public key, so that one answer contains `TRIALS` independent trials.

    The group of each trial contains all rows of one unit, or none. Each unit is in one group, so the claim of the answer is the
    claim of each trial. Effects that depend on all rows at once (an order, a bound from data) are not tested here.
    """

    def __init__(self, policy: Policy, table: Table, seed: int = 0) -> None:
        """`policy`: over tables in memory. `table`: one that `packable` returns."""
        columns = {**table.columns, TRIAL: PolicyColumn(TRIAL, "integer", 0, TRIALS - 1, nullable=False)}
        self.table = replace(table, columns=columns)
        self.policy = replace(policy, tables={**policy.tables, table.name: self.table})
        self.synthetic = Synthetic(self.policy, seed)

    def questions(self) -> Iterator[tuple[Question, Profile]]:
        """Yield questions for counts and a sum by trial, each with the profile of the unit that moves it furthest."""
        name = sql_name(self.table.name)
        counted = f"SELECT {sql_name(TRIAL)}, COUNT(*) AS n FROM {name} GROUP BY {sql_name(TRIAL)}"
        many = next(profile for profile in PROFILES if profile.default == "high")
        yield Question(counted), many
        yield Question(counted, ("dp.mechanism = 'gaussian'",)), many
        for column in self.table.columns.values():
            if column.name == TRIAL or column.type not in ("integer", "real") or column.name in self.table.foreign_keys:
                continue
            if column.lower is None or column.upper is None:
                continue
            largest = abs(float(column.upper)) >= abs(float(column.lower))  # type: ignore[arg-type]
            profile = next(profile for profile in PROFILES if profile.default == ("high" if largest else "low"))
            summed = (
                f"SELECT {sql_name(TRIAL)}, SUM({sql_name(column.name)}) AS s FROM {name} GROUP BY {sql_name(TRIAL)}"
            )
            yield Question(summed), profile
            return

    def database(self, profile: Profile | None) -> dict[str, pa.Table]:
        """Return the tables with a unit of `profile` in each trial, or with no units (None)."""
        units: list[Data] = []
        for trial in range(TRIALS if profile is not None else 0):
            assert profile is not None
            placed = replace(profile, values={**profile.values, f"{self.table.name}.{TRIAL}": trial})
            units.append(self.synthetic.unit(placed, trial + 1))
        return self.synthetic.database(*units)


def packable(policy: Policy) -> Table | None:
    """Return a table whose rows carry the key of their privacy unit, the one with the fewest rows per unit, or None."""
    tables = [
        table
        for name, table in policy.tables.items()
        if policy.is_protected(name)
        and (policy.privacy_unit is None or (policy.unit_column(name) is not None and not policy.unit_joins(name)))
    ]
    return min(tables, key=lambda table: (table.bounds.max_rows or 1, table.name), default=None)
