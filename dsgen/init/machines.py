"""How many nodes with how many GPUs: what launch lines, hostfiles and accelerate's configs say of it."""

from collections.abc import Iterator, Sequence

from dsgen.formats.accelerate.read import read as read_accelerate
from dsgen.formats.launch.read import read_hostfile
from dsgen.init.sources import Source, found_beside, from_said, text_of
from dsgen.init.values import Findings, Given, Unknown

NODE = 8
"""Most GPUs of a node where only the number of processes is known."""


def machines(sources: Sequence[Source]) -> Iterator[Findings]:
    """Nodes and GPUs, by launch lines and accelerate's configs."""
    for source in sources:
        if source.launch is not None:
            yield from_said(source.launch.said, source)
            yield _of_hostfile(source)
            yield _of_world(source.launch.world_size, source, "--num_processes")
        elif source.holds == "accelerate":
            read = read_accelerate(source.value)
            yield from_said(read.said, source)
            yield _of_world(read.world_size, source, "num_processes")


def _of_hostfile(source: Source) -> Findings:
    """What the launch line does not say of the nodes, where the file lies that does."""
    name = source.launch.hostfile if source.launch is not None else None
    if name is None:
        return Findings()
    path = found_beside(name, source)
    if path is None:
        why = f"{source.name}: --hostfile {name}, which is not there, says it"
        return Findings(unknown=(Unknown(("hardware", "nodes"), "2", why),))
    known = source.launch.said if source.launch is not None else ()
    said = [each for each in read_hostfile(text_of(path)) if not any(each.path == old.path for old in known)]
    return from_said(said, source)


def _of_world(world: int | None, source: Source, key: str) -> Findings:
    """GPUs per node from processes in all: the nodes that the source says, else as few as there can be."""
    if world is None:
        return Findings()
    said = source.launch.said if source.launch is not None else read_accelerate(source.value).said
    nodes = next((each.value for each in said if each.path == ("hardware", "nodes")), None)
    if nodes is None:
        gpus = max(size for size in range(1, NODE + 1) if world % size == 0)
        nodes = world // gpus
    elif world % nodes:
        return Findings(notes=(f"{source.name}: {world} processes are not shared equally by {nodes} nodes",))
    why = f"{source.name}: {key} {world}" + (f" on {nodes} nodes" if nodes > 1 else "")
    return Findings(
        given=(
            Given(("hardware", "gpus_per_node"), world // nodes, why),
            Given(("hardware", "nodes"), nodes, why),
        )
    )
