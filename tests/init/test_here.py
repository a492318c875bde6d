"""dsgen init --here: machines as their files and nvidia-smi show them; what cannot be seen is said."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from console import dsgen

from dsgen.facts.gpus import find_gpu
from dsgen.init.here import here
from dsgen.init.here.gpus import Card, preset_of
from dsgen.init.here.machine import Machine
from dsgen.init.values import Findings
from dsgen.units import GIB

MIB = 2**20
QUERY = "name,memory.total,compute_cap"


def machine(
    root: Path,
    files: Mapping[str, str] | None = None,
    cards: str | None = None,
    topology: str | None = None,
    space: Mapping[str, tuple[int, int]] | None = None,
) -> Machine:
    for name, text in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(command: Sequence[str]) -> str | None:
        if command[0] != "nvidia-smi":
            return None
        return topology if "topo" in command else cards

    return Machine(root, run, lambda path: (space or {}).get(path))


def seen(where: Machine) -> Findings:
    return here(where, "/work")


# nvidia-smi's own names with memory.total in MiB, as their drivers print them.
@pytest.mark.parametrize(
    ("name", "mib", "preset"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-80gb-sxm"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-40gb-sxm"),
        ("NVIDIA A100 80GB PCIe", 81920, "a100-80gb-pcie"),
        ("NVIDIA A100-PCIE-40GB", 40960, "a100-40gb-pcie"),
        ("NVIDIA H100 80GB HBM3", 81559, "h100-80gb-sxm"),
        ("NVIDIA H100 PCIe", 81559, "h100-80gb-pcie"),
        ("NVIDIA H100 NVL", 95830, "h100-94gb-nvl"),
        ("NVIDIA H200", 143771, "h200-141gb-sxm"),
        ("NVIDIA B200", 183359, "b200-180gb-sxm"),
        ("NVIDIA A10G", 23028, "a10g"),
        ("NVIDIA A10", 23028, "a10"),
        ("NVIDIA L4", 23034, "l4"),
        ("NVIDIA L40S", 46068, "l40s"),
        ("NVIDIA L40", 46068, "l40"),
        ("Tesla T4", 15360, "t4"),
        ("Tesla V100-SXM2-32GB", 32768, "v100-32gb-sxm"),
        ("Tesla V100-SXM2-16GB", 16384, "v100-16gb-sxm"),
        ("Tesla V100-PCIE-32GB", 32768, "v100-32gb-pcie"),
        ("NVIDIA GeForce RTX 3090", 24576, "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", 32607, "rtx-5090"),
        ("NVIDIA GeForce RTX 2080 Ti", 11264, "rtx-2080-ti"),
        ("NVIDIA RTX A6000", 49140, "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx-6000-ada"),
        ("NVIDIA A40", 46068, "a40"),
    ],
)
def test_cards_are_known_by_the_names_of_their_drivers(name: str, mib: int, preset: str) -> None:
    found = preset_of(Card(name, mib * MIB, None))
    assert found is not None
    assert found.name == preset


@pytest.mark.parametrize("name", ["NVIDIA Z999", "NVIDIA GeForce GT 710", "A100", ""])
def test_a_card_without_a_preset_is_not_guessed(name: str) -> None:
    assert preset_of(Card(name, 3 * GIB, None)) is None


def test_a_server_is_read_whole(tmp_path: Path) -> None:
    line = "NVIDIA H100 80GB HBM3, 81559, 9.0\n"
    files = {
        "proc/meminfo": "MemTotal:       2113407800 kB\nMemFree: 1 kB\n",
        "proc/self/cgroup": "0::/\n",
        "proc/self/limits": "Max locked memory         unlimited            unlimited            bytes\n",
        "proc/mounts": (
            "/dev/sda1 / ext4 rw,relatime 0 0\n/dev/nvme0n1 /local_nvme xfs rw,noatime 0 0\n"
            "/dev/nvme1n1 /boot ext4 rw 0 0\noverlay /x overlay rw 0 0\n"
        ),
    }
    for number in range(8):
        port = f"sys/class/infiniband/mlx5_{number}/ports/1"
        files |= {f"{port}/rate": "400 Gb/sec (4X NDR)\n", f"{port}/state": "4: ACTIVE\n"}
    files |= {"sys/class/infiniband/mlx5_9/ports/1/rate": "100 Gb/sec (4X EDR)\n"}
    files |= {"sys/class/infiniband/mlx5_9/ports/1/state": "1: DOWN\n"}
    space = {
        "/work": (10**12, 9 * 10**11),
        "/": (10**12, 9 * 10**11),
        "/local_nvme": (7 * 10**12, 6 * 10**12),
        "/dev/shm": (GIB * 512, GIB * 512),
    }
    found = seen(machine(tmp_path, files, line * 8, "GPU0 X NV18 NV18\n", space))
    assert found.get("hardware", "gpu") == "h100-80gb-sxm"
    assert found.get("hardware", "gpus_per_node") == 8
    assert found.get("hardware", "host_memory") == 2113407800 * 1024
    assert found.get("hardware", "nvme", "path") == "/local_nvme"
    assert found.get("hardware", "nvme", "size") == 6 * 10**12
    assert found.get("hardware", "disk") == 9 * 10**11
    assert found.get("hardware", "interconnect", "gbit_s") == 3200  # eight ports that are up
    assert found.get("hardware", "interconnect", "rdma") is True
    assert found.notes == ()
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{64 * GIB}\n"}, 64),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": f"{32 * GIB}\n"}, 32),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
                "sys/fs/cgroup/a/memory.max": f"{16 * GIB}\n",
            },
            16,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu:/\n4:memory:/docker/abc\n",
                "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{8 * GIB}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            8,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 128),
        ({}, 128),
    ],
)
def test_a_container_has_what_its_group_allows(files: dict[str, str], limit: int, tmp_path: Path) -> None:
    """cgroup v2 writes "max", v1 a number near 2^63, where there is no limit; a group above ours binds, too."""
    found = seen(machine(tmp_path, {"proc/meminfo": f"MemTotal: {128 * 2**20} kB\n"} | files))
    assert found.get("hardware", "host_memory") == limit * GIB
    source = next(each.source for each in found.given if each.path == ("hardware", "host_memory"))
    assert ("less than the 128 GiB of the machine" in source) == (limit < 128)


def test_what_will_stop_a_training_is_said(tmp_path: Path) -> None:
    files = {"proc/self/limits": "Max locked memory         65536                65536                bytes\n"}
    line = "NVIDIA GeForce RTX 4090, 24564, 8.9\n"
    found = seen(machine(tmp_path, files, line * 2, "GPU0 X PHB\nGPU1 PHB X\n", {"/dev/shm": (64 * MIB, 64 * MIB)}))
    said = "\n".join(found.notes)
    assert "ulimit -l" in said
    assert "64.0 KiB" in said
    assert "/dev/shm) has 64.0 MiB" in said
    assert "no NVLink" in said


def test_unequal_cards_and_an_unknown_one_are_written_as_they_are(tmp_path: Path) -> None:
    cards = "NVIDIA Z999, 49152, 13.0\nNVIDIA Z999, 49152, 13.0\nTesla T4, 15360, 7.5\n"
    found = seen(machine(tmp_path, {}, cards))
    assert found.get("hardware", "gpu") == {"memory": "49152MiB", "compute_capability": "13.0"}
    assert found.get("hardware", "gpus_per_node") == 2
    assert any("Tesla T4" in note for note in found.notes)
    assert any("links between the GPUs could not be seen" in note for note in found.notes)


def test_a_blind_machine_says_what_it_could_not_see(tmp_path: Path) -> None:
    found = seen(machine(tmp_path))
    assert {".".join(each.path) for each in found.unknown} == {
        "hardware.gpu",
        "hardware.gpus_per_node",
        "hardware.host_memory",
        "hardware.disk",
        "hardware.interconnect.gbit_s",
    }
    assert any("locked memory could not be read" in note for note in found.notes)
    assert any("/dev/shm) could not be seen" in note for note in found.notes)


@pytest.mark.parametrize(
    "text", ["", "\n", "No devices were found\n", "a,b,c\n", "x" * 10000, ",,,\n", "NVIDIA, [N/A], 1\n"]
)
def test_odd_answers_of_nvidia_smi_are_no_gpu(text: str, tmp_path: Path) -> None:
    assert seen(machine(tmp_path, {}, text)).get("hardware", "gpu") is None


def test_ethernet_counts_where_there_is_no_fabric(tmp_path: Path) -> None:
    files = {}
    for name, speed, state in (("eth0", "25000", "up"), ("eth1", "100000", "down"), ("eth2", "-1", "up")):
        files |= {f"sys/class/net/{name}/speed": speed, f"sys/class/net/{name}/operstate": state}
        files |= {f"sys/class/net/{name}/device/vendor": "0x1"}
    files |= {"sys/class/net/docker0/speed": "40000", "sys/class/net/docker0/operstate": "up"}
    assert seen(machine(tmp_path, files)).get("hardware", "interconnect", "gbit_s") == 25


def test_every_preset_of_an_nvidia_card_is_found_by_its_own_memory() -> None:
    """The driver's total is a little above what a framework sees; a card must not be taken for its larger sister."""
    for name in ("a100-40gb-sxm", "a100-80gb-sxm", "v100-16gb-sxm", "v100-32gb-sxm"):
        gpu = find_gpu(name)
        assert gpu is not None
        family = name.partition("-")[0].upper()
        assert preset_of(Card(f"NVIDIA {family}-SXM4", int(gpu.memory * 1.01), None)) == gpu


def test_this_machine_is_read_and_the_spec_is_valid(tmp_path: Path) -> None:
    made = dsgen("init", "--here", "--model", "llama-2-7b", cwd=tmp_path)
    assert made.returncode == 0
    text = (tmp_path / "spec.yaml").read_text(encoding="utf-8")
    spec = yaml.safe_load(text)
    assert spec["model"] == "llama-2-7b"
    assert "from this machine" in text
    if "host_memory" in (spec.get("hardware") or {}):
        total = Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]
        written = spec["hardware"]["host_memory"]
        assert float(str(written).removesuffix("GiB")) * GIB <= int(total) * 1024
