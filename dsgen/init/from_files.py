"""``--from``: a spec of what a ds_config, training arguments and a launch line already do together."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from dsgen.errors import InputError
from dsgen.facts.gpus import find_gpu
from dsgen.facts.models import find_model
from dsgen.formats.accelerate.read import read as read_accelerate
from dsgen.init.machines import NODE, machines
from dsgen.init.sources import (
    Source,
    arguments_of,
    config_named_by,
    found_beside,
    from_arguments,
    from_config,
    inline_config,
    open_source,
)
from dsgen.init.values import Findings, Given, Unknown, merged
from dsgen.target import Loader


def from_files(names: Sequence[str]) -> Findings:
    """Everything that the files fix together, and what none of them says.

    Raises InputError where a file can't be read, or is nothing that a spec can be made of.
    """
    sources = [open_source(name) for name in names]
    notes: list[str] = []
    absent: list[str] = []
    sources += _named_files(sources, notes)
    configs = [source for source in sources if source.holds == "deepspeed"]
    configs += _named_configs(sources, notes, absent)
    loader = _loader(sources, configs)
    found = [from_config(source, cast(Loader, loader)) for source in _distinct(configs)]
    found += [from_arguments(source) for source in sources if source.holds in ("arguments", "code", "launch")]
    found += machines(sources)
    together = _known_gpu(merged(*found, Findings(notes=tuple(notes))))
    return merged(together, _derived(together, sources, configs, loader, absent), _unknown(together))


def _named_files(sources: Sequence[Source], notes: list[str]) -> Iterator[Source]:
    """Configs that launch lines name, where they lie where the line says."""
    known = {Path(source.name).name for source in sources}
    for source in list(sources):
        for name in source.launch.configs if source.launch is not None else ():
            if Path(name).name in known:
                continue
            path = found_beside(name, source)
            if path is None:
                notes.append(f"{source.name}: names {name}, which is not there: give it to --from, too")
                continue
            try:
                yield open_source(path)
            except InputError as error:
                notes += [f"{source.name}: names {name}: {problem.message}" for problem in error.problems]


def _named_configs(sources: Sequence[Source], notes: list[str], absent: list[str]) -> Iterator[Source]:
    """DeepSpeed configs that arguments or accelerate name."""
    known = {Path(source.name).name for source in sources if source.holds == "deepspeed"}
    for source in sources:
        named = config_named_by(source)
        if named is None or (isinstance(named, str) and Path(named).name in known):
            continue
        if not isinstance(named, str):
            yield inline_config(named, source.name, source.folder)
            continue
        path = found_beside(named, source)
        if path is None:
            absent.append(named)
            notes.append(
                f"{source.name}: names the DeepSpeed config {named}, which is not there: give it to --from, too"
            )
            continue
        try:
            config = open_source(path)
        except InputError as error:
            notes += [f"{source.name}: names {named}: {problem.message}" for problem in error.problems]
            continue
        if config.holds == "deepspeed":
            yield config


def _distinct(configs: Sequence[Source]) -> list[Source]:
    return list({source.name: source for source in configs}.values())


def _loader(sources: Sequence[Source], configs: Sequence[Source]) -> str:
    """transformers where its arguments are there, or a config has values for it to fill in."""
    from_transformers = any(source.holds in ("arguments", "code") or _has_trainer_flags(source) for source in sources)
    is_open = any('"auto"' in source.text for source in configs)
    return "transformers" if from_transformers or is_open else "deepspeed"


def _has_trainer_flags(source: Source) -> bool:
    given = arguments_of(source)[0] if source.holds == "launch" else {}
    return "per_device_train_batch_size" in given or "output_dir" in given


def _known_gpu(found: Findings) -> Findings:
    """A scheduler's name of a GPU need not be one of ours."""
    name = found.get("hardware", "gpu")
    if name is None or find_gpu(str(name)) is not None:
        return found
    given = next(each for each in found.given if each.path == ("hardware", "gpu"))
    why = f"{given.source} says {name}, which is no preset (dsgen show gpus)"
    return Findings(
        given=tuple(each for each in found.given if each is not given),
        unknown=(*found.unknown, Unknown(("hardware", "gpu"), "h100-80gb-sxm", why, True)),
        notes=found.notes,
        sources=found.sources,
    )


