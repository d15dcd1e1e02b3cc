"""Engines: their contract, queries for them, prepared copies, exact integer answers.

Input: bounded blocks. Output: sealed `ExactAnswer`s. Error texts of engines never leave this package.
"""
