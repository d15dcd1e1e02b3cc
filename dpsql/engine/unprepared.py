"""The prepared views of sources that keep none of them in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpsql.engine.contract import StoredViews
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.errors.exceptions import refuse


class NoPreparedViews:
    """No prepared views in files: changes of such a source cannot be noticed without reading it."""

    def __init__(self, engine: str, stored: StoredViews | None = None) -> None:
        """Use the views `stored` beside the source, if the owner allows any."""
        self.engine, self.stored = engine, stored

    def opened(
        self, view_name: str, token: str, file: Path | None, view: Callable[[], BoundedView | None], key: str
    ) -> str | None:
        """Return None: there is no view."""
        return None

    def counted(
        self, view_name: str, token: str, identity: str, view: Callable[[], BoundedView | None], key: str
    ) -> str | None:
        """Return None: rows could change unnoticed between the counting and a question."""
        return None

    def write(
        self,
        view: BoundedView,
        key: str,
        file: Path,
        *,
        in_place: bool,
        progress: Callable[[str, float], None],
        made_of: str = "",
    ) -> bool:
        """Raise Fault index_not_written. It is never called, because `Engine.identity` of such a source is None."""
        raise refuse("index_not_written", table=view.table, incident="")

    def made_of(self, file: Path) -> tuple[str, bool]:
        """Return an empty text: there are no files."""
        return "", False

    def extend(
        self,
        view: BoundedView | None,
        key: str,
        copy: Path,
        file: Path,
        *,
        progress: Callable[[str, float], None],
        made_of: str,
    ) -> None:
        """Raise Fault index_not_written. It is never called, because there is no copy."""
        raise refuse("index_not_written", table="" if view is None else view.table, incident="")

    def limit(self, memory: str | None, jobs: int | None, scratch: Path) -> None:
        """Do nothing: the engine has its own limits."""
