"""Noise mechanisms and partition selection as data: scale, exact loss, expected error; no randomness."""
