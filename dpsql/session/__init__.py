"""Answers to questions in a fixed order: plan, price, reserve, touch data, noise, store, answer. Every front end calls a
`Session`."""
