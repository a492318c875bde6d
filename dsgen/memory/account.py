"""The ledger of one plan."""

from dataclasses import replace

from dsgen.hardware import Hardware
from dsgen.memory import framework, residents
from dsgen.memory.band import band
from dsgen.memory.cached import cached
from dsgen.memory.classic import states_classic
from dsgen.memory.host import host_per_node
from dsgen.memory.ledger import DeviceAccount, Ledger, Moment
from dsgen.memory.moments import moments
from dsgen.memory.notes import notes
from dsgen.memory.setting import Setting, setting_of
from dsgen.memory.storage import disk, nvme_per_node
from dsgen.plan import Plan
from dsgen.shapes.values import Shapes
from dsgen.spec.values import Training
from dsgen.target import Target


def account(
    plan: Plan, shapes: Shapes, training: Training, sequence_length: int, hardware: Hardware, target: Target
) -> Ledger:
    """Bytes of ``plan`` by part, place and moment.

    shapes: of the model as it is trained (adapters and what is frozen included).
    """
    setting = setting_of(plan, shapes, training, sequence_length, hardware, target)
    return Ledger(
        device=_device(setting),
        host_per_node=host_per_node(setting),
        nvme_per_node=nvme_per_node(setting),
        disk=disk(setting),
        states_classic=states_classic(setting),
        notes=notes(setting),
    )


def _device(setting: Setting) -> DeviceAccount:
    models, programs = residents.models(setting), residents.programs(setting)
    tensors = [_beside(moment, models) for moment in moments(setting)]
    allocated = max(moment.total for moment in tensors) + framework.workspace()
    # The allocator keeps what the largest moment needed, so its slack is there at every moment.
    slack = framework.slack(allocated)
    # What other processes hold, torch neither allocates nor reserves here.
    outside = framework.outside_allocator(setting) + programs
    needed = allocated + slack
    wanted = max(moment.total + cached(setting, moment) for moment in tensors) + framework.workspace()
    # What it caches beyond the need is bounded by the card.
    reserved = max(needed, min(wanted, setting.hardware.gpu.memory - outside))
    no_tensor = outside - programs + framework.workspace() + slack
    account = DeviceAccount(
        moments=tuple(
            Moment(moment.name, {**_beside(moment, programs).parts, "framework": no_tensor}) for moment in tensors
        ),
        allocated=allocated,
        reserved=reserved,
        whole_gpu=reserved + outside,
        low=0,
        high=0,
    )
    # What a program reserves is a promise of the spec, not an estimate.
    stated = {"residents": account.peak_moment.parts.get("residents", 0) - programs}
    width = band({**account.peak_moment.parts, **stated})  # type: ignore[dict-item]
    return replace(account, low=account.peak - width, high=account.peak + width)


def _beside(moment: Moment, size: int) -> Moment:
    """The moment with ``size`` bytes of residents more."""
    if not size:
        return moment
    return Moment(moment.name, {**moment.parts, "residents": moment.parts.get("residents", 0) + size})
