"""Counts the work of sqlglot's parser exactly: the functions that it calls, in all and between two steps of `sql.parser`.

`test_parse_time` runs this as a program, with the parser that is not compiled: compiled functions cannot be counted. The input has
one [dialect, text] of JSON in each line; the output has one line with the counts for each.
"""

import json
import sys
from collections.abc import Sequence
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from types import FrameType, ModuleType


class _Sources:
    """Finds the modules of sqlglot as Python's source, although compiled ones stand beside it."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "sqlglot":
            return None
        finders = (FileFinder(entry, (SourceFileLoader, [".py"])) for entry in (sys.path if path is None else path))
        return next((spec for finder in finders if (spec := finder.find_spec(name)) is not None), None)


def counts(dialect: str, text: str) -> dict[str, int | str] | None:
    """Return the numbers of calls, of calls between two steps at most, of steps and of tokens; None for a text that cannot be
    lexed."""
    from dpsql.errors.exceptions import Error
    from dpsql.sql import parser
    from dpsql.sql.lexer import lex

    lexed = lex(text, dialect)
    if lexed.stop is not None or not lexed.tokens:
        return None
    calls = widest = last = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls, widest, last
        if event == "call":
            calls += 1
            if frame.f_code.co_name == "look":
                widest, last = max(widest, calls - last), calls

    outcome = "read"
    sys.setprofile(count)
    try:
        parser.parse_tokens(lexed.tokens, text, dialect)
    except Error as error:
        outcome = error.slug
    except Exception as error:  # whatever the parser raises for a text that is not SQL
        outcome = type(error).__name__
    finally:
        sys.setprofile(None)
    steps = parser.most_steps(len(lexed.tokens)) - parser._metered_dialect(dialect).steps_left
    return {
        "calls": calls,
        "widest": max(widest, calls - last),
        "steps": steps,
        "tokens": len(lexed.tokens),
        "outcome": outcome,
    }


def main() -> None:
    sys.meta_path.insert(0, _Sources())  # type: ignore[arg-type]
    import sqlglot.parser

    assert str(sqlglot.parser.__file__).endswith(".py")
    counts("duckdb", "SELECT 1"), counts("postgres", "SELECT 1")
    for line in sys.stdin:
        print(json.dumps(counts(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
