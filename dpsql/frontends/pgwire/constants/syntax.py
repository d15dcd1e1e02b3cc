"""PostgreSQL's expressions without tables: tokens, and a parser by precedence whose errors stand where PostgreSQL's stand.

What is legal and is not read here raises `Elsewhere`, which is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants.call_syntax import BY_WORDS, CallReader, Node, TypeName
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, Qualified, Token, said

__all__ = ["BY_WORDS", "MOST_DEPTH", "Node", "Order", "Parser", "TypeName"]

MOST_DEPTH = 60
MOST_PARAMETERS = 1_000


Order = tuple[Node, bool, bool]
"""A key of ORDER BY: an expression, whether it descends, and whether NULLs come first."""
_TYPE_WORDS = {"int": "int4", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4", "decimal": "numeric",
               "dec": "numeric", "boolean": "bool", "character": "bpchar", "char": "bpchar", "nchar": "bpchar"}  # fmt: skip
_LITERAL_TYPES = {"date", "time", "timestamp", "timestamptz", "timetz", "interval", "inet", "cidr", "macaddr", "macaddr8", "uuid",
                  "json", "jsonb", "jsonpath", "text", "varchar", "bpchar", "bytea", "bool", "boolean", "int", "integer",
                  "int2", "int4", "int8", "smallint", "bigint", "numeric", "decimal", "float", "float4",
                  "float8", "real", "oid", "name", "bit", "regclass", "regtype",
                  "int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", "double", "character", "char",
                  "point", "box", "circle", "lseg", "line", "path", "polygon", "money", "xml", "tsvector", "tsquery",
                  "pg_lsn"}  # fmt: skip
_CALLED = {"extract", "substring", "position", "overlay", "trim", "row", "coalesce", "nullif", "greatest", "least", "json_array",
           "json_object", "normalize"}  # fmt: skip
"""Words that may be names of columns where no bracket is behind them."""
_CONSTANTS = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user",
              "session_user", "user", "current_role", "current_catalog", "current_schema", "system_user"}  # fmt: skip
_UNSIZED = {"int", "integer", "smallint", "bigint", "real", "boolean"}
_MOMENTS = {"current_time": "timetz", "current_timestamp": "timestamptz", "localtime": "time",
            "localtimestamp": "timestamp"}  # fmt: skip
_BEHIND_QUERIES = {")", "union", "intersect", "except", "order", "limit", "offset", "fetch"}
_BEHIND_TYPES = {"with", "without", "time", "zone", "precision", "varying"}
_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_COMPARISONS = {"<", ">", "=", "<=", ">=", "<>", "!="}
_LEVELS = {"^": 10, "*": 9, "/": 9, "%": 9, "+": 8, "-": 8}


class Parser(CallReader):
    """A parser of one statement. `labels` tells whether an output's word without AS is a label."""

    def query(self) -> Any:
        """Read a question, as `QueryParser` does."""
        raise Elsewhere

    def expression(self, least: int = 0) -> Node:
        """Read an expression whose operators bind at least as strongly as `least`."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Elsewhere
        left = self._prefixed()
        while (following := self._following(left, least)) is not None:
            left = following
        self.depth -= 1
        return left

    def _prefixed(self) -> Node:
        token = self.token
        if self.take("not"):
            return Node("not", token.start, None, [self.expression(3)])
        if self.word() == "operator" and (named := self._named_operator()) is not None:
            return Node("operator", named.start, named.text, [self.expression(8)])
        if token.kind == "operator":
            self.index += 1
            unary = token.text in "+-"
            inner = self.expression(13 if unary else 7)
            if token.text == "-" and inner.kind == "number":
                return Node("number", inner.position, inner.value[1:] if inner.value[0] == "-" else "-" + inner.value)
            return Node("operator", token.start, token.text, [inner])
        return self.primary()

    def _following(self, left: Node, least: int) -> Node | None:
        token, word = self.token, self.word()
        if token.kind == "operator":
            return self._operated(left, least)
        if self.take("::"):
            return Node("cast", token.start, self.type_name(), [left])
        if word in ("or", "and"):
            level = 1 if word == "or" else 2
            if level < least:
                return None
            self.index += 1
            before = left.items if left.kind == word else [left]  # a long chain is no deep tree
            return Node(word, token.start, None, [*before, self.expression(level + 1)])
        if word == "is" and least <= 4:
            return self._is(left)
        if word in ("isnull", "notnull") and least <= 4:
            self.index += 1
            return Node("is", token.start, ("null", word == "notnull"), [left])
        if word == "operator" and least <= 7 and (named := self._named_operator()) is not None:
            return Node("operator", named.start, named.text, [left, self.expression(8)])
        if word == "at" and least <= 11 and self.take("at", "time", "zone"):
            return Node("call", token.start, BY_WORDS + "timezone", [self.expression(12), left])
        if word == "collate" and least <= 12:
            self.index += 1
            return Node("collate", token.start, self._dotted()[-1], [left])
        if word == "overlaps":
            self.index += 1
            return Node("call", token.start, BY_WORDS + "overlaps", left.items + self.primary().items)
        return self._matching(left) if least <= 6 else None

    def _operated(self, left: Node, least: int) -> Node | None:
        token = self.token
        level = 5 if token.text in _COMPARISONS else _LEVELS.get(token.text, 7)
        if level < least:
            return None
        self.index += 1
        if self.word() in ("any", "all", "some") and self.signs(1) == "(":
            quantifier = self.word()
            self.index += 2
            return Node("quantified", token.start, (token.text, quantifier), [left, self._listed(token.start)])
        right = self.expression(level + 1)
        if level == 5 and self.signs() in _COMPARISONS:
            raise self.problem()  # 1 < 2 < 3
        return Node("operator", token.start, token.text, [left, right])

    def _named_operator(self) -> Token | None:
        """Read OPERATOR(pg_catalog.=), and return the operator; None if none stands here."""
        if not self.take("operator", "(", "pg_catalog", "."):
            return None
        token = self.token
        self.index += 1
        self.expect(")")
        return token

    def _in_brackets(self) -> Any:
        """Read a question in brackets."""
        self.expect("(")
        read = self.query()
        self.expect(")")
        return read

    def _order(self) -> list[Order]:
        """Read the keys of ORDER BY."""
        keys = list[Order]()
        while True:
            key = self.expression()
            descending = self.take("desc")
            if not descending:
                self.take("asc")
            first = self.take("nulls", "first")
            last = not first and self.take("nulls", "last")
            keys.append((key, descending, first or (descending and not last)))
            if not self.take(","):
                return keys

    def _listed(self, operator: int) -> Node:
        """Read what stands in the brackets of ANY and ALL: an array, or a question whose rows are one."""
        if self._begins_query():
            self.index -= 1
            return Node("gathered", self.token.start, operator, [self._in_brackets()])
        inner = self.expression()
        self.expect(")")
        return inner

    def _begins_query(self) -> bool:
        """Return whether a question stands here, or one in brackets and nothing else before the next closing one."""
        depth = ahead = 0
        while self.signs(ahead) == "(":
            ahead += 1
        if self.word(ahead) not in ("select", "with", "values"):
            return False
        for end in range(self.index, len(self.tokens) if ahead else self.index):
            sign = self.tokens[end].text if self.tokens[end].kind == "sign" else ""
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                return self.tokens[end + 1].text.lower() in _BEHIND_QUERIES
        return not ahead

    def _subscripted(self, left: Node) -> Node:
        """Read the subscripts behind a column, a parameter or a bracket: nothing else has some."""
        while self.take("["):
            bounds: list[Any] = [None, None]
            is_slice = False
            if self.signs() != ":":
                bounds[0] = self.expression()
            if self.take(":"):
                is_slice = True
                if self.signs() != "]":
                    bounds[1] = self.expression()
            self.expect("]")
            left = Node("subscript", left.position, is_slice, [left, *bounds])
        return left

    def _is(self, left: Node) -> Node:
        start = self.token.start
        self.expect("is")
        negated = self.take("not")
        if self.take("distinct", "from"):
            return Node("distinct", start, negated, [left, self.expression(5)])
        for word in ("null", "true", "false", "unknown"):
            if self.take(word):
                return Node("is", start, (word, negated), [left])
        test = self._json_test(left, start) if self.take("json") else self._normalized(left, start)
        if test is not None:
            return Node("not", start, None, [test]) if negated else test
        raise Elsewhere

    def _matching(self, left: Node) -> Node | None:
        token, negated = self.token, self.word() == "not"
        word = self.word(int(negated))
        if word not in ("between", "in", "like", "ilike", "similar") or (
            word == "similar" and self.word(negated + 1) != "to"
        ):
            return None
        self.index += 1 + negated
        if word == "between":
            symmetric = self.take("symmetric")
            self.take("asymmetric")
            low = self.expression(7)
            self.expect("and")
            return Node("between", token.start, (negated, symmetric), [left, low, self.expression(7)])
        if word == "in":
            self.expect("(")
            if self._begins_query():
                test = Node("quantified", token.start, ("=", "any"), [left, self._listed(token.start)])
                return Node("not", token.start, None, [test]) if negated else test
            return Node("in", token.start, negated, [left, *self._list(")")])
        if word == "similar":
            self.expect("to")
        operator = {"like": "~~", "ilike": "~~*", "similar": "similar"}[word]
        if self.word() in ("any", "all", "some") and self.signs(1) == "(" and word != "similar":
            quantifier = self.word()
            self.index += 2
            return Node(
                "quantified", token.start, (f"{'!' * negated}{operator}", quantifier), [left, self._listed(token.start)]
            )
        items = [left, self.expression(7)]
        if self.take("escape"):
            items.append(self.expression(7))
        return Node("like", token.start, (operator, negated), items)

    def primary(self) -> Node:
        """Read what has no operator in front of it."""
        token = self.token
        if token.kind == "number":
            self.index += 1
            self._no_junk(token, "numeric literal")
            return Node("number", token.start, token.text.replace("_", "").lower())
        if token.kind in ("string", "bits"):
            self.index += 1
            return Node(token.kind, token.start, token.text)
        if token.kind == "param":
            self.index += 1
            self._no_junk(token, "parameter")
            number = int(token.text[1:10])
            if number == 0:
                raise refuse("parameter_none", number=0, position=token.start)
            if number > MOST_PARAMETERS:
                raise refuse("wire_limit", most=MOST_PARAMETERS, what="parameters")
            return self._subscripted(Node("parameter", token.start, number))
        if self.take("("):
            return self._subscripted(self._bracketed(token))
        if token.kind in ("quoted", "word"):
            special = self._SPECIAL.get(self.word())
            if special is not None and (self.word() not in _CALLED or self.signs(1) == "("):
                read: Node = special(self)
                return read
            read = self._named()
            return self._subscripted(read) if read.kind == "column" else read
        raise self.problem()

    def _no_junk(self, token: Token, words: str) -> None:
        """Raise 42601 for a word that stands directly behind a number."""
        word = self.token
        if word.kind == "word" and word.start == token.start + len(token.source):
            base = {"x": "hexadecimal", "o": "octal", "b": "binary"}.get(word.text.lower().rstrip("_"), "")
            problem = f"invalid {base} integer" if base and token.source == "0" else f"trailing junk after {words}"
            raise said("42601", f'{problem} at or near "{token.source}{word.source}"', token.start)

    def _bracketed(self, token: Token) -> Node:
        if self._begins_query():
            self.index -= 1
            return Node("subquery", token.start, None, [self._in_brackets()])
        items = self._list(")")
        if not items:
            self.index -= 1
            raise self.problem()
        if len(items) > 1:
            return Node("row", token.start, None, items)
        if self.take(".", "*"):
            return Node("star", token.start, items[0])
        if self.take("."):
            return Node("field", token.start, self.name(any_word=True), items)
        return Node("bracket", token.start, None, items) if items[0].kind in ("number", "row") else items[0]

    def _case(self) -> Node:
        start = self.token.start
        self.expect("case")
        subject = None if self.word() == "when" else self.expression()
        items, starts = list[Any](), [self.token.start]
        while self.take("when"):
            condition = self.expression()
            self.expect("then")
            items.append((condition, self.expression()))
            starts.append(self.token.start)
        default = self.expression() if self.take("else") else None
        if not items:
            raise self.problem()
        self.expect("end")
        return Node("case", start, (subject, default, starts), items)

    def _cast(self) -> Node:
        start = self.token.start
        self.expect("cast", "(")
        value = self.expression()
        self.expect("as")
        to = self.type_name()
        self.expect(")")
        return Node("cast", start, to, [value])

    def _array(self) -> Node:
        start = self.token.start
        self.expect("array")
        if self.signs() == "(":
            return Node("gathered", start, None, [self._in_brackets()])
        return self._elements(start)

    def _elements(self, start: int) -> Node:
        self.expect("[")
        items = list[Node]()
        while self.signs() != "]":
            items.append(self._elements(self.token.start) if self.signs() == "[" else self.expression())
            if not self.take(","):
                break
        self.expect("]")
        return Node("array", start, None, items)

    def _row(self) -> Node:
        start = self.token.start
        self.expect("row", "(")
        return Node("row", start, None, self._list(")"))

    def _truth(self) -> Node:
        token = self.token
        self.index += 1
        return Node("truth", token.start, {"true": True, "false": False, "null": None}[token.text.lower()])

    def _interval(self) -> Node:
        start = self.token.start
        if self.tokens[self.index + 1].kind != "string" and self.signs(1) != "(":
            return self._named()
        to = self.type_name()
        token = self.token
        if token.kind != "string":
            raise self.problem()
        self.index += 1
        to.fields = self._interval_fields()
        to.sizes = to.sizes or tuple(self._sizes() if to.fields.endswith("second") else ())
        return Node("cast", start, to, [Node("string", token.start, token.text)])

    def _interval_fields(self) -> str:
        if self.word() not in _FIELDS:
            return ""
        first = last = self.word()
        self.index += 1
        if self.word() == "to" and self.word(1) in _FIELDS:
            last = self.word(1)
            self.index += 2
        return f"{first} to {last}" if first != last else first

    def _constant(self) -> Node:
        token = self.token
        self.index += 1
        if token.text.lower() == "current_schema" and self.signs() == "(" and self.signs(1) == ")":
            self.index += 2
            return Node("call", token.start, token.text.lower())
        read = Node("constant", token.start, token.text.lower())
        if self.signs() == "(":
            if read.value not in _MOMENTS:
                raise self.problem()
            sizes = tuple(self._sizes())
            if len(sizes) != 1:
                raise self.problem()
            return Node("cast", token.start, TypeName(_MOMENTS[read.value], token.start, sizes), [read])
        return read

    def _exists(self) -> Node:
        start = self.token.start
        self.index += 1
        return Node("exists", start, None, [self._in_brackets()])

    def _xml(self) -> Node:
        """Read a call of XML, which is refused whatever its arguments are."""
        token, depth = self.token, 0
        self.index += 1
        if self.signs() != "(":
            raise self.problem()
        while self.token.kind != "end":
            depth += (self.signs() == "(") - (self.signs() == ")")
            self.index += 1
            if depth == 0:
                return Node("call", token.start, token.text.lower())
        raise self.problem()

    def _elsewhere(self) -> Node:
        raise Elsewhere

    _SPECIAL: ClassVar[dict[str, Callable[[Any], Node]]] = {
        "case": _case, "cast": _cast, "array": _array, "row": _row, "true": _truth, "false": _truth, "null": _truth,
        "extract": CallReader._extract, "substring": CallReader._substring, "position": CallReader._position,
        "overlay": CallReader._overlay, "trim": CallReader._trim, "json_array": CallReader._json_array,
        "json_object": CallReader._json_object, "normalize": CallReader._normalize, "collation": CallReader._collation_for,
        "interval": _interval, **dict.fromkeys(("coalesce", "nullif", "greatest", "least"), CallReader._collected),
        **dict.fromkeys(_CONSTANTS, _constant),
        "exists": _exists,
        **dict.fromkeys(("xmlparse", "xmlelement", "xmlforest", "xmlconcat", "xmlroot", "xmlserialize", "xmlexists", "xmltable"),
        _xml), **dict.fromkeys(("treat", "merge_action"), _elsewhere),
    }  # fmt: skip

    def _dotted(self) -> list[str]:
        names = [self.name()]
        while self.take("."):
            if self.signs() == "*":
                self.index += 1
                return [*names, ""]
            names.append(self.name(any_word=True))
        return names

    def _named(self) -> Node:
        """Read a column, a call, or a literal behind the name of its type."""
        token, word = self.token, self.word()
        if word in _LITERAL_TYPES and self._is_typed():
            to = self.type_name()
            literal = self.token
            if literal.kind == "string":
                self.index += 1
                return Node("cast", token.start, to, [Node("string", literal.start, literal.text)])
            raise self.problem()
        names = self._dotted()
        if names[-1] == "":
            return Node("star", token.start, names[-2])
        if self.signs() != "(" or len(names) > 2:
            return Node("column", token.start, names)
        self.index += 1
        distinct = self.take("distinct")
        if (self.take("all") or distinct) and self.signs() == ")":
            raise self.problem()
        is_plain, items, order = not (distinct or self.signs() == "*"), list[Node](), list[Any]()
        if not self.take("*"):
            items = self._arguments()
        if self.take("order", "by"):
            is_plain, order = False, self._order()
        self.expect(")")
        if self.take("within", "group", "(", "order", "by"):
            within, is_plain = self._order(), False
            self.expect(")")
        else:
            within = []
        condition = None
        if self.take("filter", "(", "where"):
            condition, is_plain = self.expression(), False
            self.expect(")")
        is_qualified = len(names) == 2 and names[0] == "pg_catalog"
        call = Node("call", token.start, Qualified(names[-1]) if is_qualified else names[-1], items)
        if (
            len(names) == 2
            and names[0] != "pg_catalog"
            and not (names[0] == "information_schema" and names[1][:4] == "_pg_")
        ):
            items.append(Node("schema", token.start, names[0]))
        elif not is_plain:
            call = Node("aggregate", token.start, (names[-1], distinct, order, within, condition), items)
        return self._over(call) if self.take("over") else call

    def _over(self, call: Node) -> Node:
        """Read the window of a function, as `QueryParser` does."""
        raise Elsewhere

    def _arguments(self) -> list[Node]:
        items = list[Node]()
        while self.signs() != ")":
            label = ""
            if self.signs(1) in ("=>", ":=") and self.token.kind == "word":
                label = self.name()
                self.index += 1
            is_spread = self.take("variadic")
            item = self.expression()
            if is_spread:
                items.append(Node("spread", item.position, None, [item]))
                break
            items.append(Node("argument", item.position, label, [item]) if label else item)
            if not self.take(","):
                break
        return items

    def _is_typed(self) -> bool:
        """Return whether a string stands behind the name of a type here."""
        ahead = self.index + 1
        while self.tokens[ahead].kind == "word" and self.tokens[ahead].text.lower() in _BEHIND_TYPES:
            ahead += 1
        if self.tokens[ahead].text == "(" and self.tokens[ahead].kind == "sign":
            while ahead + 1 < len(self.tokens) and self.tokens[ahead].text != ")":
                ahead += 1
            ahead += 1
            while self.tokens[min(ahead, len(self.tokens) - 1)].text.lower() in _BEHIND_TYPES:
                ahead += 1
        return self.tokens[min(ahead, len(self.tokens) - 1)].kind == "string"

    def type_name(self) -> TypeName:
        """Read the name of a type, with its sizes and brackets."""
        token, schema = self.token, ""
        name = self.name(any_word=True)
        if self.take("."):
            schema, name = name, self.name(any_word=True)
        elif token.kind == "word":
            name = self._type_word(name)
        else:
            name = '"char"' if name == "char" else name
        sizes = [] if token.kind == "word" and token.text.lower() in _UNSIZED else self._sizes()
        if token.kind == "word" and token.text.lower() == "float" and sizes:
            if not 0 < sizes[0] < 54:
                words = "at least 1 bit" if sizes[0] < 1 else "less than 54 bits"
                raise said("22023", f"precision for type float must be {words}", self.tokens[self.index - 2].start)
            name, sizes = "float4" if sizes[0] < 25 else "float8", []
        if name in ("time", "timestamp"):
            if self.take("with", "time", "zone"):
                name += "tz"
            else:
                self.take("without", "time", "zone")
        fields = self._interval_fields() if name == "interval" else ""
        sizes = sizes or (self._sizes() if fields.endswith("second") else [])
        while self.signs() == "[" or self.word() == "array":
            self.index += 1
            if self.tokens[self.index - 1].text == "[":
                if self.token.kind == "number":
                    self.index += 1
                self.expect("]")
            name = name if name.startswith("_") else "_" + name.strip('"')
        if name in ("bpchar", "bit") and not sizes and token.text.lower() in ("char", "character", "nchar", "bit"):
            sizes = [1]
        return TypeName(name, token.start, tuple(sizes), fields, schema)

    def _sizes(self) -> list[int]:
        sizes = list[int]()
        if self.signs() == "(":
            self.index += 1
            while self.token.kind == "number" or self.signs() == "-":
                sign = -1 if self.take("-") else 1
                if not self.token.text.isdecimal():
                    raise self.problem()
                sizes.append(sign * int(self.token.text[:9]))
                self.index += 1
                self.take(",")
            self.expect(")")
        return sizes

    def _type_word(self, name: str) -> str:
        if name == "double":
            self.expect("precision")
            return "float8"
        if name == "national":
            raise Elsewhere
        if name in ("character", "char", "bit") and self.take("varying"):
            return "varbit" if name == "bit" else "varchar"
        if name == "float":
            return "float8"
        return _TYPE_WORDS.get(name, name)
