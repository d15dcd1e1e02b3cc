"""The typed plan of a question: expressions, relations, private blocks, and the stability of each relation.

Enters: nothing but values made by `sql`. Leaves: frozen trees with column facts, and `stability`'s rows per unit.
"""
