"""The node table: every row typed, its GPU known, every name found."""

import pytest

from dsgen.facts.gpus import find_gpu
from dsgen.facts.nodes import find_node, nearest_nodes, nodes
from dsgen.facts.tables import rows
from dsgen.units import GIB


def test_every_row_is_read() -> None:
    assert len(nodes()) == len(rows("nodes")) >= 66


def test_a_node_has_the_figures_of_its_row() -> None:
    node = find_node("P4DE.24xlarge")
    assert node is not None
    assert (node.name, node.provider, node.gpu, node.gpus, node.vcpus) == (
        "p4de.24xlarge",
        "aws",
        "a100-80gb-sxm",
        8,
        96,
    )
    assert (node.host_memory, node.local_nvme, node.inter_node_gbit_s) == (1152 * GIB, 8 * 10**12, 400.0)


def test_terabytes_are_whole_bytes() -> None:
    node = find_node("Standard_NC40ads_H100_v5")
    assert node is not None
    assert node.local_nvme == 3_840_000_000_000


def test_figures_that_the_table_lacks_are_none() -> None:
    node = find_node("a2-highgpu-8g")
    assert node is not None
    assert node.local_nvme is None


@pytest.mark.parametrize("name", nodes())
def test_every_node_is_sound(name: str) -> None:
    node = nodes()[name]
    assert find_node(name) is node
    gpu = find_gpu(node.gpu)
    assert gpu is not None
    assert gpu.name == node.gpu
    assert 1 <= node.gpus <= 16
    assert node.host_memory is None or node.host_memory >= 16 * GIB
    assert node.source


@pytest.mark.parametrize(
    ("name", "rdma"),
    [
        ("dgx-h100", True),
        ("a3-ultragpu-8g", True),
        ("p3.16xlarge", False),
        ("gpu_8x_h100_sxm5", False),
        ("a2-highgpu-8g", False),
        ("p4de.24xlarge", None),
        ("a3-megagpu-8g", None),
    ],
)
def test_whether_the_network_does_rdma(name: str, rdma: bool | None) -> None:
    assert nodes()[name].rdma is rdma


def test_an_unknown_name_gets_suggestions() -> None:
    assert find_node("p4de.24xlarg") is None
    assert nearest_nodes("p4de.24xlarg")[0] == "p4de.24xlarge"
    assert nearest_nodes("standard_nd96isr_h100_v6")[0] == "Standard_ND96isr_H100_v5"
    assert nearest_nodes("zzzzzzzz") == []
