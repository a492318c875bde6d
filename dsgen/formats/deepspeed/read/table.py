"""Keys of a config that a plan or a spec has a word for, and keys of which it is said why not."""

from collections.abc import Mapping

from dsgen.formats.deepspeed.read import values as to
from dsgen.reading import SpecPath

_ZERO = "zero_optimization"
_OPTIMIZER = f"{_ZERO}.offload_optimizer"
_PARAMETERS = f"{_ZERO}.offload_param"

CARRIED: Mapping[str, tuple[SpecPath, to.Reader]] = {
    "train_batch_size": (("training", "global_batch"), to.positive),
    "train_micro_batch_size_per_gpu": (("want", "micro_batch"), to.positive),
    "gradient_accumulation_steps": (("want", "accumulation"), to.positive),
    "gradient_clipping": (("training", "gradient_clipping"), to.not_negative),
    "data_types.grad_accum_dtype": (("want", "gradient_precision"), to.precision),
    "sequence_parallel_size": (("want", "ulysses"), to.positive),
    "tensor_parallel.autotp_size": (("want", "tensor_parallel"), to.size),
    f"{_ZERO}.overlap_comm": (("want", "overlap_comm"), to.boolean),
    f"{_ZERO}.reduce_bucket_size": (("want", "buckets", "reduce"), to.positive_size),
    f"{_ZERO}.allgather_bucket_size": (("want", "buckets", "allgather"), to.positive_size),
    f"{_ZERO}.sub_group_size": (("want", "buckets", "sub_group_size"), to.group),
    f"{_ZERO}.stage3_prefetch_bucket_size": (("want", "buckets", "prefetch"), to.size),
    f"{_ZERO}.stage3_max_live_parameters": (("want", "buckets", "max_live_parameters"), to.size),
    f"{_ZERO}.stage3_max_reuse_distance": (("want", "buckets", "max_reuse_distance"), to.size),
    f"{_ZERO}.stage3_param_persistence_threshold": (("want", "buckets", "persistence_threshold"), to.size),
    f"{_ZERO}.zero_quantized_weights": (("want", "zeropp", "quantized_weights"), to.boolean),
    f"{_ZERO}.zero_quantized_gradients": (("want", "zeropp", "quantized_gradients"), to.boolean),
    f"{_ZERO}.zero_hpz_partition_size": (("want", "zeropp", "secondary_partition"), to.positive),
    f"{_OPTIMIZER}.device": (("want", "offload_optimizer"), to.device),
    f"{_OPTIMIZER}.pin_memory": (("want", "swap", "pin_memory"), to.boolean),
    f"{_OPTIMIZER}.buffer_count": (("want", "swap", "optimizer_buffers"), to.positive),
    f"{_OPTIMIZER}.nvme_path": (("hardware", "nvme", "path"), to.text),
    f"{_PARAMETERS}.device": (("want", "offload_parameters"), to.device),
    f"{_PARAMETERS}.pin_memory": (("want", "swap", "pin_memory"), to.boolean),
    f"{_PARAMETERS}.buffer_count": (("want", "swap", "parameter_buffers"), to.positive),
    f"{_PARAMETERS}.buffer_size": (("want", "swap", "parameter_buffer_size"), to.positive_size),
    f"{_PARAMETERS}.max_in_cpu": (("want", "swap", "max_in_cpu"), to.size),
    f"{_PARAMETERS}.nvme_path": (("hardware", "nvme", "path"), to.text),
}
"""One key of the config, one of the spec. Precision, optimizer and scheduler take several: see their files."""

NOT_CARRIED: Mapping[str, str] = {
    "fp16.fp16_master_weights_and_grads": "states in fp16 have no word in a plan",
    "bf16.bf16_master_weights_and_grads": "states in bf16 have no word in a plan",
    "bf16.bf16_optimizer_states": "states in bf16 have no word in a plan",
    "communication_data_type": "a plan communicates in its compute type",
    "data_types.param_dtype": "weights of another type than the compute type have no word in a plan",
    "torch_autocast": "autocast has no word in a plan",
    "zero_optimization.zenflow": "ZenFlow has no word in a plan",
    "zero_optimization.mics_shard_size": "MiCS has no word in a plan",
    "zero_optimization.offload_optimizer.ratio": "a plan offloads the optimizer wholly or not at all",
    "zero_optimization.offload_optimizer.super_offload": "SuperOffload has no word in a plan",
    "zero_optimization.offload_optimizer.pipeline_read": "a plan swaps without pipelining",
    "zero_optimization.offload_optimizer.pipeline_write": "a plan swaps without pipelining",
    "zero_optimization.stage3_model_persistence_threshold": "a plan bounds what stays whole by the size of a parameter",
    "zero_optimization.zero_quantized_nontrainable_weights": "quantised frozen weights have no word in a plan",
    "zero_optimization.zeropp_loco_param": "LoCo has no word in a plan",
    "activation_checkpointing": (
        "the section acts only where the model's own code calls deepspeed.checkpointing; say --checkpointing, or "
        "want.checkpointing"
    ),
    "compile": "DeepCompile has no word in a plan",
    "expert_parallel": "AutoEP has no word in a plan",
    "pipeline": "the number of pipeline stages stands in the model's code, not in this file",
    "weight_quantization": "quantised weights have no word in a plan",
    "elasticity": "an elastic batch has no word in a plan",
    "amp": "Apex has no word in a plan",
    "sparse_attention": "sparse attention has no word in a plan",
    "sparse_gradients": "sparse gradients have no word in a plan",
    "compression_training": "compression has no word in a plan",
    "quantize_training": "quantisation has no word in a plan",
    "progressive_layer_drop": "layer dropping has no word in a plan",
    "curriculum_learning": "lengths that change as the training goes on have no word in a plan",
    "data_efficiency": "lengths and layers that change as the training goes on have no word in a plan",
    "hybrid_engine": "generation between steps has no word in a plan",
    "autotuning": "the autotuner writes configs of its own",
}
"""What changes bytes, seconds or the training and has no word in a plan: a key, or all beneath it."""

OFF_BY_DEFAULT = frozenset(
    {
        "torch_autocast",
        "compile",
        "expert_parallel",
        "elasticity",
        "amp",
        "curriculum_learning",
        "data_efficiency",
        "hybrid_engine",
        "autotuning",
        "progressive_layer_drop",
        "weight_quantization",
    }
)
"""Sections with a switch ("enabled", DeepCompile's "deepcompile"): off, they say nothing."""
