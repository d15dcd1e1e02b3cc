"""The audit's way through the server: databases served on this machine, a client of bytes, and comparisons of what it is sent."""
