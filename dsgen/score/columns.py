"""The columns of a table of measured runs, by the kind of their cells, and what each says (``dsgen show columns``)."""

from collections.abc import Mapping

REQUIRED = ("row_id", "model", "n_gpus", "seq_len", "micro_batch")
"""Without one of these in its first line a file is not read."""

NEEDED = ("gpu", "sharding", "compute_dtype", "optimizer", "act_ckpt", "attention", "loss_impl")
"""The memory of a row that leaves one empty is not predicted; its speed only needs the first three."""

COUNTS: Mapping[str, str] = {
    "hidden": "size of the model; the sizes may stay empty where model is a name that dsgen knows (dsgen show models)",
    "layers": "blocks",
    "heads": "attention heads",
    "kv_heads": "heads of keys and values; empty: as the named model, else as many as heads",
    "intermediate": "width of the MLP",
    "vocab": "rows of the embedding",
    "n_gpus": "GPUs in all",
    "nodes": "nodes; empty: 1",
    "dp": "data-parallel ranks; empty: what the other sizes leave of n_gpus",
    "tp": "tensor-parallel ranks; empty: 1",
    "pp": "pipeline stages; empty: 1",
    "vpp": "chunks of a pipeline stage; empty: 1",
    "cp": "context-parallel ranks; empty: 1",
    "sp_ulysses": "ranks that split a sequence (Ulysses); empty: 1",
    "seq_len": "tokens per sequence",
    "micro_batch": "sequences of one forward pass of one GPU",
    "grad_accum": "micro-batches of an optimizer step; empty: 1",
    "global_batch": "sequences of an optimizer step; empty: micro_batch x grad_accum x dp",
}
"""Whole numbers."""

NUMBERS: Mapping[str, str] = {
    "params_b": "parameters, 1e9: checks the sizes where it is there",
    "trainable_m": "trained parameters, 1e6 (not read)",
    "gpu_mem_gb": "memory on the GPU's label, GB; needed for a GPU that dsgen does not know (dsgen show gpus)",
    "peak_alloc_gib": "measured: torch.cuda.max_memory_allocated, GiB (2**30 bytes)",
    "peak_reserved_gib": "measured: torch.cuda.max_memory_reserved, GiB",
    "peak_smi_gib": "measured: the whole GPU, as nvidia-smi says, GiB",
    "post_step_alloc_gib": "measured: allocated after a step, GiB (not read)",
    "peak_unspecified_g": "measured, of an unclear kind (not read)",
    "tok_s_gpu": "measured: tokens a second of one GPU",
    "samples_s_gpu": "measured: sequences a second of one GPU",
    "step_time_s": "measured: seconds of an optimizer step",
    "mfu_pct": "measured: model FLOPs utilisation, %",
    "tflops_gpu": "measured: TFLOP/s of one GPU",
}
"""Numbers above 0; those measured may be empty."""

TEXTS: Mapping[str, str] = {
    "row_id": "a name of your own, once in the file",
    "source_id": "where runs come from: errors are shown by it",
    "kind": "pretrain, full_ft, lora, qlora, encoder_ft, or component (one module)",
    "model": "a name (dsgen show models), or any with the sizes beside it",
    "tied_emb": "yes where input and output embedding are one; empty: as the named model",
    "mlp": "swiglu, geglu, gelu, relu, squared_relu; empty: as the named model",
    "gpu": "a name (dsgen show gpus)",
    "framework": "what trained: deepspeed, hf trainer, torchtitan, megatron-lm, ...",
    "sharding": "none, ddp, zero1, zero2, zero3, fsdp1_full, fsdp1_grad_op, fsdp2_full, hsdp, distopt(zero1)",
    "master_dtype": "type of the weights that are updated: fp32, bf16",
    "compute_dtype": "bf16, fp16, fp32, fp8...",
    "reduce_dtype": "type in which gradients are reduced",
    "optimizer": "adamw, adamw(fused), adamw_torch, fusedadam, cpu_adam, adam8bit, adafactor",
    "optim_state_dtype": "fp32, bf16",
    "offload": "none, params cpu, optim cpu, params+optim cpu, act cpu; empty: none",
    "act_ckpt": "none, full, selective_op, selective_layer(every 2); of megatron: selective(core_attn), "
    "selective(mlp+core_attn)",
    "attention": "eager, sdpa, flash",
    "compile": "yes where torch.compile is used",
    "loss_impl": "full_ce, fused_ce, chunked_ce, fused_linear_ce",
    "peft": "lora r16 q+v, lora r8 all-linear, ...; empty: none",
    "quant": "nf4, ... of frozen weights; empty: none",
    "outcome": "fits or oom; empty: fits",
    "completeness": "A where no cell was assumed",
    "notes": "free text; 'fabric 100 Gbps' is the network of a node",
}
"""Words; upper and lower case are alike."""

KNOWN = frozenset((*COUNTS, *NUMBERS, *TEXTS, "source_ref", "locator"))