def _derived(
    found: Findings, sources: Sequence[Source], configs: Sequence[Source], loader: str, absent: Sequence[str]
) -> Findings:
    """Who loads what, and what follows from the batch sizes."""
    given: list[Given] = []
    notes: list[str] = []
    unknown: list[Unknown] = []
    is_fsdp = found.get("target", "format") == "fsdp2" and not configs
    if not is_fsdp and loader == "transformers":
        given.append(Given(("target", "loaded_by"), loader, "the files are the Trainer's"))
    per_node, nodes = found.get("hardware", "gpus_per_node"), found.get("hardware", "nodes")
    hybrid = any(source.holds == "accelerate" and read_accelerate(source.value).hybrid for source in sources)
    if hybrid and per_node and (nodes or 1) > 1:
        given.append(Given(("want", "shard_group"), per_node, "HYBRID_SHARD: every node has all of the states"))
    shards = configs or is_fsdp or found.get("want", "zero_stage") is not None
    if not shards and absent:
        unknown.append(Unknown(("want", "zero_stage"), "3", f"{absent[0]} would say it, and is not there"))
    elif not shards and any(source.holds != "launch" for source in sources):
        why = "no file shards anything: plain data parallelism is stage 0; left out, dsgen decides"
        unknown.append(Unknown(("want", "zero_stage"), "0", why))
    batch = [found.get("training", "global_batch"), found.get("want", "micro_batch"), found.get("want", "accumulation")]
    world = (per_node or 0) * (nodes or 1)
    if all(batch) and world and batch[0] != batch[1] * batch[2] * world:
        notes.append(
            f"train_batch_size {batch[0]} is not {batch[1]} x {batch[2]} x {world} processes: DeepSpeed refuses that"
        )
    elif all(batch) and not world and batch[0] % (batch[1] * batch[2]) == 0:
        ranks = batch[0] // (batch[1] * batch[2])
        gpus = max(size for size in range(1, NODE + 1) if ranks % size == 0)
        why = f"train_batch_size {batch[0]} / {batch[1]} / {batch[2]}"
        given += [
            Given(("hardware", "gpus_per_node"), gpus, why),
            Given(("hardware", "nodes"), ranks // gpus, why),
        ]
    return Findings(given=tuple(given), notes=tuple(notes), unknown=tuple(unknown))


def _unknown(found: Findings) -> Findings:
    """What a plan rests on and no file says."""
    missing = list(_missing(found))
    notes = []
    name = found.get("model")
    if isinstance(name, str) and find_model(name) is None and not _is_folder(name):
        notes.append(
            f"model {name}: dsgen has no such preset: give a folder with its config.json, or {{parameters: 7B}}"
        )
    kind = found.get("training", "scheduler", "type")
    if kind in ("linear", "cosine") and found.get("training", "scheduler", "total_steps") is None:
        why = "optimizer steps of the whole training, which the data decides"
        missing.append(Unknown(("training", "scheduler", "total_steps"), "10000", why))
    return Findings(unknown=tuple(missing), notes=tuple(notes))


def _missing(found: Findings) -> Iterator[Unknown]:
    wanted = (
        Unknown(("model",), "llama-3.1-8b", "a preset (dsgen show models), or a folder with config.json", True),
        Unknown(("hardware", "gpu"), "h100-80gb-sxm", "which GPU (dsgen show gpus), or a node preset", True),
        Unknown(("hardware", "gpus_per_node"), "8", "GPUs of a node; left out, 1"),
        Unknown(("hardware", "host_memory"), "1TiB", "memory of a node; left out, it is not checked"),
        Unknown(("training", "sequence_length"), "4096", "tokens per sequence; left out, the model's, at most 4096"),
        Unknown(("want", "micro_batch"), "1", "sequences per GPU in one pass; left out, dsgen decides"),
        Unknown(("want", "checkpointing"), "full", "of activations; left out, dsgen decides"),
    )
    for each in wanted:
        if found.get(*each.path) is None:
            yield each


def _is_folder(name: str) -> bool:
    try:
        return (Path(name) / "config.json").is_file() or Path(name).is_file()
    except (OSError, ValueError):
        return False
