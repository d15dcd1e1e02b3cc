"""Complete planning of questions before data is touched, cached by text, options and policy."""
