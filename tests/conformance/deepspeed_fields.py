"""Own process: fields, defaults and bounds of the installed DeepSpeed's config classes and constructors."""

import contextlib
import inspect
import io
import json
import sys
from typing import Any

BOUNDS = {"Gt": "exclusiveMinimum", "Ge": "minimum", "Lt": "exclusiveMaximum", "Le": "maximum"}


def fields(model: Any) -> dict[str, dict[str, Any]]:
    """Every key that a pydantic class takes, aliases too, with its default and bounds."""
    found = {}
    for name, field in model.model_fields.items():
        default = field.default if isinstance(field.default, bool | int | float | str | None) else None
        bounds = {
            BOUNDS[type(bound).__name__]: vars_of(bound) for bound in field.metadata if type(bound).__name__ in BOUNDS
        }
        for key in {name, field.alias or name}:
            found[key] = {"default": default, "bounds": bounds}
    return found


def vars_of(bound: Any) -> Any:
    """The number of an annotated-types bound."""
    return next(getattr(bound, name) for name in ("gt", "ge", "lt", "le") if hasattr(bound, name))


def parameters(function: Any) -> dict[str, Any]:
    """Parameters of a constructor with their defaults; "required" where there is none."""
    signature = inspect.signature(function).parameters.values()
    plain = [
        parameter for parameter in signature if parameter.name not in ("self", "optimizer", "params", "model_params")
    ]
    return {
        parameter.name: "required" if parameter.default is parameter.empty else parameter.default for parameter in plain
    }


def main() -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        from deepspeed.comm.config import CommsLoggerConfig
        from deepspeed.compile.config import CompileConfig
        from deepspeed.monitor.config import CometConfig, CSVConfig, TensorBoardConfig, WandbConfig
        from deepspeed.ops.adagrad import DeepSpeedCPUAdagrad
        from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
        from deepspeed.ops.lamb import FusedLamb
        from deepspeed.ops.lion import DeepSpeedCPULion, FusedLion
        from deepspeed.runtime import config, lr_schedules
        from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
        from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
        from deepspeed.runtime.zenflow.zenflow_config import ZenFlowConfig
        from deepspeed.runtime.zero import config as zero
        from deepspeed.runtime.zero import leaf_module_config, offload_config

        sections = {
            "zero_optimization": zero.DeepSpeedZeroConfig,
            "zero_optimization.offload_param": offload_config.DeepSpeedZeroOffloadParamConfig,
            "zero_optimization.offload_optimizer": offload_config.DeepSpeedZeroOffloadOptimizerConfig,
            "zero_optimization.zenflow": ZenFlowConfig,
            "zero_optimization.leaf_module": leaf_module_config.DeepSpeedZeroLeafModuleConfig,
            "fp16": DeepSpeedFP16Config,
            "bf16": DeepSpeedBF16Config,
            "comms_logger": CommsLoggerConfig,
            "compile": CompileConfig,
            "tensorboard": TensorBoardConfig,
            "wandb": WandbConfig,
            "csv_monitor": CSVConfig,
            "comet": CometConfig,
            "hybrid_engine": config.HybridEngineConfig,
            "tensor_parallel": TPTrainingConfig,
        }
        schedules = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
        optimizers = {
            "adam": (FusedAdam, DeepSpeedCPUAdam),
            "lamb": (FusedLamb,),
            "lion": (FusedLion, DeepSpeedCPULion),
            "adagrad": (DeepSpeedCPUAdagrad,),
        }
        found = {
            "sections": {name: fields(model) for name, model in sections.items()},
            "schedules": {name: parameters(getattr(lr_schedules, name).__init__) for name in schedules},
            "optimizers": {name: [parameters(kind.__init__) for kind in kinds] for name, kinds in optimizers.items()},
            "removed": sorted(config._REMOVED_TOP_LEVEL_CONFIG_KEYS),
            "removed_zero": sorted(config._REMOVED_ZERO_CONFIG_KEYS),
            "names": config.DEEPSPEED_OPTIMIZERS,
        }
    json.dump(found, out)


if __name__ == "__main__":
    main()
