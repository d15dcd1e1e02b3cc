"""A served clinic for all tests that leave it unchanged, and one whose server a test starts and stops itself."""

from __future__ import annotations

from support.served_clinic import own_clinic, served

__all__ = ["own_clinic", "served"]
