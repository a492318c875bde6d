"""The tensors of a run's model: by name where the table of models has it and the sizes agree, else by the sizes."""

from collections.abc import Iterator
from dataclasses import replace

from dsgen.facts.models import find_model
from dsgen.score.runs import Run
from dsgen.score.skipped import SkippedError
from dsgen.shapes.from_row import PLANNED, architecture
from dsgen.shapes.tensors import MOST_LAYERS, build
from dsgen.shapes.values import Architecture, Shapes

_TOLERANCE = 0.02
"""A stated number of parameters may differ from that of the sizes by this share: sources round, count buffers or
leave norms out."""
_NEEDED = ("hidden", "layers", "heads", "intermediate", "vocab")


def shapes_of(run: Run) -> Shapes:
    """All weights trained; raises SkippedError where the row leaves the sizes open."""
    run = _completed(run)
    missing = [name for name in _NEEDED if run.counts[name] is None]
    if missing:
        unknown = f"{run.texts['model']!r} is no model of dsgen's table, and " if len(missing) == len(_NEEDED) else ""
        raise SkippedError(f"{unknown}the row says nothing of {', '.join(missing)}")
    if (run.counts["layers"] or 0) > MOST_LAYERS:
        raise SkippedError(f"{run.counts['layers']} layers are more than {MOST_LAYERS}")
    made = [build(run.texts["model"], arch) for arch in _candidates(run)]
    stated = run.numbers["params_b"]
    if stated is None:
        return made[0]
    best = min(made, key=lambda shapes: abs(shapes.parameters / (stated * 1e9) - 1))
    off = best.parameters / (stated * 1e9) - 1
    if abs(off) > _TOLERANCE:
        raise SkippedError(f"the sizes make {best.parameters / 1e9:.3f}B parameters, the row says {stated:g}B")
    return best


def _completed(run: Run) -> Run:
    """The run with what its cells leave open taken from the model of that name, unless they speak of another one."""
    model = find_model(run.texts["model"])
    if model is None or model.kind not in PLANNED:
        return run
    known = {name: getattr(model, name) for name in (*_NEEDED, "kv_heads")}
    if any(run.counts[name] not in (None, known[name]) for name in ("hidden", "layers", "heads", "intermediate")):
        return run
    counts = {name: known.get(name) if count is None else count for name, count in run.counts.items()}
    tied = run.texts["tied_emb"] or ("yes" if model.tied else "no")
    return replace(run, counts=counts, texts={**run.texts, "tied_emb": tied})


def _candidates(run: Run) -> Iterator[Architecture]:
    """What the row may mean, likeliest first: the model of that name, or one of its kind with or without biases."""
    sizes = {name: run.counts[name] or 0 for name in (*_NEEDED, "kv_heads")}
    tied = run.texts["tied_emb"] == "yes"
    vocab, kv_heads = sizes["vocab"], sizes["kv_heads"] or sizes["heads"]
    for name in (run.texts["model"], run.texts["model"].partition("(")[0]):
        model = find_model(name)
        known = model and (model.hidden, model.layers, model.intermediate, model.heads)
        if model and known == (sizes["hidden"], sizes["layers"], sizes["intermediate"], sizes["heads"]):
            positions = max(model.max_positions or 0, run.counts["seq_len"] or 0) or None
            yield replace(architecture(model), vocab=vocab, tied=tied, kv_heads=kv_heads, max_positions=positions)
            return
    gated = run.texts["mlp"] in ("swiglu", "geglu")
    base = Architecture(
        family="llama" if gated else "gpt2",
        hf_architecture="LlamaForCausalLM" if gated else "",
        layer_class="",
        layers=sizes["layers"],
        hidden=sizes["hidden"],
        heads=sizes["heads"],
        kv_heads=kv_heads,
        head_dim=sizes["hidden"] // sizes["heads"],
        intermediate=sizes["intermediate"],
        vocab=vocab,
        tied=tied,
        mlp=run.texts["mlp"] or "swiglu",
        norm="rmsnorm" if gated else "layernorm",
        max_positions=run.counts["seq_len"],
    )
    if gated:
        yield base
        yield replace(base, attention_bias="qkv")
        return
    if run.texts["kind"] == "encoder_ft":
        base = replace(base, hf_architecture="BertForSequenceClassification")
    biased = replace(base, attention_bias="all", mlp_bias=True, positional="learned")
    yield biased
    yield replace(biased, positional="rope")
    yield base
    yield replace(base, positional="learned")
