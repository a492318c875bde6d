"""Reads a JSON list of jobs from standard input. Saves a class of transformers with random weights, edits the folder as
the job says, and lets the generated pretrained.py read it; prints for each the largest difference of the logits, or
why it was refused."""

import json
import sys
import tempfile
import types
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

LENGTH = 48  # longer than the tiny window and the length from which RoPE is stretched


def saved(job: dict, folder: Path) -> PreTrainedModel:
    torch.manual_seed(0)
    config = AutoConfig.for_model(job["model_type"], **job["config"], use_cache=False)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder, max_shard_size=job.get("max_shard_size", "1GB"))
    return model


def edit(job: dict, folder: Path) -> None:
    file = folder / "config.json"
    config = {**json.loads(file.read_text("utf-8")), **job.get("edit_config", {})}
    file.write_text(json.dumps({key: value for key, value in config.items() if value != "absent"}), "utf-8")
    shards = folder / "model.safetensors"
    if not shards.is_file():
        return
    tensors = load_file(shards)
    for name, shape in job.get("edit_tensors", {}).items():
        if shape is None:
            del tensors[name]
        elif isinstance(shape, str):
            tensors[name] = tensors[shape].clone()
        else:
            tensors[name] = torch.ones(shape)
    save_file(tensors, shards)
    for name in job.get("remove", ()):
        (folder / name).unlink()


def answer(job: dict) -> dict:
    for name in ("model", "pretrained"):
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(job["files"][f"{name}.py"], name, "exec"), module.__dict__)
    model, pretrained = sys.modules["model"], sys.modules["pretrained"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(job.get("keep", place))
        theirs = saved(job, folder)
        edit(job, folder)
        try:
            config, places = pretrained.published(folder, model.Config.tiny())
        except SystemExit as error:
            return {"error": str(error).replace(place, "FOLDER")}
        ours = model.Decoder(config).eval()
        wanted = {name for name, _ in ours.named_parameters() if "lora_" not in name}
        assert set(places) == wanted, job["name"]
        with torch.no_grad():
            for name, parameter in ours.named_parameters():
                if name in places:
                    parameter.copy_(pretrained.read(places[name]))
            tokens = torch.tensor(job["tokens"]) if "tokens" in job else torch.randint(config.vocab_size, (2, LENGTH))
            out = theirs(input_ids=tokens, labels=tokens)
            difference = (ours(tokens) - out.logits).abs().max() / out.logits.abs().max()
            return {"difference": difference.item(), "loss": out.loss.item()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("\n" + json.dumps({job["name"]: answer(job) for job in json.load(sys.stdin)}))  # noqa: T201
