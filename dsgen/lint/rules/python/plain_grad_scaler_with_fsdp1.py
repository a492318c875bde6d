from collections.abc import Iterator

from dsgen.lint.mark import Mark, error
from dsgen.lint.python.models import wraps_by
from dsgen.lint.python.names import calls_of
from dsgen.lint.python.origins import origins
from dsgen.lint.python.read import PythonFile
from dsgen.lint.python.roles import is_always_on, optimizer_steps
from dsgen.lint.python.sharding import strategy
from dsgen.lint.rule import rule
from dsgen.lint.target import LintTarget


@rule(
    "TC402",
    kinds=("python",),
    source="torch/distributed/fsdp/sharded_grad_scaler.py; tests/conformance/test_training_claims.py",
)
def plain_grad_scaler_with_fsdp1(file: PythonFile, _target: LintTarget) -> Iterator[Mark]:
    """``torch.amp.GradScaler`` with an FSDP1 model: each rank looks for infinities in its own shard only.

    One rank skips the step, another one makes it, and their scales part. FSDP1 needs ``ShardedGradScaler``; FSDP2 works
    with the plain one; bf16 needs none.

    ```python bad
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    model = FSDP(Net(), auto_wrap_policy=policy)
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(batch).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ```python good
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
    model = FSDP(Net(), auto_wrap_policy=policy)
    scaler = ShardedGradScaler()
    scaler.scale(model(batch).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    ```
    """
    wraps = wraps_by(file, "fsdp1")
    if not wraps or wraps_by(file, "ddp") or any(strategy(file, wrap) in ("NO_SHARD", "?") for wrap in wraps):
        return
    steps = [u for u in optimizer_steps(file) if u.what == "scaler"]
    used = {o.node for u in steps for o in origins(file, u.call.func.value)}  # type: ignore[attr-defined]
    for call in calls_of(file, "torch.amp.GradScaler"):
        if call in used and is_always_on(file, call):
            yield error(
                call,
                "a plain GradScaler looks for infinities in this rank's shard of an FSDP1 model only: ranks decide "
                "differently, and drift apart",
                help="use torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler, or bf16, which needs no scaler",
            )
