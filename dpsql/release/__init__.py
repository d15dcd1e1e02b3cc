"""From noisy integers to the answer: the public remainder in a sandbox, error bars, the immutable `Release`.

Input: noisy blocks and public tables. Output: Arrow tables with error bars, price and notes. Protected data cannot be reached
from here.
"""
