"""Spark 4: its dialect, its sessions, and the reading of its catalog and of Parquet files."""
