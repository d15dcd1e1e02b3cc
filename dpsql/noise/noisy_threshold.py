"""The secret of a run of AboveThreshold: the noise of its threshold, kept in the memory of this process alone."""

from __future__ import annotations

from typing import NoReturn


class NoisyThreshold:
    """The noise of a threshold, sealed: no repr of it, no pickling, no copying; only `perturb` compares with it.

    Whoever knew it would learn from each "below" as much as from a released sum.
    """

    __slots__ = ("__noise",)

    def __init__(self, noise: int) -> None:
        """`noise`: in steps of the noise grid."""
        self.__noise = noise

    def gap(self, noisy_sum: int, threshold: int) -> int:
        """By how many steps a noisy sum is above `threshold` with its noise; below 0 where it is not."""
        return noisy_sum - threshold - self.__noise

    def __repr__(self) -> str:
        return "<NoisyThreshold: sealed>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noisy threshold does not leave the process")

    def __copy__(self) -> NoReturn:
        raise TypeError("a noisy threshold is not copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a noisy threshold is not copied")
