"""Random hospitals: a few patients each, with values inside and outside the bounds, missing and unusual ones."""

import math
import random
from datetime import date, datetime, timedelta
from typing import Any

from support.neighbouring_hospitals import PUBLIC, Data, merge


def patient(rng: random.Random, number: int, visits: int) -> Data:
    """Return one patient with `visits` visits and up to twelve laboratory values (more if there are many visits)."""
    real = [0.0, -0.0, 1.0, 2.5, 77.25, 999.5, 1000.0, 1e9, -3.0, -1e300, math.inf, -math.inf, math.nan, None]
    person: dict[str, Any] = {
        "patient_id": number, "region": rng.choice(["north", "south", "east", "west", "mars"]),
        "sex": rng.choice(["f", "m", None, "x"]), "age": rng.choice([0, 18, 31, 65, 120, 150, -4, None]),
        "weight": rng.choice(real), "smoker": rng.choice([True, False, None]), "city": rng.choice(["ulm", "bonn", None]),
        "income": rng.choice(real),
    }  # fmt: skip
    data: Data = {"patients": [person], "visits": [], "labs": []}
    for at in range(visits):
        day = date(2024, 1, 1) + timedelta(days=rng.randint(0, 400))
        data["visits"].append({
            "visit_id": number * 1000 + at, "patient_id": number, "ward": rng.choice(["er", "icu", "day", None, "attic"]),
            "day": rng.choice([day, None]), "seen": datetime(day.year, day.month, day.day, rng.randint(0, 23)),
            "cost": rng.choice(real), "change": rng.choice(real), "nights": rng.choice([0, 1, 2, 3, 30, 45, -1]),
            "diagnosis": rng.choice(["flu", "cold", "", None]), "code": rng.choice([0, 1, 2, 7, 2**40, None]),
        })  # fmt: skip
    for _ in range(rng.randint(0, 12) if visits <= 20 else 40):
        if visits:
            visit = number * 1000 + rng.randrange(visits)
            value = rng.choice([-9.0, -4.0, 0.5, 4.0, math.nan, None])
            data["labs"].append(
                {
                    "visit_id": visit,
                    "test": rng.choice(["alt", "hb", "na", "xx"]),
                    "value": value,
                    "flag": rng.random() < 0.5,
                }
            )
    return data


def hospital(rng: random.Random, heavy: bool) -> dict[int, Data]:
    """Return six patients by number. `heavy`: some have more rows than the policy counts."""
    sizes = [rng.choice([0, 1, 2, 5, 20]) for _ in range(6)]
    if heavy:
        sizes[:3] = [45, 33, 21]
    return {number: patient(rng, number, size) for number, size in enumerate(sizes, 1)}


def database(patients: dict[int, Data], without: int | None = None, seed: int = 0) -> Data:
    """Return all tables, with the rows shuffled by `seed`."""
    data: Data = {}
    for number, rows in patients.items():
        if number != without:
            merge(data, rows)
    for table in data.values():
        random.Random(seed).shuffle(table)
    return {**data, **PUBLIC}
