"""What one step time costs, as a ratio within one run: the planner asks for thousands of them.

Measured is processor time, the least of many tries; the unit is the standard library's parse of a fixed JSON text of
100,000 numbers, some 6 ms, so that the machine's speed cancels out.
"""

from processor_time import least, parse

from dsgen.planner.job import decide_spec
from dsgen.spec.read import spec_from_text
from dsgen.steptime.account import step_time

SPEC = (
    "{model: llama-2-7b, hardware: {gpu: a100, gpus_per_node: 8}, training: {sequence_length: 4096, global_batch: 64}}"
)


def test_one_step_time_is_a_small_part_of_a_parse() -> None:
    job = decide_spec(spec_from_text(SPEC))
    plan = job.decision.chosen.plan
    one = least(
        lambda: step_time(plan, job.shapes, job.training, job.sequence_length, job.hardware, job.target), tries=50
    )
    unit = parse()
    # Half a millisecond where the parse takes six.
    assert one < unit / 12, f"{one * 1e3:.3f} ms, the parse {unit * 1e3:.3f} ms"
