"""Directories and durable files of dpsql's own. Knows nothing of ledgers, policies or data."""
