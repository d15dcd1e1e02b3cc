"""The demo: a real cohort, its policy and its ledger."""
