"""`select_batches` through an engine, one line each. Options are those of `select_batches`; docs/batch.md has examples.

The engine cuts the rows into batches and runs them where it likes; the rows that come out do not depend on that.
Settings and counters must be picklable; a worker needs gatekeeper and pyarrow.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gatekeeper.batch.arrow import select_batches
from gatekeeper.batch.rows import ERROR, PROMPT, SELECTED, TOKENS, conversation_of

if TYPE_CHECKING:
    from pyarrow import Table

ROWS_A_BATCH = 256  # some 4 MB of conversations


def select_table(table: Table, **options: Any) -> Table:
    """`select_batches` for one Arrow table."""
    import pyarrow

    from gatekeeper.batch.arrow import output_schema

    return pyarrow.Table.from_batches(select_batches(table, **options), schema=output_schema(table.schema))


def select_ray(dataset: Any, **options: Any) -> Any:
    """A lazy Ray Dataset with the columns of `select_batches`; Ray runs a batch again whose worker died."""
    return dataset.map_batches(
        partial(select_table, **options), batch_format="pyarrow", batch_size=ROWS_A_BATCH, zero_copy_batch=True)


def select_spark(dataframe: Any, **options: Any) -> Any:
    """A lazy Spark DataFrame with the columns of `select_batches`, by `mapInArrow`."""
    from pyspark.sql import types

    block = types.StructType([
        types.StructField("turn_id", types.IntegerType()), types.StructField("user", types.StringType()),
        types.StructField("assistant", types.StringType()), types.StructField("score", types.DoubleType()),
    ])  # fmt: skip
    kinds = {SELECTED: types.ArrayType(block), PROMPT: types.StringType(), TOKENS: types.IntegerType(),
             ERROR: types.StringType()}  # fmt: skip
    taken = conversation_of(dataframe.columns)
    schema = types.StructType([field for field in dataframe.schema.fields if field.name != taken]
                              + [types.StructField(name, kind) for name, kind in kinds.items()])
    return dataframe.mapInArrow(partial(select_batches, **options), schema)


def select_dataset(dataset: Any, **options: Any) -> Any:
    """A Hugging Face `datasets.Dataset` with the columns of `select_batches`; `num_proc` is for its processes."""
    num_proc = options.pop("num_proc", None)
    taken = conversation_of(dataset.column_names)
    chosen = dataset.with_format("arrow").map(partial(select_table, **options), batched=True, batch_size=ROWS_A_BATCH,
                                              remove_columns=[taken] if taken else [], num_proc=num_proc)  # fmt: skip
    return chosen.with_format(None)
