"""The audit of the server: databases served on this machine, a client at the level of bytes, and comparisons of what it
receives."""
