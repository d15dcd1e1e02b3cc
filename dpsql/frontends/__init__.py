"""Front ends: Python, command line, prompt, batch files, PostgreSQL protocol. They render and relay; none contains a privacy
rule."""
