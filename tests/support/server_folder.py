"""A folder for the files of a database server."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server_folder() -> Iterator[Path]:
    """Yield a new folder outside pytest's temporary folders, removed afterwards. Every pytest process makes its temporary folders
    readable only to its own user, but a server that root starts runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="dpsql-server-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
