"""When a ledger fits, and what is said when it does not."""

from worlds import GIB, LLAMA_2_7B, hardware, ledger

from dsgen.memory.fit import fit

FOUND = ledger(LLAMA_2_7B, zero_stage=3)


def test_fits_by_the_upper_end_of_the_band() -> None:
    high = FOUND.device.high
    assert fit(FOUND, hardware(memory_budget=high)).fits
    verdict = fit(FOUND, hardware(memory_budget=high - 1))
    assert not verdict.fits
    [overflow] = verdict.overflows
    assert (overflow.place, overflow.needed, overflow.available, overflow.by) == ("device", high, high - 1, 1)
    assert overflow.moment == FOUND.device.peak_moment.name
    assert overflow.largest_part_bytes == max(FOUND.device.peak_moment.parts.values())


def test_tight_with_less_than_a_tenth_to_spare() -> None:
    high = FOUND.device.high
    assert fit(FOUND, hardware(memory_budget=high)).tight
    assert not fit(FOUND, hardware(memory_budget=int(high / 0.89))).tight
    assert not fit(FOUND, hardware(memory_budget=high - 1)).tight


def test_unknown_places_are_not_checked() -> None:
    assert fit(FOUND, hardware()).overflows == ()


def test_host_keeps_a_reserve_for_the_system() -> None:
    needed = sum(FOUND.host_per_node.values())
    assert fit(FOUND, hardware(host_memory=int(needed / 0.94))).fits
    [overflow] = fit(FOUND, hardware(host_memory=int(needed / 0.96))).overflows
    assert overflow.place == "host"
    assert overflow.largest_part in FOUND.host_per_node
    assert overflow.moment is None


def test_disk_is_of_all_nodes() -> None:
    needed = sum(FOUND.disk.values())
    assert [overflow.place for overflow in fit(FOUND, hardware(disk=needed - 1)).overflows] == ["disk"]
    assert fit(FOUND, hardware(disk=needed // 2 + 1, nodes=2)).fits


def test_nvme() -> None:
    found = ledger(LLAMA_2_7B, zero_stage=3, offload_optimizer="nvme")
    needed = sum(found.nvme_per_node.values())
    assert [overflow.place for overflow in fit(found, hardware(nvme=needed - 1)).overflows] == ["nvme"]


def test_every_place_that_overflows_is_named() -> None:
    verdict = fit(FOUND, hardware(memory_budget=GIB, host_memory=GIB, disk=GIB))
    assert [overflow.place for overflow in verdict.overflows] == ["device", "host", "disk"]
