"""Watches for programs: a stream of counts or sums compared with a threshold (docs/watch.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsql.errors.exceptions import refuse
from dpsql.storage.records import dataclass, replace

if TYPE_CHECKING:
    from dpsql.planning.planner import Planned
    from dpsql.pricing.options import Options
    from dpsql.release.release import Release
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session
    from dpsql.sql.lexer import SqlText
    from dpsql.sql.parse import Parameters


@dataclass(frozen=True)
class Comparison:
    """The answer to one question: whether the noisy sum is above the noisy threshold.

    If so, `value` is the sum, exact within +/- `error` with the session's confidence; both are None otherwise. `under_way`:
    whether the run goes on; `runs_left`: how many runs the watch may still begin.
    """

    above: bool
    value: float | None
    error: float | None
    under_way: bool
    runs_left: int
    release: Release

    @property
    def is_last(self) -> bool:
        """Return whether another comparison would be refused: the run is over, and no other may begin."""
        return not self.under_way and not self.runs_left


class Watch:
    """A watch of one session: it compares questions with `threshold` in at most `hits` runs, each of which is charged when it
    begins and ends with the first question that is above. The ledger counts the runs by `name`."""

    def __init__(
        self,
        session: Session,
        threshold: float | str,
        hits: int = 1,
        name: str = "default",
        questions: Sequence[SqlText] = (),
    ) -> None:
        """`threshold`: in the unit of the compared counts or sums. `questions`: those to come; a run begun by any of them has
        noise for all of them.

        Raises option_value, and the refusals of the questions (nothing is charged).
        """
        settings = {"threshold": str(threshold), "hits": str(hits), "watch": name}
        options = session.options
        for option, text in settings.items():
            options = options.with_value(option, text, session.policy)
        self._session = session
        self._changed = {option: options.value(option) for option in settings}
        self.expect(questions)

    def expect(self, questions: Sequence[SqlText]) -> None:
        """Announce the questions to come. Raises their refusals, and watch_grids if no run can compare them all."""
        self._session.expect_comparisons([self._planned(question) for question in questions], self._options())

    def ask(self, sql: SqlText, parameters: Parameters = None, *, threshold: float | str | None = None) -> Comparison:
        """Compare one COUNT or SUM; `threshold`: replaces the watch's threshold for this question.

        Raises refusals (nothing charged), and faults, after which the run is over (`charged` is set).
        """
        release = self._session.answer(self._planned(sql, parameters, threshold))
        ((above, value, error, under_way, runs_left),) = release.rows()
        return Comparison(above, value, error, under_way, runs_left, release)

    def explain(self, sql: SqlText, parameters: Parameters = None) -> PrivacyPlan:
        """Return the price of a run, due with the next comparison unless a run is under way; nothing is charged."""
        return self._session.explain_planned(self._planned(sql, parameters))

    def _options(self) -> Options:
        return replace(self._session.options, **self._changed)

    def _planned(self, sql: SqlText, parameters: Parameters = None, threshold: float | str | None = None) -> Planned:
        statement = self._session.parse(sql, parameters)
        if statement.kind != "query":
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).placed_in(statement.sql)
        options = self._options()
        if threshold is not None:
            options = options.with_value("threshold", str(threshold), self._session.policy)
        return self._session.plan(statement, parameters, options)
