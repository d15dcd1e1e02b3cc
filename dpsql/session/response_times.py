"""Response times (privacy.md 10): at once, at the next of a few round times, or at one fixed time.

Times count from the arrival of the question and apply to answers, refusals and faults alike, whatever was waited for in
between. An analyst's action (a timeout, a cancel) takes effect at a response time and never between two of them.
"""

from __future__ import annotations

import time

from dpsql.policy import Policy

PAD_SECONDS = 0.05


class Pace:
    """The response times of one question that arrived at `started` (a reading of time.monotonic)."""

    def __init__(self, policy: Policy, started: float | None = None) -> None:
        self._timing = policy.timing
        self._started = time.monotonic() if started is None else started
        constant = policy.constant_seconds
        self.latest = None if constant is None else self._started + float(constant)
        """The time at which the response is due whether or not there is an answer; None if there is no such time."""
        self._held = False

    def moment(self, now: float) -> float:
        """Return the first response time at or after `now`."""
        if self._timing == "padded":
            return now + padding(now - self._started)
        return now if self.latest is None else max(now, self.latest)

    def hold(self) -> None:
        """Sleep until the next response time; further calls do nothing."""
        if self._held:
            return
        self._held = True
        now = time.monotonic()
        seconds = self.moment(now) - now
        if seconds > 0:
            time.sleep(seconds)

    def left(self, timeout_seconds: float) -> float:
        """Return the seconds that a scan may still take, at most `timeout_seconds`."""
        if self.latest is None:
            return timeout_seconds
        return min(timeout_seconds, max(self.latest - time.monotonic(), _LEAST_SECONDS))


_LEAST_SECONDS = 0.001
"""Least time limit of a scan, because a limit of zero would mean no limit."""


def padding(elapsed_seconds: float) -> float:
    """Return the seconds to wait so that a response takes the next of 0.05, 0.1, 0.2, 0.4, ... seconds.

    Differences within one step cannot be observed. Data can still move a response to another step, so padding reduces what
    time reveals, but is not part of the guarantee.
    """
    step = PAD_SECONDS
    while step < elapsed_seconds:
        step *= 2
    return step - elapsed_seconds
