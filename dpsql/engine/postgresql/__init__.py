"""PostgreSQL 15 and later: its dialect, its connections, and what is read of its catalog."""
