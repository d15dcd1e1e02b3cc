"""Randomness and exact integer samplers, and `perturb`, the only place that opens an exact answer.

Enters: a sealed exact answer and its noise plan. Leaves: noisy integers.
"""
