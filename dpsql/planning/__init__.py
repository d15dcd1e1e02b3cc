"""Questions planned to the end before data is touched, kept by text, options and policy."""
