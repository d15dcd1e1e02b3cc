"""Benchmarks: dpsql beside the same query on plain DuckDB, in turn in one process. `python -m benchmarks --help`."""
