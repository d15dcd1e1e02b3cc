"""Spark 4: its dialect, its sessions, and what is read of its catalog and of Parquet files."""
