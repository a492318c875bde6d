"""Compute type: the fp16 and bf16 sections together."""

from collections.abc import Iterator, Mapping

from dsgen.formats.deepspeed.read import values as to
from dsgen.formats.deepspeed.read.walk import Entry
from dsgen.reading import LeftOut, Said

SWITCHES = ("bf16.enabled", "fp16.enabled")


def read_precision(found: Mapping[str, Entry], *, alone: bool) -> Iterator[Said | LeftOut]:
    """bf16, fp16, or fp32 where both are off; open where a switch is filled in by whoever loads the file.

    alone: DeepSpeed reads the file as it is. The Trainer and accelerate add a section for their own mixed_precision
    (accelerate/utils/dataclasses.py:DeepSpeedPlugin.set_mixed_precision), so a file without one says nothing.
    """
    on: list[tuple[str, Entry]] = []
    is_open = not alone and not any(key in found for key in SWITCHES)
    for key in SWITCHES:
        entry = found.get(key)
        if entry is None:
            continue
        if entry.filled:
            is_open = True
            continue
        try:
            if to.boolean(entry.value):
                on.append((key.partition(".")[0], entry))
        except ValueError as error:
            yield LeftOut(key, entry.value, str(error))
    if len(on) > 1:
        yield LeftOut("fp16.enabled", True, "bf16 is on, too: DeepSpeed refuses both at once")
    if on:
        yield Said(("training", "precision"), on[0][0], on[0][1].at)
    elif not is_open:
        yield Said(("training", "precision"), "fp32", None, "neither bf16 nor fp16 is on")
