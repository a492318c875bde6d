"""The whole table: every row once. A new row goes into the file of its subject."""

from dsgen.legality import (
    rows_batch,
    rows_buckets,
    rows_checkpointing,
    rows_fsdp2,
    rows_gradient_sums,
    rows_offload,
    rows_optimizer,
    rows_parallel,
    rows_precision,
    rows_training,
    rows_weights,
    rows_zeropp,
)
from dsgen.legality.values import Row

TABLE: tuple[Row, ...] = (
    *rows_precision.ROWS,
    *rows_gradient_sums.ROWS,
    *rows_batch.ROWS,
    *rows_buckets.ROWS,
    *rows_parallel.ROWS,
    *rows_zeropp.ROWS,
    *rows_offload.ROWS,
    *rows_checkpointing.ROWS,
    *rows_optimizer.ROWS,
    *rows_training.ROWS,
    *rows_weights.ROWS,
    *rows_fsdp2.ROWS,
)
