"""PostgreSQL 15 and later: dialect, connections, and reading of the catalog."""
