"""dpsql: a SQL proxy that makes any query it answers differentially private."""

from __future__ import annotations

from dpsql import refusals as refusals  # fills the register; every room below may refuse
