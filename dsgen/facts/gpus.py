"""GPUs: one row of gpus.csv each. To add a GPU, add a row there."""

from dataclasses import dataclass
from functools import cache

from dsgen.facts.tables import index, nearest, number, rows
from dsgen.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device as a framework sees it. TFLOPS are dense (no sparsity), GB/s are 1e9 bytes."""

    name: str
    vendor: str = "unknown"
    memory: int
    """Usable bytes = what the driver reports as total capacity."""
    bf16_tflops: float | None
    """None: no native bf16 (before Ampere)."""
    fp16_tflops: float | None
    fp32_tflops: float | None
    memory_gb_s: float | None
    link_gb_s: float | None
    """Per device, one way, between GPUs of a node."""
    fp8_tflops: float | None = None
    multiprocessors: int | None = None
    """Units that work on one tile of a matrix product each."""
    link_domain: int | None = None
    """GPUs that such links join where they reach beyond a node (NVL72); None: those of a node."""
    pcie_gen: int | None = None
    compute_capability: str | None = None
    achievable_matmul_fraction: float | None = None
    """Measured share of the peak that a large matrix product reaches; None where not measured."""
    source: str = ""

    @property
    def cuda(self) -> float | None:
        """CUDA compute capability; None where unknown or of another vendor (gfx942)."""
        text = self.compute_capability or ""
        return float(text) if text.replace(".", "", 1).isdecimal() else None

    @property
    def has_bf16(self) -> bool:
        return self.bf16_tflops is not None


def _whole(cell: str) -> int | None:
    value = number(cell)
    return None if value is None else int(value)


def _gpu(row: dict[str, str]) -> Gpu:
    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        memory=int(float(row["memory_gib_usable"]) * GIB),
        bf16_tflops=number(row["bf16_dense_tflops"]),
        fp16_tflops=number(row["fp16_dense_tflops"]),
        fp32_tflops=number(row["fp32_tflops"]),
        memory_gb_s=number(row["hbm_gb_s"]),
        link_gb_s=number(row["intra_node_gb_s_one_way"]),
        fp8_tflops=number(row["fp8_dense_tflops"]),
        multiprocessors=_whole(row["multiprocessors"]),
        link_domain=_whole(row["link_domain"]),
        pcie_gen=_whole(row["pcie_gen"]),
        compute_capability=row["compute_capability"] or None,
        achievable_matmul_fraction=number(row["achievable_matmul_fraction"]),
        source=row["source"],
    )


@cache
def gpus() -> dict[str, Gpu]:
    """Every GPU by its own name, in the table's order."""
    return {row["name"]: _gpu(row) for row in rows("gpus")}


@cache
def _by_any_name() -> dict[str, Gpu]:
    aliases = {row["name"]: [row["name"], *filter(None, row["aliases"].split(";"))] for row in rows("gpus")}
    return index(gpus().values(), lambda gpu: aliases[gpu.name])


def find_gpu(name: str) -> Gpu | None:
    """The GPU of that name or alias, upper and lower case alike."""
    return _by_any_name().get(name.lower())


def nearest_gpus(name: str) -> list[str]:
    """Names to suggest for one that is unknown."""
    return nearest(name, _by_any_name())
