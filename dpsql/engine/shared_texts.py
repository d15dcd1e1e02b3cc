"""SQL texts of row functions that engines share; they differ only in type names and in the syntax of casts.

Functions that an engine writes differently are in its own `functions` module, which takes the others from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpsql.engine.dialect import Template
from dpsql.functions.numeric import MOST_TEXT, common_type
from dpsql.functions.values import FALSE_TEXTS, TRUE_TEXTS
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal
from dpsql.storage.records import dataclass

SECONDS_OF = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
MONTHS_OF = {"year": 12, "quarter": 3, "month": 1}


@dataclass(frozen=True)
class SharedTexts:
    """Templates of one engine. `types`: its type names. `cast`: CAST, or TRY_CAST if a widening may fail."""

    types: Mapping[Type, str]
    cast: str = "CAST"

    def typed(self, type_: Type, argument: Expr, text: str) -> str:
        """Return an argument in the type `type_`: an integer becomes a double, a date (of the calendar) its midnight."""
        return text if argument.facts.type is type_ else f"{self.cast}({text} AS {self.types[type_]})"

    def all_typed(self, type_: Type, node: Call, texts: list[str]) -> list[str]:
        return [self.typed(type_, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]

    def alike(self, node: Call, texts: list[str]) -> list[str]:
        """Return all arguments in the type of the result."""
        return self.all_typed(node.facts.type, node, texts)

    def comparable(self, node: Call, texts: list[str]) -> list[str]:
        """Return both sides of a comparison in one type, so that the engine has nothing to widen."""
        return self.all_typed(common_type(node.arguments), node, texts)

    def reals(self, node: Call, texts: list[str]) -> list[str]:
        return self.all_typed(Type.REAL, node, texts)

    def of_alternatives(self, function: str) -> Template:
        """Return the template of a function whose arguments are alternatives in the type of its result."""
        return lambda node, texts: f"{function}({', '.join(self.alike(node, texts))})"

    def of_reals(self, function: str) -> Template:
        """Return the template of a function of reals that has a value (infinity, NaN) for each of them."""
        return lambda node, texts: f"{function}({', '.join(self.reals(node, texts))})"

    def guarded(self, function: str, condition: str) -> Template:
        """Return the template of a function of reals that is NULL unless `condition` holds."""

        def emit(node: Call, texts: list[str]) -> str:
            (value,) = self.reals(node, texts)
            return f"(CASE WHEN {value} {condition} THEN {function}({value}) END)"

        return emit

    def compare(self, operator: str) -> Template:
        return lambda node, texts: "(" + f" {operator} ".join(self.comparable(node, texts)) + ")"

    def case(self, node: Call, texts: list[str]) -> str:
        """Return a CASE whose conditions are booleans and whose values have one type."""
        pairs = list(zip(node.arguments, texts, strict=True))
        conditions = [self.typed(Type.BOOLEAN, *pair) for pair in pairs[:-1:2]]
        *values, otherwise = [self.typed(node.facts.type, *pair) for pair in (*pairs[1:-1:2], pairs[-1])]
        body = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=True))
        return f"(CASE {body} ELSE {otherwise} END)"

    def in_list(self, node: Call, texts: list[str]) -> str:
        value, *items = self.comparable(node, texts)
        return f"({value} IN ({', '.join(items)}))"

    def nullif(self, node: Call, texts: list[str]) -> str:
        """Return NULLIF as a CASE, so that the result keeps the type of the first argument."""
        left, right = self.comparable(node, texts)
        return f"(CASE WHEN {left} = {right} THEN NULL ELSE {texts[0]} END)"

    def clamp(self, node: Call, texts: list[str]) -> str:
        """Return a clamped value. NULL and NaN stay NULL: the engine's least and greatest would turn them into a bound."""
        value, low, high = self.alike(node, texts)
        missing = f"{value} IS NULL OR isnan({value})" if node.facts.type is Type.REAL else f"{value} IS NULL"
        return f"(CASE WHEN {missing} THEN NULL ELSE least(greatest({value}, {low}), {high}) END)"

    def time(self, argument: Expr, text: str) -> str:
        return self.typed(Type.TIMESTAMP, argument, text)

    def truncated_time(self, node: Call, texts: list[str]) -> str:
        """Return date_trunc in the type of its argument."""
        time = self.time(node.arguments[1], texts[1])
        return f"CAST(date_trunc('{unit_of(node)}', {time}) AS {self.types[node.facts.type]})"

    def functions(self) -> dict[str, Template]:
        """Return the templates that every engine uses, by the name of the function."""
        return {
            "case": self.case, "in": self.in_list, "nullif": self.nullif, "eq": self.compare("="), "ne": self.compare("<>"),
            "lt": self.compare("<"), "le": self.compare("<="), "gt": self.compare(">"), "ge": self.compare(">="),
            **{name: self.of_alternatives(name) for name in ("least", "greatest", "coalesce")},
            "not": lambda node, texts: f"(NOT {texts[0]})", "is_null": lambda node, texts: f"({texts[0]} IS NULL)",
            "is_true": lambda node, texts: f"({texts[0]} IS TRUE)", "is_false": lambda node, texts: f"({texts[0]} IS FALSE)",
            "and": infix("AND"), "or": infix("OR"),
        }  # fmt: skip


