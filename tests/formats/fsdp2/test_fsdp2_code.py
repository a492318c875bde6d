"""The code that is written for FSDP2: its form, what it imports, and what it says of the plan."""

import ast
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from console import environment
from floors import imports
from fsdp2_folders import ADAMW, save, written

from dsgen.errors import RefusedError
from dsgen.facts.versions import libraries
from dsgen.formats.fsdp2.write import NAME
from dsgen.formats.values import Written
from dsgen.plan import Checkpointing
from dsgen.spec.values import Method, Optimizer, Scheduler

ON_CPU = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}
SCHEDULES = [
    None,
    Scheduler(type="constant", warmup_steps=10),
    Scheduler(type="linear", warmup_steps=0, total_steps=100),
    Scheduler(type="cosine", warmup_steps=10, total_steps=None, min_lr_ratio=0.1),
    Scheduler(type="cosine", warmup_steps=10, total_steps=100),
]
LAYOUTS: list[dict[str, Any]] = [
    {"zero_stage": 2},
    {"zero_stage": 3, "accumulation": 4},
    {"zero_stage": 3, "accumulation": 4, "reduce_each_micro_batch": True, **ON_CPU},
    {"zero_stage": 3, "shard_group": 4, "accumulation": 4, "reduce_each_micro_batch": True},
    {"zero_stage": 2, "shard_group": 4},
]
KINDS = [Checkpointing("none"), Checkpointing("full"), Checkpointing("selective"), Checkpointing("every", 4)]
SOURCES: list[dict[str, Any]] = [
    {},
    {"loaded_by": "transformers"},
    {"model": "mixtral-8x7b"},
    {"factory": "package.models:build"},
    {"method": Method(type="lora"), "model": "gpt2-xl", "sequence_length": 1024},
]


Combination = tuple[dict[str, Any], Checkpointing, dict[str, Any]]
# Every layout, kind of checkpointing and source.
COMBINATIONS: list[Combination] = list(itertools.product(LAYOUTS, KINDS, SOURCES))


def grid() -> list[Written]:
    """Every combination, the other choices taking turns."""
    precisions = itertools.cycle(["bf16", "fp16", "fp32"])
    schedules, clippings = itertools.cycle(SCHEDULES), itertools.cycle([1.0, 0.0])
    optimizers = itertools.cycle([ADAMW, Optimizer(type="sgd", lr=0.1, momentum=0.9), Optimizer(type="adam", lr=1e-4)])
    return [
        written(
            8,
            precision=next(precisions),
            scheduler=next(schedules),
            clipping=next(clippings),
            optimizer=next(optimizers),
            checkpointing=kind,
            **layout,
            **source,
        )
        for layout, kind, source in COMBINATIONS
    ]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    top, made = tmp_path_factory.mktemp("grid"), []
    for index, each in enumerate(grid()):
        made.append(top / f"plan{index}")
        save(each, made[-1])
    return made


def run(*command: str | Path, cwd: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]


def test_is_formatted_and_clean(folders: list[Path]) -> None:
    top = folders[0].parent
    run("ruff", "format", "--isolated", "--diff", ".", cwd=top)
    run("ruff", "check", "--isolated", ".", cwd=top)


# mypy takes seconds for each: one of every kind of checkpointing, among them every kind of model but experts and
# adapters, which change the decoder only.
TYPED: dict[str, Combination] = {
    "decoder": (LAYOUTS[0], KINDS[0], SOURCES[0]),
    "class of transformers, offloaded, full": (LAYOUTS[2], KINDS[1], SOURCES[1]),
    "factory, gathered in groups, selective": (LAYOUTS[4], KINDS[2], SOURCES[3]),
    "factory, sharded in groups, every fourth block": (LAYOUTS[3], KINDS[3], SOURCES[3]),
}


