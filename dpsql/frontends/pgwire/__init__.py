"""The door for BI tools: PostgreSQL's protocol over a session for each connection. `server.serve` opens it."""
