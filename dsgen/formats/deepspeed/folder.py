"""What stands beside the config in a folder: a training script, its model and data, launchers."""

from pathlib import Path
from typing import Any

from dsgen.formats.decoder import decoder_source
from dsgen.formats.deepspeed.case import Order
from dsgen.formats.deepspeed.parallel import ATTENTION
from dsgen.formats.deepspeed.trainer import arguments
from dsgen.formats.hf_config import NO_SPECIAL_TOKENS, hf_config, model_type
from dsgen.formats.published import loadable, pretrained, reads_weights
from dsgen.formats.templating import render
from dsgen.formats.torch_names import DTYPES, machines
from dsgen.formats.unscripted import refuse_script
from dsgen.shapes.tiny import tiny

LAUNCHERS = ("torchrun.sh", "deepspeed.sh")


def scripts(order: Order, templates: Path | None) -> tuple[dict[str, str], frozenset[str]]:
    """Files by relative path, and which of them may be executed."""
    refuse_script(order.case.training, order.case.shapes)
    files = _trainer(order, templates) if order.by_trainer else _own_loop(order, templates)
    files["tiny.py"] = render("deepspeed/tiny.py.j2", {"plan": order.case.plan}, templates)
    where = machines(order.case.plan)
    for name in (*LAUNCHERS, "hostfile") if where["nodes"] > 1 else LAUNCHERS:
        files[f"launch/{name}"] = render(f"launch/{name}.j2", where, templates)
    return files, frozenset(f"launch/{name}" for name in LAUNCHERS)


def _own_loop(order: Order, templates: Path | None) -> dict[str, str]:
    case = order.case
    model = decoder_source(
        case.shapes.architecture,
        case.training.method,
        model=case.shapes.name,
        attention=case.training.attention,
        templates=templates,
    )
    architecture = case.shapes.architecture
    values = _values(order) | {
        "dtype": DTYPES[case.plan.precision],
        "weights": reads_weights(architecture),
        "loadable": loadable(architecture),
    }
    return {
        "train.py": render("deepspeed/train.py.j2", values, templates),
        "model.py": model,
        **pretrained(architecture, templates),
        "data.py": render("model/data.py.j2", {"sharded": True}, templates),
    }


def _trainer(order: Order, templates: Path | None) -> dict[str, str]:
    architecture = order.case.shapes.architecture
    values = _values(order) | {
        "model_type": model_type(architecture),
        "real": hf_config(architecture),
        "tiny": hf_config(tiny(architecture)) | NO_SPECIAL_TOKENS,
        "arguments": tuple(arguments(order)),
        "attention": ATTENTION[order.case.training.attention],
        "method": order.case.training.method,
    }
    return {
        "train.py": render("deepspeed/transformers/train.py.j2", values, templates),
        "data.py": render("model/data.py.j2", {"sharded": False}, templates),
    }


def _values(order: Order) -> dict[str, Any]:
    case = order.case
    schedule = case.training.scheduler
    return {
        "model": case.shapes.name,
        "plan": case.plan,
        "sequence_length": order.sequence_length,
        "steps": schedule.total_steps if schedule else None,
    }
