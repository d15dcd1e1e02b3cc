"""JSON Schemas of what programs read, generated from the package's types: `python tests/support/json_schemas.py` writes schemas/."""

import dataclasses
import json
import sys
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

ROOT = Path(__file__).parents[2]
WIDTH = 130
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Schema:
    """The schema of one type; objects that it contains are its `$defs`, described by the docstrings of their classes."""

    def __init__(self, **replaced: dict[str, Any]) -> None:
        """`replaced`: schemas of fields that their types do not say, by CLASS_FIELD."""
        self.replaced = replaced
        self.definitions: dict[str, Any] = {}

    def of(self, type_: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        origin, arguments = get_origin(type_), get_args(type_)
        if type_ is Any:
            return {}
        if isinstance(type_, type) and issubclass(type_, Enum):
            return {"enum": [member.value for member in type_]}
        if type_ in SIMPLE:
            return {"type": SIMPLE[type_]}
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(argument) for argument in arguments]}
        if origin in (list, Sequence) or (origin is tuple and arguments[-1] is Ellipsis):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if is_typeddict(type_) or dataclasses.is_dataclass(type_):
            return self._object(type_)
        raise TypeError(f"no schema for {type_}")

    def _object(self, type_: Any) -> dict[str, Any]:
        reference = {"$ref": f"#/$defs/{type_.__name__}"}
        if type_.__name__ not in self.definitions:
            hints = get_type_hints(type_, vars(sys.modules[type_.__module__]), include_extras=True)
            self.definitions[type_.__name__] = {
                "description": " ".join((type_.__doc__ or "").split()),
                "type": "object",
                "properties": {
                    name: self.replaced.get(f"{type_.__name__}_{name}") or self.of(hint) for name, hint in hints.items()
                },
                "required": sorted(name for name, hint in hints.items() if get_origin(hint) is not NotRequired),
                "additionalProperties": False,
            }
        return reference

    def document(self, title: str, type_: Any) -> dict[str, Any]:
        """Return the whole schema of a document."""
        root = self.of(type_)
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **root, "$defs": self.definitions
        }  # fmt: skip


def _ledger_entry() -> dict[str, Any]:
    from dpsql.ledger.records import FACTS, EntryObject

    schema = Schema()
    bodies = [{"allOf": [schema.of(type_), {"properties": {"kind": {"const": kind}}}]} for kind, type_ in FACTS.items()]
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    schema.replaced = {
        "EntryObject_digest": digest,
        "EntryObject_body": {
            "type": "string", "contentMediaType": "application/json", "contentSchema": {"$ref": "#/$defs/body"}
        },
    }  # fmt: skip
    document = schema.document("An entry of the ledger (a line of `dpsql budget export`)", EntryObject)
    document["$defs"]["body"] = {"oneOf": bodies}
    return document


def _audit() -> dict[str, Any]:
    from dpsql_audit.lower_bounds import LowerBound
    from dpsql_audit.mechanism_laws import LawChecked
    from dpsql_audit.report import AuditObject

    schema = Schema()
    law, bound, number, text = schema.of(LawChecked), schema.of(LowerBound), {"type": "number"}, {"type": "string"}
    bounded = {**schema.definitions["LowerBound"]["properties"], "claimed_epsilon": number}
    term = {"term": text, "claimed_l1": {"type": "integer"}, "share_reached": number}
    texts = {"type": "array", "items": text}
    schema.replaced = {
        "AuditObject_laws": {"type": "array", "items": law},
        "AuditObject_session": {"anyOf": [_closed(bounded), {"type": "null"}]},
        "AuditObject_source": _closed({"comparisons": {"type": "integer"}, "words": text}),
        "QuestionObject_lower_bound": {"anyOf": [bound, {"type": "null"}]},
        "QuestionObject_terms": {"type": "array", "items": _closed(term)},
        "WireObject_bounds": {"type": "array", "items": _closed({"sql": text, "settings": texts, **bounded})},
    }
    return schema.document("The report of an audit (`audit.json` of `dpsql audit --report`)", AuditObject)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    required = sorted(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def schemas() -> dict[str, dict[str, Any]]:
    """Return every generated schema by its file name."""
    from dpsql.exports.rows_file import FORMAT, Description
    from dpsql.frontends.batch.statements import SummaryObject
    from dpsql.frontends.rendering.formats import PlanObject, ReleaseObject
    from dpsql.policy import Policy
    from dpsql.policy.fields import json_schema
    from dpsql.pricing.explain import PlannedOutput
    from dpsql.session.explanation import ColumnError, PlannedGroups

    export = Schema().document("The description of randomised rows (FILE.csv.json of `dpsql export`)", Description)
    export["$defs"]["Description"]["properties"]["format"] = {"const": FORMAT}
    outputs = Schema()
    plan = Schema(
        PlanObject_outputs={"type": "array", "items": outputs.of(PlannedOutput)},
        PlanObject_errors={"type": "array", "items": outputs.of(ColumnError)},
        PlanObject_groups={"anyOf": [outputs.of(PlannedGroups), {"type": "null"}]},
    )
    explain = plan.document("EXPLAIN (`dpsql explain --format json`)", PlanObject)
    explain["$defs"] |= outputs.definitions
    return {
        "policy": json_schema(Policy),
        "explain": explain,
        "run-summary": Schema().document("A run of files of queries (`dpsql run --json`)", SummaryObject),
        "release": Schema().document("An answer (`dpsql query --format json`)", ReleaseObject),
        "export": export,
        "audit": _audit(),
        "ledger-entry": _ledger_entry(),
    }


def as_text(schema: dict[str, Any]) -> str:
    """Return a schema as its file has it: what fits into a line is a line, so that a difference shows one property whole."""
    return _laid_out(schema, "", 0) + "\n"


def _laid_out(value: Any, indent: str, used: int) -> str:
    """Return JSON in one line if it fits behind the `used` characters of its line, else with an entry in each line."""
    text = json.dumps(value, ensure_ascii=True)
    if len(indent) + used + len(text) < WIDTH or not isinstance(value, (dict, list)) or not value:
        return text
    keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    parts = list(value.values()) if isinstance(value, dict) else value
    inner = indent + "  "
    lines = ",\n".join(f"{inner}{key}{_laid_out(part, inner, len(key))}" for key, part in zip(keys, parts, strict=True))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{lines}\n{indent}{closing}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for name, written in schemas().items():
        (ROOT / "schemas" / f"{name}.schema.json").write_text(as_text(written), encoding="utf-8")
