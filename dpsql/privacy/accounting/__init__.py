"""Accountants: how privacy losses of adaptively chosen questions add up, and how they become charges."""
