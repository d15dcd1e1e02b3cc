"""Benchmarks: dpsql beside the same query on plain DuckDB, interleaved in one process. `python -m benchmarks --help`."""
