"""Free memory that the C library keeps: the GNU library can be told to keep less. With other libraries nothing is done.

Each thread takes memory from an arena, of which there are eight for each core. Memory that a thread frees stays in its arena, so
a server with a thread for each client keeps more the longer it runs, although it uses no more.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

_M_ARENA_MAX = -8
_ARENAS = 2


@cache
def _library() -> Any:
    """Return the C library if it has the two functions, else None."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def use_few_arenas() -> bool:
    """Let the threads of this process share two arenas; return whether that was possible. Threads that have an arena keep it, so
    this must be called first. DuckDB, Arrow and Python's own objects have separate allocators, and do not wait for each other
    here."""
    library = _library()
    return library is not None and bool(library.mallopt(_M_ARENA_MAX, _ARENAS))


def return_free_memory() -> None:
    """Return free pages of the arenas to the system; takes some milliseconds."""
    library = _library()
    if library is not None:
        library.malloc_trim(ctypes.c_size_t(0))
