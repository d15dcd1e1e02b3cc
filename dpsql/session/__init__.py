"""The order of things: plan, price, reserve, touch data, noise, store, answer. Every door calls a `Session`."""
