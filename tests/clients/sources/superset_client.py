"""Steps against Apache Superset's REST API over a served clinic; run by Superset's own Python.

`python superset_client.py URL` prints one line of JSON for each step, {"step": NAME, "error": TEXT or null}. The address of the
clinic comes from PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE; PICTURE names a file for the picture of a chart with bands.
"""

import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

COUNT = {"expressionType": "SIMPLE", "aggregate": "COUNT", "column": {"column_name": "patient_id"}, "label": "patients"}
MEAN = {"expressionType": "SIMPLE", "aggregate": "AVG", "column": {"column_name": "bmi"}, "label": "Mean BMI"}
BAND = [
    {"expressionType": "SQL", "sqlExpression": expression, "label": label, "hasCustomLabel": True}
    for expression, label in (
        ("COUNT(*)", "patients"),
        ("DP_INTERVAL_LOW(COUNT(*))", "patients__yhat_lower"),
        ("DP_INTERVAL_HIGH(COUNT(*))", "patients__yhat_upper"),
    )
]
"""The three metrics of docs/bi.md that Superset draws as values in a band."""
BAR = {"expressionType": "SQL", "sqlExpression": "DP_ERROR(COUNT(*))", "label": "give or take"}
REFUSED = (400, 403, 422, 500)


class Superset:
    """A logged-in browser session; identifiers of objects that earlier steps created are kept by name."""

    def __init__(self, url: str) -> None:
        self.url, self.made = url, dict[str, int]()
        self.session = requests.Session()
        login = {"username": "admin", "password": "admin", "provider": "db", "refresh": True}
        token = self.post("security/login", login)["access_token"]
        self.session.headers["Authorization"] = f"Bearer {token}"
        self.session.headers["X-CSRFToken"] = self.get("security/csrf_token/")["result"]
        self.session.headers["Referer"] = url

    def get(self, path: str, wanted: int = 200, **query: Any) -> Any:
        found = {name: value if isinstance(value, str) else json.dumps(value) for name, value in query.items()}
        return self._read(self.session.get(f"{self.url}/api/v1/{path}", params=found, timeout=120), wanted)

    def post(self, path: str, body: Any, wanted: int | tuple[int, ...] = (200, 201)) -> Any:
        return self._read(self.session.post(f"{self.url}/api/v1/{path}", json=body, timeout=120), wanted)

    def put(self, path: str, body: Any) -> Any:
        return self._read(self.session.put(f"{self.url}/api/v1/{path}", json=body, timeout=120), 200)

    @staticmethod
    def _read(response: Any, wanted: int | tuple[int, ...]) -> Any:
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        assert response.status_code in wanted, f"{response.url}: {response.status_code} {response.text[:2000]}"
        return response.json()

    def question(self, dataset: str, force: bool = False, **query: Any) -> dict[str, Any]:
        """Return the request that a chart of a dataset sends."""
        whole = {"metrics": [], "columns": [], "filters": [], "orderby": [], "row_limit": 1000, **query}
        return {
            "datasource": {"id": self.made[dataset], "type": "table"}, "force": force, "queries": [whole],
            "result_format": "json", "result_type": "full",
        }  # fmt: skip

    def chart(self, dataset: str, wanted: int = 200, **query: Any) -> Any:
        """Return the rows of a chart (or, for another status, its error)."""
        found = self.post("chart/data", self.question(dataset, **query), wanted)
        if wanted != 200:
            return found
        (result,) = found["result"]
        assert result["status"] == "success" and not result["error"], result["error"]
        return result["data"]

    def sql(self, text: str, wanted: int = 200) -> Any:
        """Return SQL Lab's response to a text."""
        body = {
            "database_id": self.made["database"],
            "sql": text,
            "schema": "public",
            "runAsync": False,
            "queryLimit": 1000,
        }
        return self.post("sqllab/execute/", body, wanted)


def add_database(superset: Superset) -> None:
    password = quote(os.environ["PGPASSWORD"])
    place = (
        f"{os.environ['PGUSER']}:{password}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/{os.environ['PGDATABASE']}"
    )
    uri = f"postgresql+psycopg2://{place}?sslmode=require"
    superset.post("database/test_connection/", {"database_name": "clinic", "sqlalchemy_uri": uri})
    made = superset.post("database/", {"database_name": "clinic", "sqlalchemy_uri": uri, "expose_in_sqllab": True})
    superset.made["database"] = made["id"]


