"""What stands beside sharding.py in a folder: a training script, its model and data, a launcher."""

from pathlib import Path
from typing import Any

from dsgen.errors import RefusedError
from dsgen.formats.decoder import decoder_source
from dsgen.formats.fsdp2.optimizer import optimizer
from dsgen.formats.fsdp2.order import CodeOrder
from dsgen.formats.hf_config import NO_SPECIAL_TOKENS, hf_config, model_type
from dsgen.formats.published import NAME, loadable, pretrained, reads_weights
from dsgen.formats.templating import render
from dsgen.formats.torch_names import machines
from dsgen.formats.unscripted import refuse_script
from dsgen.shapes.tiny import tiny
from dsgen.units import format_bytes

LAUNCHER = "launch/torchrun.sh"
OWN = ("train.py", "loader.py", "weights.py", "checkpoint.py")
FILES = frozenset((*OWN, "model.py", "data.py", "sharding.py", NAME))
_FP32 = 4


def scripts(order: CodeOrder, templates: Path | None) -> tuple[dict[str, str], frozenset[str]]:
    """Files by relative path, and which of them may be executed."""
    refuse_script(order.case.training, order.case.shapes)
    values = _values(order)
    files = {name: render(f"fsdp2/{name}.j2", values, templates) for name in OWN}
    files["model.py"] = _MODELS[order.source](order, templates)
    if order.source == "decoder":
        files |= pretrained(order.shapes.architecture, templates)
    files["data.py"] = render("model/data.py.j2", {"sharded": False}, templates)
    files[LAUNCHER] = render(f"{LAUNCHER}.j2", machines(order.plan), templates)
    return files, frozenset({LAUNCHER})


def _decoder(order: CodeOrder, templates: Path | None) -> str:
    return decoder_source(
        order.shapes.architecture,
        order.case.training.method,
        model=order.shapes.name,
        attention=order.case.training.attention,
        bare=True,  # train.py has the loss, sharding.py the checkpointing
        templates=templates,
    )


def _transformers(order: CodeOrder, templates: Path | None) -> str:
    architecture = order.shapes.architecture
    values = {
        "model": order.shapes.name,
        "layer": architecture.layer_class,
        "model_type": model_type(architecture),
        # torch's scaled_dot_product_attention picks FlashAttention where it can.
        "attention": "eager" if order.case.training.attention == "eager" else "sdpa",
        "real": hf_config(architecture),
        "tiny": hf_config(tiny(architecture)) | NO_SPECIAL_TOKENS,
    }
    return render("fsdp2/transformers/model.py.j2", values, templates)


def _factory(order: CodeOrder, templates: Path | None) -> str:
    module, _, function = (order.shapes.factory or "").partition(":")
    if f"{module.partition('.')[0]}.py" in FILES:
        raise RefusedError.at(
            f"the factory {module}:{function} would be looked for in the folder's own {module.partition('.')[0]}.py",
            help="put it into a package with another name",
        )
    values = {"module": module, "function": function, "vocab": order.shapes.architecture.vocab}
    return render("fsdp2/factory/model.py.j2", values, templates)


_MODELS = {"decoder": _decoder, "transformers": _transformers, "factory": _factory}


def _values(order: CodeOrder) -> dict[str, Any]:
    case, plan = order.case, order.plan
    schedule = case.training.scheduler
    constant = schedule is not None and schedule.type == "constant" and schedule.warmup_steps == 0
    return {
        "model": case.shapes.name,
        "plan": plan,
        "shard_group": order.shard_group,
        "source": order.source,
        "weights": order.source == "decoder" and reads_weights(case.shapes.architecture),
        "loadable": loadable(case.shapes.architecture),
        "sequence_length": order.sequence_length,
        "steps": schedule.total_steps if schedule else None,
        "schedule": None if constant else schedule,
        "clipping": case.training.gradient_clipping,
        "fp16": plan.precision == "fp16",
        "offload": plan.offload_parameters == "cpu",
        "optimizer": optimizer(order),
        "whole_gradients": format_bytes(_FP32 * case.shapes.trainable),
    }
