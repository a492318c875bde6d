"""The columns of a table of measured runs, by the kind of their cells."""

REQUIRED = ("row_id", "model", "n_gpus", "seq_len", "micro_batch")

COUNTS = (
    *("hidden", "layers", "heads", "kv_heads", "intermediate", "vocab"),
    *("n_gpus", "nodes", "dp", "tp", "pp", "vpp", "cp", "sp_ulysses"),
    *("seq_len", "micro_batch", "grad_accum", "global_batch"),
)
"""Whole numbers."""

NUMBERS = (
    *("params_b", "trainable_m", "gpu_mem_gb"),
    *("peak_alloc_gib", "peak_reserved_gib", "peak_smi_gib", "post_step_alloc_gib", "peak_unspecified_g"),
    *("tok_s_gpu", "samples_s_gpu", "step_time_s", "mfu_pct", "tflops_gpu"),
)

TEXTS = (
    *("row_id", "source_id", "kind", "model", "tied_emb", "mlp", "gpu", "framework", "sharding"),
    *("master_dtype", "compute_dtype", "reduce_dtype", "optimizer", "optim_state_dtype", "offload"),
    *("act_ckpt", "attention", "compile", "loss_impl", "peft", "quant", "outcome", "completeness", "notes"),
)

KNOWN = frozenset((*COUNTS, *NUMBERS, *TEXTS, "source_ref", "locator"))
