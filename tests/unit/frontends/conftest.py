"""Fixtures of all front ends: a clinic in a folder, the command line run in this process, and a served clinic."""

from support.clinic_folder import bare_clinic, clinic, dpsql
from support.served_clinic import own_clinic, served

__all__ = ["bare_clinic", "clinic", "dpsql", "own_clinic", "served"]