@pytest.mark.parametrize("index", [COMBINATIONS.index(each) for each in TYPED.values()], ids=list(TYPED))
def test_types_hold(folders: list[Path], index: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.getbasetemp() / "mypy"
    settings = cache.with_suffix(".ini")
    lines = ["[mypy]", "ignore_missing_imports = true", "[mypy-transformers.*]", "follow_imports = skip", ""]
    settings.write_text("\n".join(lines), "utf-8")
    run("mypy", "--config-file", settings, "--cache-dir", cache, ".", cwd=folders[index])


def test_imports_nothing_of_dsgen(folders: list[Path]) -> None:
    for script in itertools.chain.from_iterable(folder.rglob("*.py") for folder in folders):
        names = {seen.module.partition(".")[0] for seen in imports(script.read_text("utf-8"), "script", set())}
        assert "dsgen" not in names


def test_is_the_same_every_time() -> None:
    asked: dict[str, Any] = {"accumulation": 4, "checkpointing": Checkpointing("selective")}
    assert written(8, **asked) == written(8, **asked)


def test_sharding_is_the_main_file_and_stands_alone() -> None:
    made = written(8, folder=False)
    assert list(made.files) == [NAME]
    assert next(iter(written(8).files)) == NAME
    named = {seen.module.partition(".")[0] for seen in imports(made.files[NAME], "script", set())}
    assert named == {"typing", "torch"}


def test_the_launcher_may_be_executed(tmp_path: Path) -> None:
    save(written(8), tmp_path)
    assert os.access(tmp_path / "launch" / "torchrun.sh", os.X_OK)


def calls(text: str, name: str) -> list[dict[str, Any]]:
    """Literal keyword arguments of every call of that name, in order; what is no literal is its source."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found = [node for node in nodes if ast.unparse(node.func).split(".")[-1] == name]
    found.sort(key=lambda node: node.lineno)
    return [{word.arg or "**": ast.unparse(word.value) for word in node.keywords} for node in found]


def test_it_says_with_which_torch_it_was_executed() -> None:
    docstring = ast.get_docstring(ast.parse(written(8).files[NAME])) or ""
    assert f"Executed with torch {libraries()['torch'].executed}; " in docstring


@pytest.mark.parametrize(("stage", "blocks"), [(2, "False"), (3, "True")])
def test_blocks_first_and_the_root_last(stage: int, blocks: str) -> None:
    sharded = calls(written(8, zero_stage=stage).files[NAME], "fully_shard")
    assert [call["reshard_after_forward"] for call in sharded] == [blocks, "False"]
    assert all(call["**"] == "unit" for call in sharded)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "torch.bfloat16"), ("fp16", "torch.float16")])
def test_mixed_precision_reduces_in_fp32(precision: str, dtype: str) -> None:
    (policy,) = calls(written(8, precision=precision).files[NAME], "MixedPrecisionPolicy")
    assert policy == {"param_dtype": dtype, "reduce_dtype": "torch.float32"}


def test_fp32_has_no_policy() -> None:
    assert "MixedPrecisionPolicy" not in written(8).files[NAME]


def test_groups_make_a_mesh_of_two_named_dimensions() -> None:
    text = written(8, shard_group=4).files[NAME]
    assert 'names = ("replicate", "shard")' in text
    assert "(groups, shard_group)" in text
    assert "SHARD_GROUP = 4" in text


def test_a_group_of_all_ranks_is_no_group() -> None:
    assert written(8, shard_group=8).files == written(8).files


def test_weights_are_asked_for_ahead_only_where_the_cpu_waits_in_every_layer() -> None:
    assert "set_modules_to_forward_prefetch" in written(8, model="mixtral-8x7b").files[NAME]
    assert "set_modules_to_forward_prefetch" not in written(8).files[NAME]


def test_loss_scaling_in_fp16_only() -> None:
    assert "GradScaler" in written(8, precision="fp16").files["train.py"]
    assert "GradScaler" not in written(8, precision="bf16").files["train.py"]


def test_sgd_is_not_fused_since_shards_have_no_rule_for_it() -> None:
    assert "fused" not in written(8, optimizer=Optimizer(type="sgd")).files["train.py"]
    assert "fused=True" in written(8).files["train.py"]


@pytest.mark.parametrize("each", [False, True])
def test_the_loop_says_when_gradients_are_reduced_and_why(each: bool) -> None:
    text = written(8, accumulation=4, reduce_each_micro_batch=each).files["train.py"]
    assert f"REDUCE_EACH_MICRO_BATCH = {each}" in text
    assert ("which does not fit" in text) is each
    assert "29.9 GiB" in text  # 4 bytes x 8.03e9 parameters


def test_frozen_weights_are_kept_in_the_compute_type() -> None:
    cast = "parameter.data = parameter.data.to(torch.bfloat16)"
    assert cast in written(8, precision="bf16", method=Method(type="lora")).files[NAME]
    assert cast not in written(8, precision="bf16").files[NAME]
    assert "parameter.data" not in written(8, method=Method(type="lora")).files[NAME]


def test_loss_and_checkpointing_are_written_once() -> None:
    """By train.py and sharding.py: a second copy in the model would be one that nobody calls."""
    made = written(8, checkpointing=Checkpointing("selective"))
    (model,) = [each for each in ast.walk(ast.parse(made.files["model.py"])) if getattr(each, "name", "") == "Decoder"]
    assert isinstance(model, ast.ClassDef)
    assert [each.name for each in model.body if isinstance(each, ast.FunctionDef)] == ["__init__", "forward"]
    assert "checkpoint" not in made.files["model.py"]
    assert "cross_entropy" not in made.files["model.py"]


def test_the_group_is_left_only_where_training_has_ended() -> None:
    """A rank that leaves after an exception waits for others that are in a collective: nothing is ever printed, and
    nothing restarted (pytorch/torchtitan pull request 1342)."""
    tree = ast.parse(written(8).files["train.py"])
    (main,) = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "main"]
    assert ast.unparse(main.body[-1]) == "dist.destroy_process_group()"
    assert not [each for each in ast.walk(tree) if isinstance(each, ast.Try)]


@pytest.mark.parametrize("asked", [{"loaded_by": "transformers"}, {"factory": "package.models:build"}, ON_CPU])
def test_who_waits_for_rank_0_waits_longer_than_nccl_does_by_itself(asked: dict[str, Any]) -> None:
    """70 billion random numbers, or 140 GB from a disk, take rank 0 more than NCCL's ten minutes
    (torch/distributed/constants.py:default_pg_nccl_timeout)."""
    started = calls(written(8, **asked).files["train.py"], "init_process_group")
    assert [call.get("timeout") for call in started if "device_id" in call] == [None if asked is ON_CPU else "PATIENCE"]


def test_an_illegal_plan_is_not_written() -> None:
    with pytest.raises(RefusedError, match="no ZeRO stage 1"):
        written(8, zero_stage=1)


def test_a_factory_that_the_folder_would_hide_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"model\.py"):
        written(8, factory="model:build")


def test_what_sharding_alone_cannot_say() -> None:
    told = {item.key: item.pass_as for item in written(8, accumulation=4).not_carried}
    assert list(told) == [
        "optimizer",
        "micro_batch",
        "accumulation",
        "sequence_length",
        "gradient_clipping",
        "world_size",
        "rope_theta",
    ]
    assert told["world_size"] == "torchrun --standalone --nproc-per-node 8"
