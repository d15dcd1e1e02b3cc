"""Files that people name, and errors that say which file it was and why it failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.storage.files import sync, take_name

_MOST_CHARACTERS = 64 << 20


def read_text(path: Path) -> str:
    """Return a text file in UTF-8 of at most 64 MB. Raises InterfaceError (file_read)."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise refuse("file_read", place=str(path), problem="it is longer than 64 MB, or has no end")
        return text
    except OSError as error:
        raise refuse("file_read", place=str(path), problem=(error.strerror or "it failed").lower()) from None
    except UnicodeDecodeError:
        raise refuse("file_read", place=str(path), problem="it is not UTF-8") from None


@contextmanager
def writing(path: Path, *, charged: bool = False) -> Iterator[None]:
    """Replace an OSError by the Fault file_write about `path`; `charged`: whether a charge stays."""
    try:
        yield
    except OSError as error:
        raise refuse("file_write", place=str(path), problem=error.strerror or "it failed", charged=charged) from None


def require_writable(path: Path) -> None:
    """Check that a file can be written before a question is asked, so that nothing is charged for an answer that cannot be
    written. Raises Fault file_write."""
    with writing(path):
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()


def require_replaceable(path: Path) -> None:
    """Check that `replace_file` can write a private file at `path`. Raises Fault file_write."""
    with writing(path):
        take_name(_part(path), 0o600)
        _part(path).unlink()


def replace_file(path: Path, write: Callable[[Path], object], *, private: bool = False, charged: bool = False) -> None:
    """Write a file atomically: `write` fills a temporary file next to it, which is flushed, then renamed. No link is followed,
    and readers see the old file or the new one. `private`: its owner alone can read it. Raises Fault file_write."""
    with writing(path, charged=charged):
        try:
            take_name(_part(path), 0o600 if private else 0o666)
            write(_part(path))
            sync(_part(path))
            os.replace(_part(path), path)
            sync(path.parent)
        finally:
            _part(path).unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")
