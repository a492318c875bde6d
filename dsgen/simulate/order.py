"""What the worker is asked: the files that build writes, and how they are trained with."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsgen.errors import RefusedError
from dsgen.formats.decoder import decoder_source
from dsgen.formats.deepspeed.write import write as write_deepspeed
from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.fsdp2.sharding import sharding
from dsgen.formats.hf_config import hf_config, model_type
from dsgen.hardware import Hardware
from dsgen.legality.values import Case
from dsgen.memory.activations.kernels import kernels_of
from dsgen.plan import Plan
from dsgen.shapes.tower import has_tower
from dsgen.shapes.values import Shapes
from dsgen.simulate.depths import Depths, depths
from dsgen.spec.values import Training
from dsgen.target import Target

# Beyond the first, one between and the last, micro-batches repeat.
_MICRO_BATCHES = 3
_CLASSES = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One plan to simulate."""

    plan: Plan
    shapes: Shapes
    training: Training
    sequence_length: int
    hardware: Hardware
    target: Target

    def request(self, folder: Path, *, everything: bool = False) -> tuple[dict[str, Any], Depths]:
        """Writes the files into ``folder``. ``everything``: all layers run, nothing is extrapolated."""
        refuse(self)
        plan, training, code = self.plan, self.training, self.training.code
        by_deepspeed = self.target.format == "deepspeed"
        # What DeepSpeed fetches and reduces is cut by buckets, not by layers.
        found = depths(plan, self.shapes, everything=everything or by_deepspeed)
        arch = self.shapes.architecture
        model = folder / "model.py"
        if not self.published:
            model.write_text(decoder_source(arch, training.method, attention=training.attention), encoding="utf-8")
        narrow = code.weights_in_compute_type and not by_deepspeed
        request: dict[str, Any] = {
            "framework": self.target.format,
            "model": str(model),
            "transformers": self._published(found) if self.published else None,
            "world_size": plan.world_size,
            # Of a flat partition of all gradients the last rank's part is there first: it is the fullest.
            "rank": plan.world_size - 1 if by_deepspeed and plan.zero_stage in (1, 2) else 0,
            "shard_group": None if plan.shard_group == plan.world_size else plan.shard_group,
            "stage": plan.zero_stage,
            "strategy": _strategy(plan),
            "precision": plan.precision,
            "stored": plan.precision if narrow else "fp32",
            # Plain torch computes in 16 bit from fp32 weights by autocast alone.
            "autocast": code.autocast or (self.target.format == "ddp" and plan.precision != "fp32" and not narrow),
            "checkpointing": [plan.checkpointing.kind, plan.checkpointing.every],
            "micro_batch": plan.micro_batch,
            "accumulation": min(plan.accumulation, _MICRO_BATCHES),
            "reduce_each": plan.reduce_each_micro_batch,
            "sequence_length": self.sequence_length,
            "optimizer": self._optimizer(),
            "clipping": training.gradient_clipping,
            "norm": _norm(self),
            "fused_gates": "mlp" in code.fused and arch.mlp == "swiglu",
            "loss": _loss(training),
            # Classes of transformers take the loss themselves, which FSDP1 notices: it gathers the last block before.
            "loss_inside": self.target.format != "fsdp2" and code.library == "transformers",
            "keeps_logits": code.keeps_logits and training.loss == "full",
            "every_second_product": code.library == "torchtitan",
            "logits": plan.micro_batch * self.sequence_length * arch.vocab,
            "expert_share": 1 / arch.moe.experts if arch.moe is not None else 1.0,
            "depths": list(found.layers),
            "margin": found.margin,
        }
        if self.target.format == "fsdp2":
            request["sharding"] = self._sharding(folder, narrow)
        if by_deepspeed:
            request["config"] = self._config(folder, request["accumulation"])
        return request, found

    @property
    def published(self) -> bool:
        """Whether a class of transformers is trained, rather than the decoder that build writes."""
        return self.target.loaded_by == "transformers" and self.training.method.type == "full"

    def _published(self, found: Depths) -> dict[str, Any]:
        arch = self.shapes.architecture
        return {
            "model_type": model_type(arch),
            "configs": {str(layers): hf_config(replace(arch, layers=layers)) for layers in found.layers},
            "layer_class": arch.layer_class,
            "attention": "eager" if self.training.attention == "eager" else "sdpa",
            "reentrant": self.training.code.reentrant,
        }

    def _optimizer(self) -> Mapping[str, Any]:
        wanted = self.training.optimizer
        arguments: dict[str, Any] = {"lr": wanted.lr, "weight_decay": wanted.weight_decay}
        if wanted.type == "sgd":
            return {"type": "SGD", "arguments": arguments | {"momentum": wanted.momentum}}
        arguments |= {"betas": list(wanted.betas), "eps": wanted.eps}
        # DeepSpeed's FusedAdam needs a GPU to be built; torch's fused one makes no temporaries either.
        fused = wanted.step == "fused" or self.target.format == "deepspeed"
        return {"type": _CLASSES[wanted.type], "arguments": arguments | {"fused" if fused else "foreach": True}}

    def _sharding(self, folder: Path, narrow: bool) -> str:
        # Weights that are stored in the compute type need no policy that casts them.
        plan = replace(self.plan, precision="fp32") if narrow else self.plan
        case = Case(plan=plan, shapes=self.shapes, training=self.training, hardware=self.hardware, target=self.target)
        path = folder / "sharding.py"
        path.write_text(sharding(CodeOrder(case=case, sequence_length=self.sequence_length), None), encoding="utf-8")
        return str(path)

    def _config(self, folder: Path, accumulation: int) -> str:
        """As build writes it for DeepSpeed itself, but for what counts micro-batches."""
        written = write_deepspeed(
            self.plan,
            self.shapes,
            self.training,
            replace(self.target, loaded_by="deepspeed"),
            self.hardware,
            self.sequence_length,
        )
        config = json.loads(next(iter(written.files.values())))
        config["gradient_accumulation_steps"] = accumulation
        config["train_batch_size"] = self.plan.micro_batch * accumulation * self.plan.data_parallel
        path = folder / "ds_config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)


