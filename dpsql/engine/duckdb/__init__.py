"""DuckDB: its dialect, its connections and readers, and prepared copies in DuckDB files."""
