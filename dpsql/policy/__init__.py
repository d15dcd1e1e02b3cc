"""The policy file: a YAML file in which the owner names the data, the privacy unit, the bounds and the budget."""

from __future__ import annotations

from dpsql.policy.check import load_policy, parse_policy, policy_problems
from dpsql.policy.reach import Hop, is_file
from dpsql.policy.types import (
    COLUMN_TYPES,
    Analyst,
    ContributionBounds,
    DatasetBudget,
    PerQuery,
    Policy,
    PolicyColumn,
    PrivacyUnit,
    ProjectLimit,
    ReusePolicy,
    SessionLimit,
    Table,
    Value,
)

__all__ = [
    "COLUMN_TYPES",
    "Analyst",
    "DatasetBudget",
    "PolicyColumn",
    "ContributionBounds",
    "Hop",
    "PerQuery",
    "Policy",
    "PrivacyUnit",
    "ProjectLimit",
    "ReusePolicy",
    "SessionLimit",
    "Table",
    "Value",
    "is_file",
    "load_policy",
    "parse_policy",
    "policy_problems",
]
