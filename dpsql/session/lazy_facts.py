"""The terms behind an answer, with the error bars of their released numbers, computed when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from dpsql.planning.planner import Planned
from dpsql.pricing.explain import PlannedOutput, planned_outputs


class MeasuredOutputs(Sequence[PlannedOutput]):
    """The rows of EXPLAIN for one release, computed lazily because few readers of answers use them."""

    def __init__(self, planned: Planned, errors: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
        """`errors`: half width and standard deviation of each term, for each block."""
        # Do not keep a reference to `planned`: cached answers live as long as it does (`reuse.answer_cache`).
        self._plan, self._blocks = planned.plan, planned.own_blocks
        self._confidence, self._errors = planned.options.confidence, errors

    @cached_property
    def _outputs(self) -> tuple[PlannedOutput, ...]:
        return planned_outputs(self._plan, self._blocks, self._confidence, self._errors)

    @overload
    def __getitem__(self, index: int) -> PlannedOutput: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PlannedOutput]: ...
    def __getitem__(self, index: int | slice) -> PlannedOutput | Sequence[PlannedOutput]:
        return self._outputs[index]

    def __len__(self) -> int:
        return len(self._outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows instead of the plan."""
        return tuple, (self._outputs,)
