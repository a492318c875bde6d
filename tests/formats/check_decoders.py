"""Reads a JSON list of jobs (name, source, tensors, trainable, ways) from standard input. Builds each decoder at its
real size on the meta device, and at tiny size runs it forwards and backwards in these ways of checkpointing."""

import json
import sys
import types

import torch


def complaints(job: dict) -> list[str]:
    module = types.ModuleType("generated")
    sys.modules["generated"] = module
    exec(compile(job["source"], job["name"], "exec"), module.__dict__)
    with torch.device("meta"):
        model = module.Decoder(module.Config())
    found = []
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    if shapes != job["tensors"]:
        names = sorted(name for name in {*shapes, *job["tensors"]} if shapes.get(name) != job["tensors"].get(name))
        found.append(f"tensors differ: {[(name, shapes.get(name), job['tensors'].get(name)) for name in names[:6]]}")
    trainable = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    if trainable != set(job["trainable"]):
        found.append(f"trained differs: {sorted(trainable ^ set(job['trainable']))[:6]}")
    results = [trained(module, kind) for kind in job["ways"]]
    loss, norm, without = results[0]
    if without:
        found.append(f"no gradient: {without}")
    if not 4 < loss < 8:  # about ln 256 at the start
        found.append(f"loss {loss}")
    if any(abs(other[0] - loss) > 1e-5 or abs(other[1] - norm) > 1e-4 * norm for other in results[1:]):
        found.append(f"checkpointing changes the result: {dict(zip(job['ways'], results, strict=True))}")
    return found


def trained(module, kind: str) -> tuple[float, float, list[str]]:
    torch.manual_seed(0)
    model = module.Decoder(module.Config.tiny())
    model.enable_checkpointing(kind, 2)
    tokens = torch.randint(256, (2, 40), generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)  # dropout
    loss = model(tokens, tokens)
    loss.backward()
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    without = [name for name, parameter in parameters.items() if parameter.grad is None]
    norm = sum(parameter.grad.norm().item() for parameter in parameters.values() if parameter.grad is not None)
    return loss.item(), norm, without


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("\n" + json.dumps({job["name"]: complaints(job) for job in json.load(sys.stdin)}))  # noqa: T201
