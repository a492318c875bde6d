"""Names become machines; what is written beside a name overrides it; the budget has its reason."""

import pytest

from dsgen.errors import InputError, Place, RefusedError
from dsgen.facts.constants import constant
from dsgen.facts.gpus import find_gpu, gpus
from dsgen.facts.nodes import nodes
from dsgen.hardware import Hardware, hardware_of
from dsgen.spec.read import spec_from_text
from dsgen.units import GIB


def hardware(written: str, rest: str = "") -> Hardware:
    return hardware_of(spec_from_text(f"model: gpt2\nhardware: {written}\n{rest}\n", "s.yaml"))


def test_a_node_gives_everything() -> None:
    found = hardware("{node: p4de.24xlarge, nodes: 2}")
    assert found.gpu is find_gpu("a100-80gb-sxm")
    assert (found.gpus_per_node, found.nodes, found.world_size) == (8, 2, 16)
    assert (found.host_memory, found.nvme, found.nvme_path) == (1152 * GIB, 8 * 10**12, None)
    assert (found.inter_node_gbit_s, found.rdma) == (400.0, None)
    assert found.disk is None
    assert found.notes == ()


def test_what_is_written_overrides_the_node() -> None:
    found = hardware(
        "{node: p4de.24xlarge, gpu: {memory: 79GiB, bf16_tflops: 250}, gpus_per_node: 4, host_memory: 1TiB, "
        "interconnect: {gbit_s: 100}, nvme: {path: /nvme, size: 7TB}, disk: 2TB}"
    )
    assert (found.gpu.memory, found.gpu.bf16_tflops) == (79 * GIB, 250.0)
    # What the user leaves out is the preset's.
    assert (found.gpu.name, found.gpu.fp16_tflops, found.gpu.link_gb_s) == ("a100-80gb-sxm", 312.0, 300.0)
    assert (found.gpus_per_node, found.host_memory, found.inter_node_gbit_s) == (4, 2**40, 100.0)
    assert (found.nvme_path, found.nvme, found.disk) == ("/nvme", 7 * 10**12, 2 * 10**12)


def test_one_figure_of_the_network_leaves_the_other_to_the_node() -> None:
    assert hardware("{node: dgx-h100, interconnect: {gbit_s: 400}}").rdma is True
    found = hardware("{node: dgx-h100, interconnect: {rdma: false}}")
    assert (found.inter_node_gbit_s, found.rdma) == (3200.0, False)


def test_nvme_of_a_node() -> None:
    assert hardware("{node: dgx-h100, nvme: {path: /raid}}").nvme == 30_720_000_000_000
    # p3.16xlarge has no local drives: the folder is on some other disk, of unknown size.
    found = hardware("{node: p3.16xlarge, nvme: {path: /ebs}}")
    assert (found.nvme_path, found.nvme) == ("/ebs", None)


def test_a_gpu_alone_is_one_gpu_and_says_so() -> None:
    found = hardware("{gpu: H100}")
    assert found.gpu is gpus()["h100-80gb-sxm"]
    assert (found.gpus_per_node, found.nodes, found.world_size) == (1, 1, 1)
    assert (found.host_memory, found.nvme, found.inter_node_gbit_s, found.rdma) == (None, None, None, None)
    assert found.notes == ("The spec names a GPU but not gpus_per_node: one GPU per node is assumed.",)
    assert hardware("{gpu: h100, gpus_per_node: 8}").notes == ()


def test_a_gpu_by_its_numbers() -> None:
    found = hardware(
        "{gpu: {memory: 80GiB, bf16_tflops: 312, fp16_tflops: 300, fp32_tflops: 19.5, memory_bandwidth_gb_s: 2039, "
        "link_gb_s: 300, compute_capability: 8.0}, gpus_per_node: 8}"
    )
    gpu = found.gpu
    assert (gpu.memory, gpu.bf16_tflops, gpu.fp16_tflops, gpu.fp32_tflops) == (80 * GIB, 312.0, 300.0, 19.5)
    assert (gpu.memory_gb_s, gpu.link_gb_s, gpu.compute_capability) == (2039.0, 300.0, "8.0")
    assert [note for note in found.notes if "bf16" in note] == []


def test_a_gpu_without_bf16_figure_is_said_to_have_none() -> None:
    found = hardware("{gpu: {memory: 32GB}, gpus_per_node: 8}")
    assert not found.gpu.has_bf16
    assert found.notes == ("The GPU's numbers have no bf16_tflops: it is taken for a card without native bf16.",)


