"""``--pin``: the decision as wishes, and the edits that write them into a spec without touching anything else."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from dsgen.documents.document import DocumentError, Node
from dsgen.documents.edits import TextEdit, apply
from dsgen.documents.yaml_text import read_yaml
from dsgen.errors import InputError, Place
from dsgen.plan import Plan
from dsgen.planner.job import Job

Value = str | int | bool | Mapping[str, "Value"]


def pinned(job: Job) -> dict[tuple[str, str], Value]:
    """(section, key) to value: with these in the spec a later plan can only be this one."""
    plan = job.decision.chosen.plan
    found: dict[tuple[str, str], Value] = {("want", key): value for key, value in _wishes(plan, job)}
    if job.training.precision == "auto":
        found["training", "precision"] = plan.precision
    if job.training.longest:
        found["training", "sequence_length"] = job.sequence_length
    return found


def _wishes(plan: Plan, job: Job) -> Iterator[tuple[str, Value]]:
    """In the order in which a person decides."""
    kind = plan.checkpointing
    yield "zero_stage", plan.zero_stage
    yield "checkpointing", {"every": kind.every} if kind.kind == "every" else kind.kind
    yield "micro_batch", plan.micro_batch
    yield "accumulation", plan.accumulation
    yield "offload_optimizer", plan.offload_optimizer
    yield "offload_parameters", plan.offload_parameters
    if plan.shard_group is not None:
        yield "shard_group", plan.shard_group
    if job.target.format == "fsdp2":
        # With one micro-batch there is nothing to choose.
        yield "reduce_each_micro_batch", plan.reduce_each_micro_batch
        return
    yield "tensor_parallel", plan.tensor_parallel
    yield "ulysses", plan.ulysses
    if plan.zero_stage == 3:
        yield "zeropp", asdict(plan.zeropp)
    yield "gradient_precision", plan.gradient_precision or plan.precision
    if plan.zero_stage:
        yield "overlap_comm", plan.overlaps
    yield "buckets", asdict(plan.buckets)
    if "nvme" in (plan.offload_optimizer, plan.offload_parameters):
        yield "swap", asdict(plan.swap)


def with_pins(text: str, job: Job, file: str) -> str:
    """The spec's text with the decision in it: comments, order, indentation and line ends stay."""
    try:
        root = read_yaml(text)
    except DocumentError as error:
        raise InputError.at(f"can't be edited: {error.message}", Place(file)) from None
    pins = pinned(job)
    edits: list[TextEdit] = []
    for section in dict.fromkeys(section for section, _ in pins):
        values = {key: value for (of, key), value in pins.items() if of == section}
        edits += _section(text, root, section, values)
    return apply(text, edits)


def _section(text: str, root: Node, section: str, values: dict[str, Value]) -> list[TextEdit]:
    """Values into a section of the spec, which is made where it is missing."""
    member = next((each for each in root.members or () if each.key == section), None)
    if member is None:
        return [_new_section(text, root, section, values)]
    node = member.node
    if node.members is None:  # null, written or not
        written = (
            f" {_flow(values)}"
            if text[member.key_end : node.start].strip(" \t") == ":" and node.start == node.end
            else _flow(values)
        )
        return [(node.start, node.end, written)]
    there = {each.key: each.node for each in node.members}
    edits = [
        (there[key].start, _end(text, there[key]), _flow(value))
        for key, value in values.items()
        if key in there and not _same(there[key].value, value)
    ]
    missing = {key: value for key, value in values.items() if key not in there}
    if not missing:
        return edits
    if text[node.start : node.start + 1] == "{":
        return [*edits, _into_flow(text, node, missing)]
    first, last = node.members[0], node.members[-1]
    line_start = _line_start(text, first.key_start)
    indent = text[line_start : first.key_start]
    at = _line_end(text, _end(text, last.node))
    lines = "".join(f"{_line_break(text)}{indent}{key}: {_flow(value)}" for key, value in missing.items())
    return [*edits, (at, at, lines)]


def _new_section(text: str, root: Node, section: str, values: dict[str, Value]) -> TextEdit:
    """After everything else; inside the braces of a spec that is one flow mapping."""
    if text[root.start : root.start + 1] == "{":
        return _into_flow(text, root, {section: values})
    end = _line_break(text)
    body = text.rstrip()
    lines = f"{section}:{end}" + "".join(f"  {key}: {_flow(value)}{end}" for key, value in values.items())
    # What stands after the last key (a comment, blank lines, the document's end mark) stays before it.
    marker = body.endswith(("\n...", "\r..."))
    at = len(body) - 3 if marker else len(text)
    joint = "" if at == 0 or text[at - 1] in "\r\n" else end
    return (at, at, f"{joint}{lines}")


def _into_flow(text: str, node: Node, values: Mapping[str, Value]) -> TextEdit:
    """After the last value, so before a comment behind it; a comma that ends the mapping stays at its end."""
    pairs = ", ".join(f"{key}: {_flow(value)}" for key, value in values.items())
    if node.members:
        at = _end(text, node.members[-1].node)
        return (at, at, f", {pairs}")
    at = node.start + 1
    return (at, at, pairs + " " * (text[at : at + 1] == "#"))


def _flow(value: Value) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _same(there: object, value: Value) -> bool:
    """Whether the text that stands there says the value already: numbers may be spelled otherwise."""
    if isinstance(value, Mapping):
        return (
            isinstance(there, dict) and there.keys() == value.keys() and all(_same(there[k], value[k]) for k in value)
        )
    if isinstance(value, bool) or isinstance(there, bool):
        return there is value
    if isinstance(value, int):
        try:
            return float(str(there)) == value
        except ValueError:
            return False
    return there == value


def _end(text: str, node: Node) -> int:
    """Without the blanks and comments that a block's end takes along."""
    if node.members and text[node.start : node.start + 1] != "{":
        return _end(text, node.members[-1].node)
    if node.items and text[node.start : node.start + 1] != "[":
        return _end(text, node.items[-1])
    return node.end


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> int:
    """Before the break of the line, after a comment that stands behind the value."""
    while at < len(text) and text[at] not in "\r\n":
        at += 1
    return at


def _line_break(text: str) -> str:
    for sign in ("\r\n", "\n", "\r"):
        if sign in text:
            return sign
    return "\n"
