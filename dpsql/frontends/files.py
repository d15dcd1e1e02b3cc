"""Files that people name, and errors that say which file it was and why it failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.storage.durable_files import sync, take_name

_MOST_CHARACTERS = 64 << 20


def read_text(place: Path) -> str:
    """Return a text file in UTF-8 of at most 64 MB. Raises InterfaceError (file_read)."""
    try:
        with place.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise refuse("file_read", place=str(place), problem="it is longer than 64 MB, or has no end")
        return text
    except OSError as error:
        raise refuse("file_read", place=str(place), problem=(error.strerror or "it failed").lower()) from None
    except UnicodeDecodeError:
        raise refuse("file_read", place=str(place), problem="it is not UTF-8") from None


@contextmanager
def writing(place: Path, *, charged: bool = False) -> Iterator[None]:
    """Replace an OSError by the Fault file_write about `place`; `charged`: whether a charge stays."""
    try:
        yield
    except OSError as error:
        raise refuse("file_write", place=str(place), problem=error.strerror or "it failed", charged=charged) from None


def require_writable(place: Path) -> None:
    """Check that a file can be written before a question is asked, so that nothing is charged for an answer that cannot be
    written. Raises Fault file_write."""
    with writing(place):
        existed = place.exists()
        place.open("ab").close()
        if not existed:
            place.unlink()


def require_replaceable(place: Path) -> None:
    """Check that `replace_file` can write a private file at `place`. Raises Fault file_write."""
    with writing(place):
        take_name(_part(place), 0o600)
        _part(place).unlink()


def replace_file(place: Path, write: Callable[[Path], object], *, private: bool = False, charged: bool = False) -> None:
    """Write a file atomically: `write` fills a temporary file next to it, which is flushed, then renamed. No link is followed,
    and readers see the old file or the new one. `private`: its owner alone can read it. Raises Fault file_write."""
    with writing(place, charged=charged):
        try:
            take_name(_part(place), 0o600 if private else 0o666)
            write(_part(place))
            sync(_part(place))
            os.replace(_part(place), place)
            sync(place.parent)
        finally:
            _part(place).unlink(missing_ok=True)


def _part(place: Path) -> Path:
    return place.with_name(f".{place.name}.part")
