"""Randomness and exact integer samplers, and `perturb`, the only module that opens an exact answer.

Input: a sealed exact answer and its noise plan. Output: noisy integers.
"""
