"""From a bound block to a price: aggregates to integer sums, contribution bounds, sensitivity, noise, loss, EXPLAIN.

Enters: blocks, options, policy. Leaves: a price per block with its mechanism. Depends on text, policy and options alone.
"""