def look_around(superset: Superset) -> None:
    number = superset.made["database"]
    assert "public" in superset.get(f"database/{number}/schemas/")["result"]
    tables = superset.get(f"database/{number}/tables/", q="(schema_name:public)")["result"]
    assert {table["value"] for table in tables} == {"patients", "labs", "events"}
    about = superset.get(f"database/{number}/table_metadata/", name="labs", schema="public")
    types = {column["name"]: column["type"] for column in about["columns"]}
    assert types == {"day": "BIGINT", "test": "TEXT", "value": "DOUBLE_PRECISION", "patient_id": "BIGINT"}, types
    assert "up to 60 rows" in about["comment"]
    assert superset.get(f"database/{number}/function_names/")["function_names"] is not None


def add_datasets(superset: Superset) -> None:
    physical = {"database": superset.made["database"], "schema": "public", "table_name": "patients"}
    superset.made["patients"] = superset.post("dataset/", physical)["id"]
    columns = superset.get(f"dataset/{superset.made['patients']}")["result"]["columns"]
    assert {"sex", "age", "bmi", "patient_id"} <= {column["column_name"] for column in columns}
    assert next(c for c in columns if c["column_name"] == "age")["type"] == "BIGINT"
    virtual = {
        **physical,
        "table_name": "by sex",
        "sql": "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY sex",
    }
    superset.made["by sex"] = superset.post("dataset/", virtual)["id"]
    columns = superset.get(f"dataset/{superset.made['by sex']}")["result"]["columns"]
    assert [column["column_name"] for column in columns] == ["sex", "n", "age"]


def charts(superset: Superset) -> None:
    rows = superset.chart("patients", columns=["sex"], metrics=[COUNT, MEAN], orderby=[[COUNT, False]])
    assert [row["sex"] for row in rows] == ["female", "male"]
    assert all(5000 < row["patients"] < 12000 and 20 < row["Mean BMI"] < 40 for row in rows)
    (total,) = superset.chart("patients", metrics=["count"])
    assert 15_000 < total["count"] < 20_000
    top = superset.chart("patients", columns=["sex"], metrics=[COUNT], orderby=[[COUNT, False]], row_limit=1)
    assert [row["sex"] for row in top] == ["female"]
    virtual = superset.chart("by sex", columns=["sex", "n"], metrics=[], orderby=[["sex", True]])
    assert [row["sex"] for row in virtual] == ["female", "male"]


def filters(superset: Superset) -> None:
    chosen = [
        {"col": "sex", "op": "IN", "val": ["male"]}, {"col": "age", "op": ">=", "val": 40},
        {"col": "bmi", "op": "IS NOT NULL"}, {"col": "has_nafld", "op": "IS TRUE"},
    ]  # fmt: skip
    rows = superset.chart("patients", columns=["sex"], metrics=[COUNT], filters=chosen)
    assert [row["sex"] for row in rows] == ["male"] or {row["sex"] for row in rows} == {"female", "male"}
    having = superset.chart(
        "patients", columns=["sex"], metrics=[COUNT], extras={"having": "COUNT(*) > 8500", "where": "(age > 20)"}
    )
    assert [row["sex"] for row in having] == ["female"]
    number = superset.made["patients"]
    values = superset.get(f"datasource/table/{number}/column/sex/values/")["result"]
    assert sorted(values) == ["female", "male"]


def error_bars(superset: Superset) -> None:
    rows = superset.chart("patients", columns=["sex"], metrics=[COUNT, BAR])
    assert all(10 < row["give or take"] < 100 for row in rows)


def bands(superset: Superset) -> None:
    """Draw a chart with a band in a browser. Its colours fill more of the chart than values without a band could."""
    chosen = "has_nafld AND age BETWEEN 30 AND 80"
    rows = superset.chart("patients", columns=["age"], metrics=BAND, extras={"where": chosen})
    assert len(rows) == 51
    assert all(row["patients__yhat_lower"] < row["patients"] < row["patients__yhat_upper"] for row in rows)
    params = {
        "viz_type": "echarts_timeseries_line", "datasource": f"{superset.made['patients']}__table", "x_axis": "age",
        "metrics": BAND, "groupby": [], "row_limit": 1000, "x_axis_title": "age", "x_axis_title_margin": 30,
        "y_axis_title": "patients with fatty liver disease", "y_axis_title_margin": 40, "x_axis_sort": "age",
        "x_axis_sort_asc": True, "adhoc_filters": [{"clause": "WHERE", "expressionType": "SQL", "sqlExpression": chosen}],
    }  # fmt: skip
    chart = superset.post("chart/", {
        "slice_name": "patients by age", "viz_type": params["viz_type"], "datasource_id": superset.made["patients"],
        "datasource_type": "table", "params": json.dumps(params),
    })  # fmt: skip
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars", "window-size=800,420"):
        options.add_argument(f"--{word}")
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(f"{superset.url}/login/")
        for field in ("username", "password"):
            WebDriverWait(browser, 120).until(lambda page, name=field: page.find_elements(By.ID, name))
            browser.find_element(By.ID, field).send_keys("admin")
        browser.find_element(By.ID, "password").submit()
        WebDriverWait(browser, 120).until(lambda page: "/login" not in page.current_url)
        browser.get(f"{superset.url}/explore/?slice_id={chart['id']}&standalone=1")
        WebDriverWait(browser, 120).until(lambda page: page.execute_script(COLOURED) > 10_000)
        time.sleep(3)  # while the chart moves to its last state
        if "PICTURE" in os.environ:
            Path(os.environ["PICTURE"]).write_bytes(browser.get_screenshot_as_png())
    finally:
        browser.quit()


