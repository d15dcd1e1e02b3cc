"""A folder for the files of a server of a database."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server_folder() -> Iterator[Path]:
    """A new folder, removed afterwards, outside the temporary folders of pytest: every pytest process that starts makes those
    readable to its own user alone, and a server that root starts runs as another one."""
    folder = Path(tempfile.mkdtemp(prefix="dpsql-server-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
