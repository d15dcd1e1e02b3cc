"""Prepared views of sources that have no files of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpsql.engine.contract import StoredViews
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.errors.exceptions import refuse


class NoPreparedViews:
    """No prepared views in files: changes of such a source cannot be noticed without reading it."""

    def __init__(self, engine: str, stored: StoredViews | None = None) -> None:
        """Take views that are `stored` beside the source, if the owner allows them."""
        self.engine, self.stored = engine, stored

    def opened(
        self, view_name: str, token: str, file: Path | None, view: Callable[[], BoundedView | None], key: str
    ) -> str | None:
        """Return None: there is no view."""
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
        """Never asked for: `Engine.identity` of such a source is None. Raises Fault index_not_written."""
        raise refuse("index_not_written", table=view.table, incident="")

    def made_of(self, file: Path) -> tuple[str, bool]:
        """Return that a view is made of nothing: there are no files."""
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
        """Never asked for: there is no copy. Raises Fault index_not_written."""
        raise refuse("index_not_written", table="" if view is None else view.table, incident="")

    def limit(self, memory: str | None, jobs: int | None, scratch: Path) -> None:
        """Do nothing: the engine has its own limits."""
