"""Engines: their contract, their queries, prepared copies, and exact integer answers.

Input: bounded blocks. Output: sealed `ExactAnswer`s. Error texts of engines never leave this package.
"""
