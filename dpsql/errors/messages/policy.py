"""Sentences about the policy file."""

from __future__ import annotations

from dpsql.errors.exceptions import PolicyRefusal, register

register(
    "policy_file", "58P01", "cannot read the policy {origin}: {problem}", "name a YAML file in UTF-8", PolicyRefusal
)
register(
    "policy_widened",
    "F0000",
    "the running server does not take the policy over: it may promise less than before at {places}",
    "restart the server, if this is what you mean",
    PolicyRefusal,
)
register(
    "policy_invalid",
    "F0000",
    "the policy {origin} is not acceptable: {path} {sentence}{more}",
    "`dpsql check` lists every problem",
    PolicyRefusal,
)
