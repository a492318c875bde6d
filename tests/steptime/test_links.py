"""Collectives by volume and link: ring volumes over rates of the links."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from made import machines

from dsgen.facts.constants import constant, constants_as
from dsgen.steptime.links import Links, links_of, network_of

GB = 1e9
LINKS = Links(inside=240 * GB, node=200 * GB, gpus_per_node=8)


@pytest.fixture(autouse=True)
def _no_start() -> Iterator[None]:
    with constants_as({"collective_start": 0.0}):
        yield


def test_a_gather_in_a_node_moves_all_but_the_own_part() -> None:
    assert LINKS.gather(8 * GB, 8) == pytest.approx(7 / 240)
    assert LINKS.gather(8 * GB, 1) == 0


def test_a_gather_over_nodes_is_a_ring_of_all_ranks() -> None:
    """All but a rank's own part passes the slowest hop: the cards of a node; unless the links inside are slower."""
    assert LINKS.gather(8 * GB, 32) == pytest.approx(8 * 31 / 32 / 200)
    assert LINKS.gather(8 * GB, 16) == pytest.approx(8 * 15 / 16 / 200)
    fast = replace(LINKS, node=400 * GB)
    assert fast.gather(8 * GB, 32) == pytest.approx(8 * 31 / 32 / 240)


def test_an_all_reduce_of_two_nodes_is_a_tree() -> None:
    """Each node sends its sum once and gets the whole once; of more nodes a ring is as good."""
    slow = replace(LINKS, node=100 * GB)
    assert slow.reduce(8 * GB, 16) == pytest.approx(8 / 100)
    assert replace(LINKS, node=400 * GB).reduce(8 * GB, 16) == pytest.approx(2 * 8 * 15 / 16 / 240)
    assert slow.reduce(8 * GB, 32) == pytest.approx(2 * 8 * 31 / 32 / 100)
    # A rank a node, eight such groups: a ring of two sends as much.
    assert slow.reduce(8 * GB, 2, stride=8) == pytest.approx(2 * 8 / 2 / (100 / 8))


def test_groups_across_nodes_share_the_cards_of_a_node() -> None:
    """Eight groups of four ranks, one rank a node: each has an eighth of the cards."""
    assert LINKS.gather(8 * GB, 4, stride=8) == pytest.approx(8 * 3 / 4 / (200 / 8))


def test_an_all_reduce_is_a_reduce_scatter_and_a_gather() -> None:
    assert LINKS.reduce(8 * GB, 8) == 2 * LINKS.gather(8 * GB, 8)


def test_an_all_to_all_keeps_a_part_at_home() -> None:
    assert LINKS.exchange(8 * GB, 8) == pytest.approx(7 / 240)
    # Over two nodes half of it leaves: eight GPUs share the cards.
    assert LINKS.exchange(8 * GB, 16) == pytest.approx(8 * 0.5 * 8 / 200)


def test_a_message_has_its_share_of_the_cards() -> None:
    assert LINKS.send(1 * GB, apart=True) == pytest.approx(8 / 200)
    assert LINKS.send(1 * GB, apart=False) == pytest.approx(1 / 240)


def test_links_of_an_nvlink_node() -> None:
    """300 GB/s of an A100; eight cards of 200 Gbit/s."""
    links = links_of(machines("a100-80gb-sxm", nodes=2, gbit_s=None))
    assert links.inside == pytest.approx(300 * GB * constant("link_share"))
    assert links.node == pytest.approx(8 * 200 / 8 * GB * constant("network_share"))


def test_cards_on_pcie_go_through_the_host() -> None:
    links = links_of(machines("rtx-4090", nodes=2, gbit_s=100))
    assert links.inside == pytest.approx(31 * GB * constant("peer_share"))
    assert links.node == pytest.approx(100 / 8 * GB * constant("network_share"))


def test_a_bridge_that_nobody_states_is_not_there() -> None:
    """Two 3090 may be bridged (56 GB/s); a machine has PCIe 4."""
    assert links_of(machines("rtx-3090")).inside == pytest.approx(31 * GB * constant("peer_share"))


def test_a_network_that_nobody_states_is_that_of_the_reference_node() -> None:
    """DGX H100: eight cards of 400; one card of its generation where GPUs are joined by PCIe."""
    assert network_of(machines("h100-80gb-sxm", gbit_s=None)) == 3200
    assert network_of(machines("l40s", gbit_s=None)) == 200
    assert network_of(machines("h100-80gb-sxm", gbit_s=100)) == 100


def test_a_rack_is_one_node_for_its_links() -> None:
    """NVL72: 64 GPUs of eight nodes talk over NVLink."""
    links = links_of(machines("gb200-186gb", nodes=8))
    assert links.nodes_of(64) == 1
    assert links.gather(8 * GB, 64) == pytest.approx(8 * 63 / 64 / (900 * constant("link_share")))
