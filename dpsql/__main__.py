"""`python -m dpsql` is the command line."""

from __future__ import annotations

from dpsql.cli import main

main()
