"""The shape of a policy file: the keys of each part and their values. The JSON Schema is generated from this module.

Input is the tree of `read_yaml` (every scalar is text); output are models with exact numbers.  Rules that depend on more
than one place (types of bounds, foreign keys, limits against the budget) are checked in `build` and `check`.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from dpsql.policy import values
from dpsql.policy.types import COLUMN_TYPES
from dpsql.policy.yaml_text import Place
from dpsql.privacy.accounting.ledger_units import EVERY
from dpsql.privacy.accounting.registry import ACCOUNTANTS
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.registry import ANNEXES, askable

_DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"


def _number_schema(**limits: Any) -> WithJsonSchema:
    """Return the schema of a number, or of its text, because YAML 1.1 tools read 1e-6 as text."""
    return WithJsonSchema({"type": ["number", "string"], **limits, "pattern": _DECIMAL})


def _text_schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


def _one_of(*words: str) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(partial(values.choice, words)), WithJsonSchema({"type": "string", "enum": list(words)})


_NAME_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
_NAME_OR_LIST = {"anyOf": [{"type": "string"}, _NAME_LIST]}
_SCALAR = {"type": ["string", "number", "boolean"]}
_NULL_OR_SCALAR = {"type": ["string", "number", "boolean", "null"]}

Epsilon = Annotated[
    Any, PlainValidator(values.epsilon), _number_schema(exclusiveMinimum=0, maximum=int(values.MOST_EPSILON))
]
Delta = Annotated[Any, PlainValidator(values.delta), _number_schema(minimum=0, exclusiveMaximum=0.001)]
Confidence = Annotated[Any, PlainValidator(values.confidence), _number_schema(minimum=0.5, exclusiveMaximum=1)]
Count = Annotated[
    int,
    PlainValidator(values.count),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": values.MOST_COUNT}),
]
Amount = Annotated[
    Any, PlainValidator(values.amount), _number_schema(exclusiveMinimum=0, maximum=int(values.MOST_AMOUNT))
]
Seconds = Annotated[
    int, PlainValidator(values.seconds), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 86400})
]
Truth = Annotated[bool, PlainValidator(values.boolean), WithJsonSchema({"type": "boolean"})]
Prose = Annotated[
    str,
    PlainValidator(values.prose),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": values.MOST_TEXT}),
]
Name = Annotated[str, PlainValidator(values.name), _text_schema(values.NAME_PATTERN)]
Login = Annotated[str, PlainValidator(values.login), _text_schema(values.LOGIN_PATTERN)]
Target = Annotated[
    tuple[str, str],
    PlainValidator(values.reference),
    _text_schema(rf"{values.NAME_PATTERN}\.{values.NAME_PATTERN}"),
]
Names = Annotated[tuple[str, ...], PlainValidator(values.names), WithJsonSchema(_NAME_OR_LIST)]
FurtherNames = Annotated[
    tuple[str, ...],
    PlainValidator(values.further_names),
    WithJsonSchema({"anyOf": [{"type": "string"}, {**_NAME_LIST, "minItems": 0}]}),
]
TableNames = Annotated[tuple[str, ...], PlainValidator(values.table_names), WithJsonSchema(_NAME_OR_LIST)]
NameSets = Annotated[
    tuple[tuple[str, ...], ...],
    PlainValidator(values.name_sets),
    WithJsonSchema({"type": "array", "items": _NAME_OR_LIST, "minItems": 1}),
]
NameSet = Annotated[
    tuple[str, ...],
    PlainValidator(values.name_set),
    _text_schema(rf"{values.NAME_PATTERN}( *, *{values.NAME_PATTERN})*"),
]
Delimiter = Annotated[str, PlainValidator(values.delimiter), WithJsonSchema({"type": "string", "maxLength": 1})]
Quote = Annotated[str, PlainValidator(values.quote), WithJsonSchema({"type": "string", "maxLength": 4})]
Header = Annotated[
    tuple[str, ...] | None,
    PlainValidator(values.header),
    WithJsonSchema({"anyOf": [{"const": True}, _NAME_LIST]}),
]
NullTexts = Annotated[
    tuple[str, ...],
    PlainValidator(values.null_texts),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}),
]
Bound = Annotated[Any, PlainValidator(values.scalar), WithJsonSchema(_SCALAR)]
Domain = Annotated[
    tuple[str | None, ...],
    PlainValidator(values.scalars),
    WithJsonSchema({"type": "array", "items": _NULL_OR_SCALAR, "minItems": 1, "uniqueItems": True}),
]


Outside = Annotated[
    tuple[str, ...],
    PlainValidator(values.outside),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["drop", "other"]},
                {
                    "type": "object", "properties": {"other": _SCALAR}, "required": ["other"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]  # fmt: skip


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UnitShape(_Shape):
    """The column whose values name the privacy units."""

    table: Name
    column: Name


class LifetimeShape(_Shape):
    """The limit of all windows of the budget together."""

    epsilon: Epsilon
    delta: Annotated[Delta | None, Field(description="that of one window if left out")] = None


class BudgetShape(_Shape):
    """The limit of the privacy loss of the whole dataset."""

    epsilon: Epsilon
    delta: Annotated[Delta | None, Field(description="needed under zcdp; under pure only private keys use it")] = None
    accountant: Annotated[str, *_one_of(*ACCOUNTANTS)] = "zcdp"
    every: Annotated[
        str | None,
        *_one_of(*EVERY),
        Field(description="a budget of its own for each of these; one for all time if left out"),
    ] = None
    lifetime: Annotated[
        LifetimeShape | None, Field(description="with every: the limit of all windows together; no limit if left out")
    ] = None


class _GroupBoundsShape(_Shape):
    """The contribution bounds that a question, the whole file or a table may set."""

    max_groups: Annotated[Count | None, Field(description="the most groups one privacy unit appears in")] = None
    max_rows_per_group: Annotated[Count | None, Field(description="the most rows of one unit in one group")] = None


class PerQueryShape(_GroupBoundsShape):
    """Defaults and limits of one query."""

    epsilon: Annotated[Epsilon | None, Field(description="charged when a query names none; 0.1 when left out")] = None
    max_epsilon: Annotated[Epsilon | None, Field(description="the most a query may name")] = None
    min_epsilon: Annotated[
        Epsilon | None,
        Field(description="the least a query spends; the smaller of 0.001 and a thousandth of the budget's"),
    ] = None
    delta: Annotated[
        Delta | None, Field(description="for partition selection; a thousandth of the budget's when left out")
    ] = None
    mechanism: Annotated[str, *_one_of("auto", *(mechanism.word for mechanism in askable()))] = "auto"
    confidence: Annotated[Confidence | None, Field(description="of the error bars; 0.95 when left out")] = None
    timeout_seconds: Seconds = 300
    max_public_groups: Annotated[Count, Field(description="the longest grid of public keys")] = 1_000_000
    min_units: Annotated[
        Count | None, Field(description="groups with fewer units, by a noisy count, are not shown; all if left out")
    ] = None


class LimitShape(_Shape):
    """The part of the dataset's budget that an analyst, a session or a project may spend."""

    epsilon: Epsilon
    delta: Delta | None = None


