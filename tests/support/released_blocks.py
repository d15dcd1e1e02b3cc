"""Released blocks with real noise: chosen exact numbers, the package's own samplers, and a keyed source of bytes."""

import hashlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from dpsql.noise.perturb import NoisyTerm
from dpsql.noise.samplers import discrete_gaussian, discrete_laplace
from dpsql.plan.formulas import Formula, NoisyValue, whole
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.release.release import Presentation, Receipt, Release, make_release
from dpsql.release.remainder import ReleasedBlock, Remainder
from dpsql.release.sandbox import Sandbox

ONE = Sensitivity(1, 1, 1, 1)
T0, T1, T2 = NoisyValue("t0"), NoisyValue("t1"), NoisyValue("t2")


def count_of(value: Formula) -> tuple[Formula, Type]:
    """Return a value rounded to an integer, like COUNT and SUM of integers."""
    return whole(value), Type.INTEGER


class Keyed:
    """A source of bytes that is the same in every run of a test."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.reads = 0

    def read(self, size: int) -> bytes:
        self.reads += 1
        return hashlib.shake_256(f"{self.key}/{self.reads}".encode()).digest(size)


def laplace_noise(epsilon: str, l1: int = 1) -> Noise:
    return laplace.noise_for(Sensitivity(1, l1, l1 * l1, l1), Fraction(epsilon))


def gaussian_noise(rho: str, l2: int = 1) -> Noise:
    return gaussian.noise_for(Sensitivity(1, l2, l2 * l2, l2), Fraction(rho))


def drawn(noise: Noise, count: int, key: str) -> np.ndarray:
    """Draw `count` noise values in row-grid units from the samplers that the gate uses."""
    if isinstance(noise, Constant):
        return np.zeros(count)
    if isinstance(noise, Gaussian):
        steps = discrete_gaussian(count, noise.sigma, Keyed(key))
    else:
        steps = discrete_laplace(count, noise.t, noise.s, Keyed(key))
    return steps[:count] * 2.0**noise.shift


def noisy(name: str, exact: Sequence[float], noise: Noise, key: str, *, whole: bool, worse: float = 1.0) -> NoisyTerm:
    """Return a released term. `worse` multiplies the noise while the claimed law stays the same."""
    values = np.asarray(exact, dtype=np.float64) + worse * drawn(noise, len(exact), f"{key}/{name}")
    if whole:
        values = np.rint(values).astype(np.int64)
    return NoisyTerm(name, values, 2.0**noise.shift, noise, 0, whole)


def block(
    keys: dict[str, Sequence[object]],
    terms: Sequence[NoisyTerm],
    formulas: Sequence[tuple[Formula, Type]],
    name: str = "dp_0",
) -> ReleasedBlock:
    """Return a block with measures m0, m1, ...; measures of integer type are counts."""
    named = tuple((f"m{at}", formula, type_) for at, (formula, type_) in enumerate(formulas))
    groups = GroupFacts(counts=frozenset(label for label, _, type_ in named if type_ is Type.INTEGER))
    return ReleasedBlock(name, pa.table(keys), tuple(terms), named, len(terms[0].values), groups)


def counts(
    exact: Sequence[float],
    noise: Noise,
    key: str,
    *,
    worse: float = 1.0,
    name: str = "dp_0",
    keys: Sequence[object] = (),
) -> ReleasedBlock:
    """Return a block with key k0 (g0, g1, ...) and one count m0."""
    term = noisy("t0", exact, noise, f"{key}/{name}", whole=True, worse=worse)
    labels = keys or [f"g{at:05d}" for at in range(len(exact))]
    return block({"k0": labels}, [term], [count_of(T0)], name)


def remainder(sql: str, blocks: Sequence[ReleasedBlock], public: dict[str, pa.Table] | None = None) -> Remainder:
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    names = tuple(item.alias_or_name or "?column?" for item in tree.selects)
    return Remainder(tree, names, tuple(blocks), public or {})


def release(
    sandbox: Sandbox,
    sql: str,
    blocks: Sequence[ReleasedBlock],
    *,
    receipt: str = "r-1",
    confidence: float = 0.95,
    shown: Presentation | None = None,
    public: dict[str, pa.Table] | None = None,
) -> Release:
    paid = Receipt(receipt, PrivacyLoss.pure(Fraction(1, 10)), {"dataset": "epsilon 9.9"})
    return make_release(sandbox, remainder(sql, blocks, public), shown or Presentation(confidence), paid)


def covered(found: Release, column: int, truth: Sequence[float]) -> np.ndarray:
    """Return for each row whether its interval contains the truth; every row must have an interval."""
    low, high = (np.asarray(t.column(column).to_numpy(), dtype=float) for t in (found.low, found.high))
    assert np.isfinite(low).all(), found.bars.notes
    assert np.isfinite(high).all()
    slack = 1e-9 * np.maximum(1, np.abs(np.asarray(truth, dtype=float)))
    return (low - slack <= truth) & (truth <= high + slack)
