"""Files of questions: priced as a whole first, answered, and resumed after a crash without a second charge."""
