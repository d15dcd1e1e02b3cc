"""What the audit found: the question, what differed, the line of docs/privacy.md that is broken, and the two databases as SQL."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql_audit.questions import Question


@dataclass(frozen=True)
class Rule:
    """One line of docs/privacy.md: its section, and the sentence (or the part of one) as it stands there."""

    section: str
    sentence: str


PROMISE = Rule(
    "1",
    "all that an analyst can observe through dpsql (values, which groups appear, number of rows, error texts, prices, plans, "
    "catalog, stored answers) is (epsilon, delta)-DP with the parameters the ledger has charged, whatever SQL they send.",
)
UNIQUE_KEYS = Rule("1", "they are checked in the data at hand before a sensitivity relies on them")
KEPT_ROWS = Rule("2", "Which rows are kept depends only on the unit's own rows and the secret")
PREPARED_COPIES = Rule("2", "A copy that `dpsql prepare` writes holds these very rows")
SENSITIVITY = Rule("4", "L1 = min(c, k m) b, L2 = sqrt(min(c, m) min(c, k m)) b, Linf = min(c, m) b.")
PUBLIC_KEYS = Rule("5", "Their combinations appear, empty ones with noise alone; no delta is spent.")
PRIVATE_KEYS = Rule("5", "a key appears only when partition selection admits it; that costs delta.")
SPLIT = Rule("6", "Its mechanism and price do not depend on them: they follow from what the text and the policy say")
CHARGES = Rule(
    "7",
    "price (from SQL, policy and options alone) -> reserve durably -> touch data -> noise -> store the release -> answer.",
)
LIMITS = Rule("7", "A charge must fit every scope that applies, or nothing runs and nothing is charged.")
LEDGER = Rule("7", "It is append-only and tamper-evident.")
STORED = Rule("7", "The same private block over the same data version is answered again from the store, free.")
NOISE = Rule("8", "exact integer samplers only (no floating-point transform of a uniform decides a private value).")
ENGINE_ERRORS = Rule("9", "An engine error while protected data is scanned is reported as one fixed text with an id")


@dataclass(frozen=True)
class Finding:
    """What broke. `question`: None where it is about no question (a law of noise, the ledger). `left` and `right`: statements
    that make the two databases anew; the second is empty where one database shows it, both where no data are involved."""

    question: Question | None
    problem: str
    rule: Rule
    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)

    @property
    def section(self) -> str:
        """The section of docs/privacy.md."""
        return self.rule.section

    @property
    def words(self) -> str:
        """Return what broke, and the section in which it is promised."""
        return f"{self.problem} (docs/privacy.md {self.section})"


def rule_of(problem: str) -> Rule:
    """Return the line that a difference between two runs breaks, by the first words of what `distances.compare`,
    `replay.same_outcome` and the comparison of a server's messages say of it."""
    return next((rule for words, rule in RULES if problem.startswith(words)), SENSITIVITY)


RULES = (
    ("outcome", PROMISE), ("answers differ", PROMISE), ("notices", PROMISE), ("messages", PROMISE), ("a description", PROMISE),
    ("columns", SPLIT), ("engine SQL", SPLIT), ("noise differs", SPLIT), ("partition selection", SPLIT),
    ("number of blocks", SPLIT), ("charge", CHARGES), ("a charge", CHARGES), ("epsilon", CHARGES), ("rho", CHARGES),
    ("public keys", PUBLIC_KEYS), ("order of private keys", PRIVATE_KEYS), ("selection", PRIVATE_KEYS), ("delta", PRIVATE_KEYS),
)  # fmt: skip