class AnalystShape(LimitShape):
    """The budget of an analyst, and the tables, columns and rows that exist for them."""

    tables: Annotated[TableNames | None, Field(description="the tables that exist for them; all if left out")] = None
    columns: Annotated[
        dict[Name, Names], Field(description="table to the columns that exist for them; all of a table left out")
    ] = {}
    where: Annotated[
        dict[Name, Prose], Field(description="protected table to a condition in SQL: other rows do not exist for them")
    ] = {}


class ProjectShape(LimitShape):
    """The budget of a project, and the analysts who may charge it."""

    members: Annotated[
        tuple[Login, ...] | None,
        BeforeValidator(values.list_of_analysts),
        Field(description="analysts who may charge it; all if left out"),
    ] = None


class ReuseShape(_Shape):
    """When stored releases answer instead of a new charge."""

    default: Annotated[
        str, *_one_of("off", "on", "derive"), Field(description="dp.reuse of a session that sets none")
    ] = "on"
    shared: Annotated[Truth, Field(description="a release answers every analyst, else only the one charged")] = True
    more_accurate: Annotated[Truth, Field(description="a release with less noise than asked for answers too")] = True


class StoreShape(_Shape):
    """How much is stored beside the ledger."""

    analyst_mb: Annotated[Count, Field(description="most megabytes of answers to one analyst's questions")] = 256
    answers_mb: Annotated[Count, Field(description="most megabytes of stored answers in all")] = 2048
    question_days: Annotated[Count, Field(description="how many days the texts of questions stay")] = 90
    questions_mb: Annotated[Count, Field(description="most megabytes of the texts of questions")] = 64


