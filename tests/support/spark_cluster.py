"""A program that runs queries in a Spark application with two executors and kills executors while a query runs.

It prints one line of JSON, which `tests/unit/engine/spark/test_cluster.py` reads. The argument is a separate folder; the folder
named by SPARK_CONF_DIR holds the application's settings.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dpsql.engine.registry import open_engine
from dpsql.engine.spark.tables import application
from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.policy import parse_policy
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session
from support.gates import NoiselessGate

POLICY = """
dataset: cluster
source: {master}
privacy_unit: {{table: people, column: id}}
budget: {{epsilon: 100, delta: 1e-4, accountant: pure}}
per_query: {{epsilon: 1}}
ledger: sqlite:///{folder}/ledger.db
tables:
  people:
    source: global_temp.people
    max_rows: 2
    columns:
      id: {{type: integer, nullable: false}}
      age: {{type: integer, lower: 0, upper: 100}}
"""
MASTER = "spark://local-cluster[2,1,1024]"
UNITS = 100_000
SLOW_SQL = "SELECT SUM(age) AS total FROM people"


def executors() -> list[int]:
    """Return the descendant processes that are executors."""
    parents, executors_ = {}, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if any(word.endswith(b"CoarseGrainedExecutorBackend") for word in words):
            executors_.append(int(entry.name))

    def below(process: int) -> bool:
        while process in parents:
            if process == os.getpid():
                return True
            process = parents[process]
        return False

    return [process for process in executors_ if below(process)]


def kill_one(tracker: Any, done: threading.Event, said: dict[str, Any]) -> None:
    """Kill one executor as soon as tasks run."""
    while not done.is_set():
        stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
        if any(stage is not None and stage.numActiveTasks for stage in stages):
            os.kill(executors()[0], signal.SIGKILL)
            said["killed"] = True
            return
        time.sleep(0.01)


def main(folder: Path) -> None:
    spark = application(MASTER)
    rows = spark.range(UNITS, numPartitions=16).selectExpr("id", "CAST(pmod(xxhash64(id), 101) AS BIGINT) AS age")
    rows.createOrReplaceGlobalTempView("people")
    policy = parse_policy(POLICY.format(master=MASTER, folder=folder))
    ledger = open_ledger(policy.ledger_url(), policy.dataset, create=True)
    session = Session(policy, open_engine(policy), ledger, open_releases(ledger), gate=NoiselessGate())
    said: dict[str, Any] = {"most": spark.sparkContext.getConf().get("spark.driver.maxResultSize")}

    def ask() -> Any:
        return session.execute(SLOW_SQL).table.column(0)[0].as_py()

    def charges() -> int:
        return sum(entry.kind == "charge" for entry in ledger.history())

    (expected,) = spark.sql("SELECT CAST(sum(age) AS DOUBLE) FROM global_temp.people").collect()[0]
    said["expected"], said["undisturbed"] = expected, ask()
    said["executors"] = len(executors())
    # On a busy machine an executor may die just after its task ended; if a death must fail a task, another one is killed then.
    for _ in range(5 if spark.sparkContext.getConf().get("spark.task.maxFailures") == "1" else 1):
        before, done = charges(), threading.Event()
        killer = threading.Thread(target=kill_one, args=(spark.sparkContext.statusTracker(), done, said))
        killer.start()
        try:
            said["disturbed"] = ask()
        except Error as error:
            said["slug"] = error.slug
            said.pop("disturbed", None)
        done.set()
        killer.join()
        said["charged"] = charges() - before
        if "slug" in said:
            break
    said["afterwards"] = ask()
    session.close()
    spark.stop()
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
