"""Front ends: Python, command line, prompt, batch files, PostgreSQL wire. They render and relay; none knows a privacy
rule."""
