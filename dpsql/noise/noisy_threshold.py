"""The secret of a run of AboveThreshold: the noise of its threshold, which never leaves the memory of this process."""

from __future__ import annotations

from typing import NoReturn


class NoisyThreshold:
    """The sealed noise of a threshold, which cannot be shown, pickled or copied; only `perturb` compares with it.

    Anyone who knew this noise would learn as much from each "below" as from a released sum.
    """

    __slots__ = ("__noise",)

    def __init__(self, noise: int) -> None:
        """Seal `noise`, in steps of the noise grid."""
        self.__noise = noise

    def gap(self, noisy_sum: int, threshold: int) -> int:
        """Return the number of steps by which `noisy_sum` exceeds `threshold` plus its noise; negative if it is below."""
        return noisy_sum - threshold - self.__noise

    def __repr__(self) -> str:
        return "<NoisyThreshold: sealed>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a noisy threshold does not leave the process")

    def __copy__(self) -> NoReturn:
        raise TypeError("a noisy threshold is not copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a noisy threshold is not copied")
