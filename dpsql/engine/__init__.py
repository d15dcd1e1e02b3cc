"""Where the data live: the contract of engines, queries for them, prepared copies, exact integer answers.

Enters: bounded blocks. Leaves: `ExactAnswer`, sealed. Engine error texts end here.
"""
