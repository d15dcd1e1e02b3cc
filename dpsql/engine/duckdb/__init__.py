"""DuckDB: dialect, connections, readers, and prepared copies in DuckDB files."""
