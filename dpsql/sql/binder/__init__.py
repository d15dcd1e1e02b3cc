"""Bind a parsed statement: cut it at its lowest private aggregations and prove each relation's stability."""