def refuse(order: Order) -> None:
    """Raises RefusedError for what would not be simulated as it is."""
    plan, training, code = order.plan, order.training, order.training.code
    reasons = {
        f"target.format {order.target.format}": order.target.format not in ("deepspeed", "fsdp2", "fsdp1", "ddp"),
        "tensor parallelism": plan.tensor_parallel > 1,
        "pipeline parallelism": plan.pipeline_parallel > 1,
        "context parallelism": plan.context_parallel > 1,
        "Ulysses": plan.ulysses > 1,
        "expert parallelism": plan.expert_parallel > 1,
        "offload, since the CPU stands for the GPU,": (plan.offload_optimizer, plan.offload_parameters)
        != ("none", "none")
        or plan.offload_activations,
        "a model made by a factory": order.shapes.factory is not None,
        "quantised weights": training.method.quantization is not None,
        "training with frozen parts": bool(training.freeze),
        "a vision tower": has_tower(order.shapes),
        "what else lives on the card": bool(training.residents),
        f"the optimizer {training.optimizer.type}": training.optimizer.type not in _CLASSES,
        "an optimizer step inside the backward pass": training.optimizer.step == "in_backward",
        f"the loss {training.loss}": _loss(training) is None,
        f"the model code of {code.library}": code.library not in ("transformers", "torchtitan"),
        "adapters under FSDP1 or plain torch, which keep frozen weights in 16 bit,": training.method.type != "full"
        and order.target.format in ("fsdp1", "ddp"),
        "an embedding that is a unit of its own": code.embedding_apart,
        "matrix products in fp8": bool(code.eight_bit),
        "DeepSpeed with master weights in the compute type": code.weights_in_compute_type
        and order.target.format == "deepspeed",
    }
    for what, found in reasons.items():
        if found:
            raise RefusedError.at(f"{what} can't be simulated yet", help="without --simulate, the formula counts it")


def _strategy(plan: Plan) -> str:
    """FSDP1's name for a stage."""
    hybrid = plan.shard_group not in (None, plan.world_size)
    if plan.zero_stage == 3:
        return "HYBRID_SHARD" if hybrid else "FULL_SHARD"
    if plan.zero_stage == 2:
        return "_HYBRID_SHARD_ZERO2" if hybrid else "SHARD_GRAD_OP"
    return "NO_SHARD"


def _norm(order: Order) -> str:
    """fused: one kernel. transformers: as its Llama writes it. composite: torch's own, which multiplies in fp32."""
    if "norm" in order.training.code.fused:
        return "fused"
    return "composite" if kernels_of(order.shapes.architecture).norm_product_in_fp32 else "transformers"


def _loss(training: Training) -> str | None:
    """How the loss is taken, by the worker's names."""
    wide = training.code.loss_in_fp32
    if training.loss == "full":
        return "full" if wide else "narrow"
    if training.loss == "fused":
        return "fused" if wide else "narrow_fused"
    return "fused_linear" if training.loss == "fused_linear" else None
