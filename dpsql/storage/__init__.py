"""Directories and durable files of dpsql itself. This package knows nothing of ledgers, policies or data."""
