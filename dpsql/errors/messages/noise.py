"""Sentences about noise: the system's randomness, samplers and the gate."""

from __future__ import annotations

from dpsql.errors.exceptions import Fault, InternalError, PolicyRefusal, register

register(
    "noise_too_large",
    "ZP201",
    "the {mechanism} noise that this question needs is too large to be drawn exactly",
    "ask for a larger epsilon, or let each privacy unit touch fewer groups (max_groups)",
)
register(
    "noise_guard",
    "XX000",
    "the noise could not be drawn",
    "try again; if this repeats, the custodian's log says more",
    Fault,
)
register("noise_plan", "XX000", "the noise plan is inconsistent: {problem}", "", InternalError)
register("noise_answer", "XX000", "the engine's answer does not have the shape that was asked for", "", Fault)
register(
    "selection_delta",
    "ZP202",
    "delta {delta} over {keys} keys is outside the range of partition selection",
    "give partition selection a larger delta, let each privacy unit touch fewer groups, or group by public keys",
)
register(
    "selection_epsilon",
    "ZP203",
    "epsilon {epsilon} for each key is too small for partition selection alone",
    "ask for a larger epsilon, release COUNT(*) in the same question, or group by public keys",
)
register(
    "loss_infinite",
    "ZP204",
    "under the accountant {accountant} this question has no finite price",
    "use the Laplace mechanism, or an accountant that knows this one",
)
register(
    "accountant_budget",
    "22023",
    "the accountant {accountant} cannot be opened: {problem}",
    "correct `budget:` in the policy",
    PolicyRefusal,
)
