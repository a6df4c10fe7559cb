"""Answer many conversations through Ray, Spark and datasets, kill a worker on the way, compare with one process.

    python tests/engines/at_scale.py [--rows 100000] [--only ray spark datasets file] [--keep FOLDER]

Prints rows, seconds and rows a second for each engine, and exits 1 unless every row that came out is the same, byte
for byte, as in one process. Each engine runs twice: undisturbed, and with a worker that kills itself with SIGKILL in
the midst of its work. Needs the extra `engines`, and Java 17 for Spark.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import dataset as arrow_dataset
from pyarrow import parquet

from gatekeeper import estimate_tokens
from gatekeeper.batch import select_batches
from gatekeeper.batch.engines import select_dataset, select_ray, select_spark
from gatekeeper.batch.files import select_file

SUBJECTS = ("redis 惰性删除", "git rebase", "asyncio.gather 任务取消", "EXPLAIN ANALYZE 执行计划", "token_budget",
            "v1.2.3", "the retry queue", "分布式锁的 TTL", "HTTPServer timeout")  # fmt: skip
WORDS = ("怎么用", "是什么", "how to tune", "为什么慢", "an index", "过期策略", "the shared branch", "worker", "连接池")
TURN = pa.struct([("user", pa.string()), ("assistant", pa.string())])
SCHEMA = pa.schema([("id", pa.int64()), ("turns", pa.list_(TURN)), ("query", pa.string())])
ROWS_A_GROUP = 2000
DIES_AFTER = 1500  # counted texts
BUDGET = 1000

n_counted = 0


def dying_counter(marker: str, text: str) -> int:
    """Counts as the default does. In one worker, of all that share `marker`, it kills the process on the way."""
    global n_counted
    n_counted += 1
    if n_counted == DIES_AFTER:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return estimate_tokens(text)
        os.kill(os.getpid(), signal.SIGKILL)
    return estimate_tokens(text)


def conversation(number: int) -> dict[str, Any]:
    """A conversation of 2 to 20 turns of two subjects, by its number alone."""
    chance = random.Random(number)
    subjects = chance.sample(SUBJECTS, 2)
    turns = []
    for i in range(chance.randrange(2, 21)):
        subject = subjects[chance.random() < 0.3]
        words = " ".join(chance.choices(WORDS, k=chance.randrange(4, 30)))
        user, assistant = f"{subject} {chance.choice(WORDS)} {i}?", f"{words}。{subject}: {words}. {number}"
        turns.append({"user": user, "assistant": assistant})
    return {"id": number, "turns": turns, "query": f"{subjects[0]} {chance.choice(WORDS)}"}


def write_input(path: Path, n_rows: int) -> None:
    """The conversations as Parquet."""
    with parquet.ParquetWriter(path, SCHEMA) as writer:
        for first in range(0, n_rows, ROWS_A_GROUP):
            rows = [conversation(number) for number in range(first, min(first + ROWS_A_GROUP, n_rows))]
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


def fingerprint(table: pa.Table) -> tuple[int, str]:
    """(rows, SHA-256 of all rows by id): each as JSON, floats to the last bit."""
    hashed = hashlib.sha256()
    table = table.sort_by("id").select(["id", "query", "selected", "prompt", "tokens", "error"])
    for batch in table.to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            hashed.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return table.num_rows, hashed.hexdigest()


# --- the ways to answer them


def by_one_process(source: Path, out: Path, **options: Any) -> pa.Table:
    with parquet.ParquetFile(source) as file:
        return pa.Table.from_batches(select_batches(file.iter_batches(batch_size=256), **options))


def by_file(source: Path, out: Path, **_: Any) -> pa.Table:
    select_file(source, out, token_budget=BUDGET, threads=2)
    table = parquet.read_table(out)
    return table.append_column("error", pa.nulls(table.num_rows, pa.string()))


def by_ray(source: Path, out: Path, **options: Any) -> pa.Table:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
             object_store_memory=600_000_000)  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        select_ray(ray.data.read_parquet(str(source)), **options).write_parquet(str(out))
    finally:
        ray.shutdown()
    return parquet.read_table(out)


def by_spark(source: Path, out: Path, **options: Any) -> pa.Table:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.sql.files.maxPartitionBytes": "4m", "spark.ui.enabled": "false", "spark.driver.memory": "2g",
                "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}  # fmt: skip
    builder = SparkSession.builder.master("local[2,4]")  # two cores; a task may fail three times
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        select_spark(spark.read.parquet(str(source)), **options).write.parquet(str(out))
    finally:
        spark.stop()
    return arrow_dataset.dataset(out, format="parquet").to_table()


def by_datasets(source: Path, out: Path, **options: Any) -> pa.Table:
    import datasets

    datasets.disable_progress_bars()
    loaded = datasets.Dataset.from_parquet(str(source), cache_dir=str(out))
    answered = select_dataset(loaded, num_proc=2, **options)
    return answered.with_format("arrow")[:]


WAYS: dict[str, Callable[..., pa.Table]] = {
    "file": by_file, "ray": by_ray, "spark": by_spark, "datasets": by_datasets,
}  # fmt: skip
WITHSTAND = ("ray", "spark")  # engines that run a batch again whose worker died


def compared(n_rows: int, ways: list[str], folder: Path) -> bool:
    """Run every way and print what came of it; whether all rows are those of one process."""
    source = folder / "in.parquet"
    write_input(source, n_rows)
    print(f"{n_rows} conversations, {source.stat().st_size / 1e6:.0f} MB of Parquet", flush=True)
    wanted = timed("one process", by_one_process, source, folder / "one", None, token_budget=BUDGET)
    all_same = True
    for name in ways:
        runs: list[tuple[str, dict[str, Any]]] = [(name, {})]
        if name in WITHSTAND:
            marker = str(folder / f"{name}.died")
            runs.append((f"{name}, a worker killed", {"count_tokens": partial(dying_counter, marker)}))
        for title, more in runs:
            out = folder / f"{title.replace(' ', '-')}.parquet"
            found = timed(title, WAYS[name], source, out, wanted, token_budget=BUDGET, **more)
            all_same &= found == wanted
            if more and not os.path.exists(marker):
                print(f"{title}: no worker died")
                all_same = False
    return all_same


def timed(title: str, way: Callable[..., pa.Table], source: Path, out: Path, wanted: tuple[int, str] | None,
          **options: Any) -> tuple[int, str]:
    start = time.perf_counter()
    table = way(source, out, **options)
    seconds = time.perf_counter() - start
    found = fingerprint(table)
    same = "" if wanted is None else "  the same" if found == wanted else "  NOT THE SAME"
    rate = found[0] / seconds
    print(f"{title}: {found[0]} rows, {seconds:.1f} s, {rate:.0f} rows/s, {found[1][:16]}{same}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--keep", type=Path, help="a folder for the files, else a temporary one")
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        return 0 if compared(arguments.rows, arguments.only, arguments.keep) else 1
    with tempfile.TemporaryDirectory() as folder:
        return 0 if compared(arguments.rows, arguments.only, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
