"""Stored releases: record, store, look up, and derive further answers from them without charge."""
