"""From noisy integers to the answer: the public remainder in a sandbox, error bars, the immutable `Release`.

Enters: noisy blocks and public tables. Leaves: Arrow tables with error bars, price and notes. Cannot reach protected data.
"""
