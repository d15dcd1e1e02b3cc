"""Accountants: how privacy losses of adaptively chosen queries add up, and how they become charges."""
