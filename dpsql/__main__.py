"""`python -m dpsql` is the command line."""

from __future__ import annotations

from dpsql.frontends.cli import main

main()
