"""Questions without tables, answered as PostgreSQL answers them, from its own types, functions and operators."""
