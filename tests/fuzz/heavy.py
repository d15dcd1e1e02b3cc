"""Short or long texts that demand much work: each is answered or refused within bounded memory and processor time.

test_limits runs this as a program. It limits memory and processor time of the whole process, and prints the name and the outcome
of each text on one line.
"""

import resource
import sys
from pathlib import Path

from support.places import POLICIES

GIGABYTES = 1 << 30
ADDRESS_SPACE = 6 * GIGABYTES
"""Limit of the process: libraries and their thread pools reserve two gigabytes before the first query; the sandbox may use
one."""
SECONDS = 60


NESTED = {
    "windows": "(SELECT *, lag(nights) OVER (PARTITION BY patient_id ORDER BY day) AS l FROM {} t)",
    "people": "(SELECT patient_id, nights, MAX(day) AS day FROM {} t GROUP BY patient_id, nights)",
    "lists": "(SELECT * FROM visits WHERE patient_id NOT IN (SELECT a.patient_id FROM {} a LEFT JOIN patients b ON a.patient_id = b.patient_id WHERE age > 1))",
    "tests under OR": "(SELECT * FROM visits v WHERE cost > 1 OR EXISTS (SELECT 1 FROM {} t WHERE t.patient_id = v.patient_id))",
    "values": "(SELECT v.*, (SELECT COUNT(*) FROM {} t WHERE t.patient_id = v.patient_id) AS n FROM visits v)",
    "conditions on both": "(SELECT * FROM visits v WHERE EXISTS (SELECT 1 FROM {} t JOIN labs l ON l.visit_id = t.visit_id WHERE t.patient_id = v.patient_id AND l.value > v.cost))",
}
"""Steps of which each takes the rows of the one before: what is done twice for one of them is done 2**18 times for all."""


