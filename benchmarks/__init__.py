"""Benchmarks: dpsql and the same query on plain DuckDB, alternating in one process. `python -m benchmarks --help`."""
