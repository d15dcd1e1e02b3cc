"""Loss of stored releases, as after someone deletes the file next to the ledger."""

from collections.abc import Callable

from dpsql.reuse.store import ReleaseNote, ReleaseStore


def lose_releases(store: ReleaseStore, lost: Callable[[ReleaseNote], bool] = lambda note: True) -> int:
    """Delete the releases for which `lost` is true, and return their number."""
    keys = [note.key for note in store.notes() if lost(note)]
    with store._writing() as connection:
        for key in keys:
            connection.run("DELETE FROM dpsql_answers WHERE key = :key", key=key)
    return len(keys)