COLOURED = """
const canvas = document.querySelector("canvas");
if (!canvas) return 0;
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let coloured = 0;
for (let start = 0; start < pixels.length; start += 4) {
  const [red, green, blue, alpha] = pixels.slice(start, start + 4);
  coloured += alpha > 0 && Math.max(red, green, blue) - Math.min(red, green, blue) > 12;
}
return coloured;
"""


def prices(superset: Superset) -> None:
    shown = superset.sql("SHOW dp.budget")["data"]
    assert {row["scope"] for row in shown} == {"dataset", "analyst:research"}
    plan = superset.sql("EXPLAIN VERBOSE SELECT sex, COUNT(*) AS n FROM patients WHERE age > 21 GROUP BY sex")
    (row,) = plan["data"]
    assert row["output"] == "n" and 15 < row["error_95"] < 25 and row["rho"] == 0.005


def refusals(superset: Superset) -> None:
    """Check the messages that a person reads in Superset's own error boxes."""
    told = superset.sql("SELECT * FROM patients WHERE age > 30", REFUSED)
    assert_told(told, "nothing was charged", "choose a metric (count, average) and a dimension")
    preview = superset.post(
        "chart/data", {**superset.question("patients", force=True), "result_type": "samples"}, (200, *REFUSED)
    )
    assert_told(preview, "nothing was charged", "choose a metric (count, average) and a dimension")
    wrong = {"expressionType": "SQL", "sqlExpression": "AVG(nope)", "label": "wrong"}
    assert_told(
        superset.chart("patients", REFUSED, metrics=[wrong]), 'column "nope" does not exist', "nothing was charged"
    )
    superset.sql("DELETE FROM patients", REFUSED)


def assert_told(told: Any, *words: str) -> None:
    text = told if isinstance(told, str) else json.dumps(told)
    plain = text.replace('\\"', '"')
    assert all(word in plain for word in words), text


def add_dashboard(superset: Superset) -> None:
    dashboard = superset.post("dashboard/", {"dashboard_title": "clinic", "published": True})["id"]
    superset.made["dashboard"] = dashboard
    for name, metric in (("how many", COUNT), ("how heavy", MEAN)):
        question = superset.question("patients", columns=["sex"], metrics=[metric])
        params = {
            "viz_type": "table",
            "groupby": ["sex"],
            "metrics": [metric],
            "datasource": f"{superset.made['patients']}__table",
        }
        superset.post("chart/", {
            "slice_name": name, "viz_type": "table", "datasource_id": superset.made["patients"], "datasource_type": "table",
            "params": json.dumps(params), "query_context": json.dumps(question), "dashboards": [dashboard],
        })  # fmt: skip


def refresh(superset: Superset) -> None:
    """Refresh the dashboard repeatedly: rows stay equal, and the budget is unchanged."""
    shown = superset.get(f"dashboard/{superset.made['dashboard']}/charts")["result"]
    assert sorted(chart["slice_name"] for chart in shown) == ["how heavy", "how many"]

    def look() -> list[Any]:
        found = [superset.get(f"chart/{chart['id']}/data/", force="true")["result"] for chart in shown]
        return [one["data"] for (one,) in found]

    first, before = look(), superset.sql("SHOW dp.budget")["data"]
    assert all(len(rows) == 2 for rows in first)
    for _ in range(3):
        assert look() == first
    assert superset.sql("SHOW dp.budget")["data"] == before


STEPS = (
    add_database, look_around, add_datasets, charts, filters, error_bars, bands, prices, refusals, add_dashboard, refresh,
)  # fmt: skip


def main() -> None:
    superset = Superset(sys.argv[1])
    for step in STEPS:
        error = None
        try:
            step(superset)
        except Exception:
            error = traceback.format_exc(limit=4)
        print(json.dumps({"step": step.__name__, "error": error}), flush=True)


if __name__ == "__main__":
    main()
