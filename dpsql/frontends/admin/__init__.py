"""Commands of the owner that need no ledger: check a policy, write a starter policy."""
