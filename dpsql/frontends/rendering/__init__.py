"""Answers as text: tables for people, CSV, JSON and Arrow for programs, prices and what remains."""