def infix(operator: str) -> Template:
    """Return the template of an operator between all arguments."""
    return lambda node, texts: "(" + f" {operator} ".join(texts) + ")"


def plain(function: str) -> Template:
    """Return the template of a function of the unchanged arguments."""
    return lambda node, texts: f"{function}({', '.join(texts)})"


def floor(function: str) -> Template:
    """Return the template of a rounding function that leaves integers unchanged."""
    return lambda node, texts: texts[0] if node.facts.type is Type.INTEGER else f"{function}({texts[0]})"


def literal_of(node: Call, position: int) -> object:
    """Return the value of an argument that the binder has proven to be a literal."""
    argument = node.arguments[position]
    assert isinstance(argument, Literal)
    return argument.value


def unit_of(node: Call) -> str:
    """Return the first argument: a unit of time."""
    return str(literal_of(node, 0))


def digits_of(node: Call) -> int:
    """Return the number of digits to which `round` rounds."""
    value = literal_of(node, 1) if len(node.arguments) == 2 else 0
    assert isinstance(value, int)
    return value


def shortened(text: str) -> str:
    """Return a text of at most MOST_TEXT characters."""
    return f"left({text}, {MOST_TEXT})"


def replaced(texts: list[str]) -> str:
    """Return `replace` on a text that is cut before, so that the inserted text is bounded, and after."""
    return shortened(f"replace({shortened(texts[0])}, {texts[1]}, {texts[2]})")


def boolean_of(word: str, constant: Callable[[object], str]) -> str:
    """Return the boolean that a lower-case text without blanks means, NULL for any other word."""
    cases = " ".join(
        f"WHEN {word} IN ({', '.join(map(constant, words))}) THEN {constant(value)}"
        for value, words in ((True, TRUE_TEXTS), (False, FALSE_TEXTS))
    )
    return f"(CASE {cases} END)"


def format_parts(node: Call, quoted: Callable[[str], str], letter: Callable[[str], str]) -> list[str]:
    """Return the texts whose concatenation is `strftime`: `quoted` writes the text between the letters, `letter` the part
    of the time for a letter after %."""
    form, position, parts = str(literal_of(node, 1)), 0, []
    while position < len(form):
        if form[position] != "%":
            end = form.find("%", position)
            end = len(form) if end < 0 else end
            parts.append(quoted(form[position:end]))
            position = end
        else:
            parts.append("'%'" if form[position + 1] == "%" else letter(form[position + 1]))
            position += 2
    return parts