def texts() -> dict[str, str]:
    """Return the texts by name."""
    count = "SELECT COUNT(*) FROM visits"
    times = range(1, 31)
    many = "SELECT COUNT(*) FROM visits WHERE "
    return {
        "megabyte of blanks": count + " " * 1_000_000,
        "megabyte of text": f"{many}diagnosis = '{'x' * 1_000_000}'",
        "megabyte of comment": f"/*{'x' * 1_000_000}*/ {count}",
        "megabyte of brackets": "(" * 1_000_000,
        "megabyte of quotes": "'" * 1_000_001,
        "megabyte of dollars": "$" * 1_000_000,
        "longest text": f"{many}diagnosis = '{'x' * 199_000}'",
        "longest name": f"SELECT {'n' * 199_000} FROM visits",
        "longest number": f"{many}cost > {'9' * 199_000}",
        "longest fraction": f"{many}cost > 0.{'0' * 199_000}1",
        "unfinished comment": "SELECT " + "/* " * 60_000,
        "operators": f"{many}nights > 1{' + 1' * 9_990}",
        "many operators": f"{many}nights > 1{' + 1' * 20_000}",
        "minus signs": f"SELECT {'- ' * 15_000}1 FROM visits",
        "negations": f"{many}{'NOT ' * 19_000}smoker",
        "brackets": f"SELECT {'(' * 3_000}1{')' * 3_000} FROM visits",
        "square brackets": f"SELECT {'[' * 3_000}1{']' * 3_000}",
        "cases": f"SELECT {'CASE WHEN true THEN ' * 3_000}1",
        "nested selects": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 59 + "visits" + ") t" * 59,
        "nested functions": f"SELECT {'abs(' * 59}1{')' * 59} FROM visits",
        "casts": f"SELECT COUNT(*) FROM visits WHERE nights{'::int' * 6_000} > 0",
        "subscripts": f"SELECT a{'[1]' * 6_000} FROM visits",
        "dots": f"SELECT {'a.' * 9_000}a FROM visits",
        "common parts": f"{many}{' OR '.join(f'(nights = {n} AND cost > {n} OR nights = {n} AND cost < 1)' for n in range(900))}",
        "conjunction": f"{many}{' AND '.join(f'nights <> {n}' for n in range(4_900))}",
        "disjunction": f"{many}{' OR '.join(f'cost = {n}' for n in range(4_900))}",
        "pipes": f"SELECT {' || '.join(['diagnosis'] * 9_000)}, COUNT(*) FROM visits GROUP BY 1",
        "long list": f"{many}nights IN ({', '.join(map(str, range(9_000)))})",
        "many columns": f"SELECT {', '.join(['COUNT(*)'] * 4_900)} FROM visits",
        "many keys": f"SELECT COUNT(*) FROM visits GROUP BY {', '.join(f'nights + {n}' for n in range(4_900))}",
        "cube": f"SELECT COUNT(*) FROM visits GROUP BY CUBE ({', '.join(f'nights + {n}' for n in range(30))})",
        "rollups": f"SELECT COUNT(*) FROM visits GROUP BY {', '.join(f'ROLLUP (nights + {n}, cost)' for n in range(20))}",
        "unions": " UNION ALL ".join([count] * 2_000),
        "union of rows": f"SELECT COUNT(*) FROM ({' UNION ALL '.join(['SELECT nights FROM visits'] * 2_000)}) t",
        "joins": "SELECT COUNT(*) FROM visits v0 " + " ".join(f"JOIN visits v{n} ON v0.visit_id = v{n}.visit_id" for n in times),
        "comma joins": "SELECT COUNT(*) FROM visits v0, " + ", ".join(f"patients p{n}" for n in range(2_000)),
        "cross joins": f"SELECT COUNT(*) FROM {', '.join(f'regions r{n}' for n in range(6))}",
        **{f"nested {name}": f"SELECT COUNT(*) FROM {_nested([step] * 18, 'visits', '{}')} t" for name, step in NESTED.items()},
        "cases in conditions": _nested(["CASE WHEN {} > 1 THEN cost ELSE nights END"] * 40, "cost", "SELECT COUNT(*) FILTER (WHERE {} > 1) FROM visits"),
        "nested presence": _nested(["(SELECT 1 WHERE EXISTS {})"] * 25, "(SELECT 1)", "SELECT {}"),
        "doubling outputs": "SELECT COUNT(*) AS a0, " + ", ".join(f"a{n - 1} + a{n - 1} AS a{n}" for n in times) + " FROM visits",
        "doubling rows": _nested([f"SELECT x + x AS x FROM ({{}}) t{n}" for n in times], "SELECT nights AS x FROM visits", "SELECT SUM(clamp(x, 0, 9)) FROM ({}) t"),
        "doubling results": _nested([f"SELECT x + x AS x FROM ({{}}) t{n}" for n in times], "SELECT COUNT(*) AS x FROM visits", "{}"),
        "doubling names": _common(count.replace("COUNT(*)", "COUNT(*) AS x"), "SELECT l.x + r.x AS x FROM {0} l, {0} r"),
        "doubling unions": _common(count.replace("COUNT(*)", "COUNT(*) AS x"), "SELECT x FROM {0} UNION ALL SELECT x FROM {0}"),
        "doubling unions of rows": _common("SELECT nights AS x FROM visits", "SELECT x FROM {0} UNION ALL SELECT x FROM {0}", "SELECT COUNT(x) FROM c30"),
        "doubling texts": _nested([f"SELECT x || x AS x FROM ({{}}) t{n}" for n in times], "SELECT CAST(COUNT(*) AS VARCHAR) AS x FROM visits", "{}"),
        "doubling betweens": _nested([f"SELECT x BETWEEN x AND x AS x FROM ({{}}) t{n}" for n in times], "SELECT cost > 1 AS x FROM visits", "SELECT COUNT_IF(x) FROM ({}) t"),
        "names of names": "WITH " + ", ".join(f"c{n} AS (FROM c{n + 1})" for n in range(2_000)) + ", c2000 AS (SELECT 1) FROM c0",
        "endless": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
        "endless cross join": "SELECT COUNT(*) FROM " + ", ".join(f"(SELECT region AS r{n} FROM regions) t{n}" for n in range(20)),
        "powers": "SELECT " + "power(" * 50 + "9" + ", 9)" * 50,
        "big repeat": "SELECT repeat('x', 1000000000)",
        "big padding": f"SELECT replace(replace('{'a' * 4_000}', 'a', '{'b' * 4_000}'), 'b', '{'c' * 4_000}')",
        "big power": "SELECT 10 ** 308 * COUNT(*) FROM visits",
        "big grid": "SELECT day, nights, seen, COUNT(*) FROM visits GROUP BY ALL",
        "big width": "SELECT width_bucket(cost, 0, 1000, 2000000000) AS b, COUNT(*) FROM visits GROUP BY b",
        "big shift of months": "SELECT day + INTERVAL 999999999 MONTH, COUNT(*) FROM visits GROUP BY 1",
        "placeholders": "SELECT " + ", ".join(["?"] * 9_000),
        "many options": f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({', '.join(['epsilon = 1'] * 4_000)}) COUNT(*) FROM visits",
        "combining characters": "SELECT e" + "\u0301" * 100_000,
        "separators": "SELECT 1" + "\u2028" * 100_000,
    }  # fmt: skip


def _nested(steps: list[str], innermost: str, outermost: str) -> str:
    query = innermost
    for step in steps:
        query = step.format(query)
    return outermost.format(query)


def _common(first: str, step: str, last: str = "SELECT COUNT(*) FROM c30") -> str:
    """Return WITH c0 AS (first), c1 AS (a step over c0), ..., where each entry is twice as large as the previous one."""
    entries = [f"c0 AS ({first})", *(f"c{n} AS ({step.format(f'c{n - 1}')})" for n in range(1, 31))]
    return f"WITH {', '.join(entries)} {last}"


def _peak_megabytes(reset: bool = True) -> int:
    """Return the largest resident memory of this process since it was reset last; with `reset`, the present one."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) >> 10


def main() -> None:
    """Send the named texts (all of them if none is named). With --measure first, end each line with seconds of one core and megabytes
    beyond those of before."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    from dpsql.policy import load_policy
    from fuzz.laws import Trial

    trial = Trial(load_policy(POLICIES / "hospital.yaml"))
    known, measures = texts(), sys.argv[1:2] == ["--measure"]
    for name in sys.argv[1 + measures :] or known:
        used, before = resource.getrusage(resource.RUSAGE_SELF), _peak_megabytes()
        limit = int(used.ru_utime + used.ru_stime) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        seen = trial.look(known[name])
        then = resource.getrusage(resource.RUSAGE_SELF)
        seconds = then.ru_utime + then.ru_stime - used.ru_utime - used.ru_stime
        measured = f" {seconds:.2f} s {_peak_megabytes(reset=False) - before} MB" if measures else ""
        print(f"{name}: {seen}{measured}", flush=True)


if __name__ == "__main__":
    main()