class ColumnShape(_Shape):
    """One column: its type, and how far its values go."""

    type: Annotated[str, *_one_of(*COLUMN_TYPES)]
    lower: Annotated[Bound | None, Field(description="values below are clamped to it")] = None
    upper: Annotated[Bound | None, Field(description="values above are clamped to it")] = None
    domain: Annotated[Domain | None, Field(description="public keys, in the order of answers")] = None
    nullable: Truth = True
    outside: Annotated[
        Outside, Field(description="of a group key: values that are no public key are dropped, or form one more group")
    ] = ()
    max_total: Annotated[
        Amount | None, Field(description="the most one privacy unit adds to a SUM of the column; more is scaled down")
    ] = None
    source_name: Annotated[
        Prose | None, Field(alias="from", description="its name in the header of CSV files, where that is another one")
    ] = None
    description: Prose = ""


class CsvShape(_Shape):
    """The dialect of CSV files; a missing key is taken from the top of the file, else the default."""

    delimiter: Annotated[Delimiter | None, Field(description="one character between cells; a comma")] = None
    quote: Annotated[
        Quote | None, Field(description='one character around cells that hold delimiters, or "none"; the double quote')
    ] = None
    header: Annotated[
        Header, Field(description="true: the first line of each file names its columns; or their names in order")
    ] = None
    null: Annotated[NullTexts | None, Field(description="texts that mean NULL; the empty text")] = None
    multiline: Annotated[
        Truth | None, Field(description="quoted cells may hold line breaks; such files are read by dpsql prepare alone")
    ] = None


class TableShape(_GroupBoundsShape):
    """One table as analysts see it."""

    source: Annotated[Prose | None, Field(description="schema.table, or a file glob, when different")] = None
    schema_name: Annotated[
        Name | None, Field(alias="schema", description="the schema in which analysts see it, when not public")
    ] = None
    csv: Annotated[CsvShape | None, Field(description="how this table's CSV files are written")] = None
    append_only: Annotated[
        Truth, Field(description="rows only come, in new files of a glob: a prepared copy takes them from these alone")
    ] = False
    public: Truth = False
    max_rows: Annotated[Count | None, Field(description="the most rows one privacy unit contributes")] = None
    primary_key: Names = ()
    unique: NameSets = ()
    max_multiplicity: Annotated[
        dict[NameSet, Count], Field(description="public tables: columns to the most rows that agree on them")
    ] = {}
    foreign_keys: Annotated[dict[Name, Target], Field(description="column to parent.column")] = {}
    unprotected: Annotated[
        FurtherNames | None,
        Field(description="columns that name further people, of whom rows of others tell; [] if no column does"),
    ] = None
    max_count: Annotated[
        Count | None, Field(description="the most one privacy unit adds to a COUNT; more is scaled down")
    ] = None
    max_values: Annotated[
        Count | None,
        Field(
            description="the most different values one privacy unit brings to a COUNT(DISTINCT); others are left out"
        ),
    ] = None
    columns: dict[Name, ColumnShape] = {}
    description: Prose = ""


def _row_or_mapping(raw: object) -> object:
    """Read a unit: the word `row` becomes None; any other value must be the mapping."""
    if raw == "row" or isinstance(raw, dict):
        return None if raw == "row" else raw
    raise ValueError("write row, or {table: ..., column: ...}")


def _unit_schema(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"const": "row"}, *(part for part in schema["anyOf"] if "$ref" in part)]


class TimingShape(_Shape):
    """Every question is answered at one time."""

    constant_seconds: Annotated[
        Any, PlainValidator(values.delay), _number_schema(minimum=0.01, maximum=3600),
        Field(description="an answer that is not there by then is a fault"),
    ]  # fmt: skip


def _word_or_mapping(raw: object) -> object:
    """Return one of the words, or the mapping as a shape. It is read here: pydantic's union would try each branch, and name it
    in the place of an error."""
    return TimingShape.model_validate(raw) if isinstance(raw, dict) else values.choice(("plain", "padded"), raw)


def _timing_schema(schema: dict[str, Any]) -> None:
    named = [part for part in schema["anyOf"] if "$ref" in part]
    schema["anyOf"] = [{"type": "string", "enum": ["plain", "padded"]}, *named]


class PrepareShape(_Shape):
    """Where prepared copies are written, and by whom."""

    when: Annotated[str | None, *_one_of("auto", "manual")] = None
    into: Annotated[
        Prose | None,
        Field(description="a schema of the PostgreSQL server that holds the data, or a folder (path or URL) for Spark"),
    ] = None
    role: Annotated[Name | None, Field(description="the role that writes there, if the source's own may not")] = None


