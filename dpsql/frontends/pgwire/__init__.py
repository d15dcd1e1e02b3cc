"""The PostgreSQL protocol, for BI tools: one session for each connection. `server.serve` opens it."""
