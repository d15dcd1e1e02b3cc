# The version that the tests of dpsql start.
FROM apache/superset:6.1.0
USER root
RUN . /app/.venv/bin/activate && uv pip install psycopg2-binary
USER superset
