"""Tests import what they share from this folder: `support`, `sql`, `fuzz`."""
