"""One rank: does each job of the request in turn, in one process group.

The first failure ends the process (the other ranks may hang in a collective by then); whoever started it
goes on with the rest. An error of the libraries never reaches the next job this way.
"""

import gc

from dsgen.workers.rank import join
from dsgen.workers.wire import open_worker


def main() -> None:
    """Writes the events of each job and ``done`` at its end, or one ``error``."""
    request, events = open_worker()
    try:
        rank = join(request, events)
        from dsgen.workers import deepspeed_steps, fsdp2_steps, trial

        jobs = {"deepspeed": deepspeed_steps.run, "fsdp2": fsdp2_steps.run, "trial": trial.run}
        for index, job in enumerate(request["jobs"]):
            events.case = index
            result = jobs[job["kind"]](rank, job)
            gc.collect()
            events.write("done", **result)
        events.case = None
        events.enter("leave the process group")
        rank.torch.distributed.barrier()
        rank.torch.distributed.destroy_process_group()
    except Exception as error:
        events.fail(error)


if __name__ == "__main__":
    main()
