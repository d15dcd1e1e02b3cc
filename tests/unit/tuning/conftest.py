"""Fixtures: each test has a separate state directory, so that it never meets the ledger of an earlier run."""
