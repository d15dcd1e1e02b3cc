"""What the owner's commands do before a ledger exists: check a policy, write a starter policy."""