def _when_or_mapping(raw: object) -> object:
    """Return the mapping that a word represents, or a mapping unchanged."""
    return raw if isinstance(raw, dict) else {"when": values.choice(("auto", "manual"), raw)}


def _prepare_schema(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"type": "string", "enum": ["auto", "manual"]}, {"$ref": schema.pop("$ref")}]


class PolicyShape(_Shape):
    """A dpsql policy: the data, the privacy unit, the bounds and the budget."""

    dataset: Name
    source: Annotated[
        Prose | None, Field(description="duckdb:///file.duckdb, postgresql://..., spark://... or a file glob")
    ] = None
    privacy_unit: Annotated[UnitShape | None, BeforeValidator(_row_or_mapping), Field(json_schema_extra=_unit_schema)]
    neighbours: Annotated[str, *_one_of(*(n.value for n in Neighbours))] = Neighbours.ADD_REMOVE.value
    budget: BudgetShape
    per_query: PerQueryShape = PerQueryShape()
    ledger: Annotated[Prose, Field(description="sqlite:///file.db or postgresql://...")]
    analysts: dict[Login, AnalystShape] = {}
    session: LimitShape | None = None
    projects: Annotated[dict[Login, ProjectShape], Field(description="what a project may spend, whoever asks")] = {}
    reuse: ReuseShape = ReuseShape()
    store: StoreShape = StoreShape()
    data_version: Annotated[
        Prose | None, Field(description="the owner's name for the state of the data; changed when the data change")
    ] = None
    timing: Annotated[
        TimingShape | str,
        BeforeValidator(_word_or_mapping),
        Field(description="padded: a response takes one of few round times", json_schema_extra=_timing_schema),
    ] = "plain"
    prepare: Annotated[
        PrepareShape,
        BeforeValidator(_when_or_mapping),
        Field(description="auto: a server prepares copies by itself", json_schema_extra=_prepare_schema),
    ] = PrepareShape()
    witness: Annotated[
        Prose | None, Field(description="file:///FOLDER or postgresql://... on another machine, for the ledger's head")
    ] = None
    mechanisms: Annotated[
        tuple[str, ...],
        PlainValidator(partial(values.choices, tuple(ANNEXES))),
        WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(ANNEXES)}, "uniqueItems": True}),
        Field(description="rare mechanisms that questions may use; all if left out, none of them with []"),
    ] = tuple(ANNEXES)
    log_sql: Annotated[
        Truth | None,
        Field(description="true: texts of questions are in audit log and traces too; false: they are nowhere"),
    ] = None
    csv: Annotated[CsvShape | None, Field(description="how all CSV files are written")] = None
    tables: dict[Name, TableShape]
    description: Prose = ""


_ANY = object()
_SHAPES: dict[tuple[object, ...], type[_Shape]] = {
    (): PolicyShape,
    ("privacy_unit",): UnitShape,
    ("budget",): BudgetShape,
    ("budget", "lifetime"): LifetimeShape,
    ("per_query",): PerQueryShape,
    ("session",): LimitShape,
    ("analysts", _ANY): AnalystShape,
    ("projects", _ANY): ProjectShape,
    ("reuse",): ReuseShape,
    ("store",): StoreShape,
    ("timing",): TimingShape,
    ("prepare",): PrepareShape,
    ("csv",): CsvShape,
    ("tables", _ANY): TableShape,
    ("tables", _ANY, "csv"): CsvShape,
    ("tables", _ANY, "columns", _ANY): ColumnShape,
}


def keys_at(place: Place) -> tuple[str, ...]:
    """Return the keys that the mapping at `place` may have; none if the owner chooses the names."""
    general = tuple(_ANY if index in (1, 3) else part for index, part in enumerate(place))
    fields = _SHAPES[general].model_fields if general in _SHAPES else {}
    return tuple(field.alias or name for name, field in fields.items())


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file, for editors; it is `schemas/policy.schema.json`."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **PolicyShape.model_json_schema()}
    _tighten(schema)
    return schema


def _tighten(node: Any) -> None:
    """Forbid keys that do not match a mapping's pattern: pydantic's schema allows them, but the reader does not. Titles say
    what names say."""
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _tighten(part)
    if isinstance(node, dict):
        node.pop("title", None)
        if "patternProperties" in node:
            node["additionalProperties"] = False
