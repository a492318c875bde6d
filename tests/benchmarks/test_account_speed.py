"""What one ledger costs, as a ratio within one run: the planner asks for thousands of them.

Measured is processor time, the least of many tries. The unit is what the standard library takes to parse a fixed JSON
text of 100,000 numbers, some 6 ms, so that the machine's speed cancels out.
"""

from processor_time import least, parse

from dsgen.memory.account import account
from dsgen.planner.job import decide_spec
from dsgen.spec.read import spec_from_text

SPEC = (
    "{model: llama-2-7b, hardware: {gpu: a100, gpus_per_node: 8}, training: {sequence_length: 4096, global_batch: 64}}"
)


def test_one_account_is_a_small_part_of_a_parse() -> None:
    job = decide_spec(spec_from_text(SPEC))
    one = least(
        lambda: account(
            job.decision.chosen.plan, job.shapes, job.training, job.sequence_length, job.hardware, job.target
        ),
        tries=30,
    )
    unit = parse()
    # A fifth of a millisecond where the parse takes six.
    assert one < unit / 30, f"{one * 1e3:.3f} ms, the parse {unit * 1e3:.3f} ms"
