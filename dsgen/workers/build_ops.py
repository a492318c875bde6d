"""Builds DeepSpeed's C++ extensions in one process, so that the ranks find them ready."""

import time

from dsgen.workers.wire import open_worker


def main() -> None:
    """Writes ``building`` and ``built`` events, one pair per op."""
    request, events = open_worker()
    try:
        events.enter("import deepspeed")
        from deepspeed.accelerator import get_accelerator

        for op, builder in request["ops"].items():
            events.enter(f"build {op}")
            start = time.monotonic()
            get_accelerator().create_op_builder(builder).load()
            events.write("built", op=op, seconds=time.monotonic() - start)
    except Exception as error:
        events.fail(error)


if __name__ == "__main__":
    main()