@pytest.mark.parametrize("name", nodes())
def test_every_node_is_hardware(name: str) -> None:
    found = hardware(f"{{node: {name}}}")
    assert found.world_size == nodes()[name].gpus
    assert 0 < found.memory_budget < found.gpu.memory


def test_a_node_may_be_named_with_its_own_gpu() -> None:
    assert hardware("{node: p4de.24xlarge, gpu: a100-80gb}").gpu.name == "a100-80gb-sxm"


@pytest.mark.parametrize(
    ("written", "column", "said"),
    [
        ("{gpu: h1000}", 17, r"unknown GPU 'h1000'\n  help: did you mean h100"),
        ("{gpu: zzzzzzzzzz}", 17, r"unknown GPU 'zzzzzzzzzz'\n  help: dsgen show gpus lists them all"),
        ("{node: p4de.24xlarg}", 18, r"unknown node 'p4de.24xlarg'\n  help: did you mean p4de.24xlarge"),
        ("{node: p4de.24xlarge, gpu: h100}", 38, "node p4de.24xlarge has a100-80gb-sxm, not h100-80gb-sxm"),
        ("{node: p4de.24xlarge, gpus_per_node: 9}", 48, r"p4de.24xlarge has 8 GPUs, not 9\n  help: at most 8"),
    ],
)
def test_names_that_do_not_exist_or_do_not_agree(written: str, column: int, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        hardware(written)
    assert caught.value.exit_code == 2
    assert [problem.place for problem in caught.value.problems] == [Place("s.yaml", 2, column)]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        hardware("{node: dgx-h1000, gpu: h1000}")
    assert len(caught.value.problems) == 2


def test_the_budget_is_the_card_less_a_reserve() -> None:
    found = hardware("{gpu: a100-80gb-sxm}")
    assert constant("device_reserve") == GIB / 2
    assert found.memory_budget == found.gpu.memory - GIB // 2
    assert found.budget_reason == "a100-80gb-sxm's 79.15 GiB less 0.500 GiB for what is not ours on the card"


def test_a_card_smaller_than_the_reserve_has_no_budget() -> None:
    assert hardware("{gpu: {memory: 256MiB}}").memory_budget == 0


@pytest.mark.parametrize("budget", ["79.15GiB", "72GiB", "80GB", "1GiB"])
def test_a_stated_budget_up_to_the_whole_card(budget: str) -> None:
    found = hardware("{gpu: a100-80gb-sxm}", f"memory_budget: {budget}")
    assert found.memory_budget <= found.gpu.memory
    assert found.budget_reason == "stated in the spec"


@pytest.mark.parametrize("budget", ["79.16GiB", "80GiB", "200GiB"])
def test_a_budget_beyond_the_card_is_refused_with_what_it_has(budget: str) -> None:
    with pytest.raises(RefusedError, match=r"more than a100-80gb-sxm has: 79\.15 GiB usable") as caught:
        hardware("{gpu: a100-80gb-sxm}", f"memory_budget: {budget}")
    assert caught.value.exit_code == 1
    assert caught.value.problems[0].place == Place("s.yaml", 3, 16)
    assert "at most 79.15GiB" in str(caught.value)


def test_the_suggested_budget_is_one_that_is_taken() -> None:
    """80 GB are 74.505... GiB: rounded to 74.51 the suggestion would be refused in turn."""
    with pytest.raises(RefusedError, match=r"at most 74\.50GiB"):
        hardware("{gpu: {memory: 80GB}}", "memory_budget: 75GiB")
    assert hardware("{gpu: {memory: 80GB}}", "memory_budget: 74.50GiB").memory_budget < 80 * 10**9


def test_speeds_that_nothing_uses_yet_are_said() -> None:
    text = "model: gpt2\nhardware: {gpu: t4, gpus_per_node: 1, interconnect: {gbit_s: 400, rdma: true}}\n"
    (said,) = hardware_of(spec_from_text(text)).notes
    assert "hardware.interconnect.rdma changed nothing" in said
    text = "model: gpt2\nhardware: {gpu: {memory: 16GiB, bf16_tflops: 100, link_gb_s: 32}, gpus_per_node: 1}\n"
    assert hardware_of(spec_from_text(text)).notes == ()
