"""How fast one GPU works, as far as a step depends on it."""

from dataclasses import dataclass

from dsgen.facts.constants import constant
from dsgen.facts.gpus import Gpu
from dsgen.plan import Precision

# Compute capabilities.
_AMPERE = 8.0
_HOPPER = 9.0
_BLACKWELL = 10.0
_DESKTOP_BLACKWELL = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Rates in FLOP/s and bytes/s."""

    peak: float | None
    """Of matrix products in the compute type, as the vendor states it; None: unknown."""
    products: float
    """Of a large matrix product in the compute type."""
    eight_bit: float
    """Of a large matrix product in fp8."""
    single: float
    """Of a large matrix product in fp32."""
    small_tile: float
    """Rate of products by small tiles over that of large ones."""
    flash_forward: float
    flash_backward: float
    """Of the attention kernel that keeps no scores."""
    native_forward: float
    native_backward: float
    """Likewise, of a kernel in the card's own instructions."""
    memory: float
    """Bytes/s of kernels that read and write tensors and compute little."""
    kernel_start: float
    """Seconds that the shortest kernel takes."""
    host: float
    """Time that its host takes for a kernel, over that of hosts of PCIe 4."""
    units: int
    """Multiprocessors: tiles that are worked on at once."""
    pcie: float
    """Bytes/s between host and GPU, one way, pinned memory."""


def machine_of(gpu: Gpu, precision: Precision, *, compiled: bool = False) -> Machine:
    """- Large products: peak times the share that a sweep over shapes found (gpus.csv achievable_matmul_fraction; where
      nobody measured it, matmul_fraction). A card without bf16 runs it no faster than fp32.
      A step of training keeps to sustained (sustained_hopper) of that, since the power limit lowers clocks under load.
    - fp8: its peak, by the same share.
    - Flash attention: flash_forward and flash_backward of that; its kernels use Ampere's instructions, with which
      Hopper and Blackwell reach flash_forward_hopper and flash_backward_hopper only. Older cards have other kernels
      that keep no scores, at flash_older of the rate. Fp32 products run without tensor cores, as torch leaves tf32 off.
    - Memory: the vendor's bandwidth, times memory_share; of what torch.compile writes, memory_share_compiled.
    - Host: its processor is of the years of the card's PCIe generation; each is faster by host_newer.
    """
    known = {"bf16": gpu.bf16_tflops, "fp16": gpu.fp16_tflops or gpu.bf16_tflops, "fp32": gpu.fp32_tflops}[precision]
    peak = (known or gpu.fp32_tflops or gpu.fp16_tflops or constant("unknown_tflops")) * 1e12
    cuda = gpu.cuda or 0.0
    newer = _HOPPER <= cuda < _DESKTOP_BLACKWELL
    share = gpu.achievable_matmul_fraction or constant("matmul_fraction")
    share *= constant("sustained_hopper" if _HOPPER <= cuda < _BLACKWELL else "sustained")
    forward, backward = (
        ("flash_forward_hopper", "flash_backward_hopper") if newer else ("flash_forward", "flash_backward")
    )
    older = constant("flash_older") if 0 < cuda < _AMPERE else 1.0
    products = peak * share
    return Machine(
        peak=known * 1e12 if known else None,
        products=products,
        eight_bit=(gpu.fp8_tflops * 1e12 if gpu.fp8_tflops else peak) * share,
        single=(gpu.fp32_tflops * 1e12 if gpu.fp32_tflops else peak) * constant("matmul_fraction"),
        small_tile=constant("small_tile"),
        flash_forward=products * constant(forward) * older,
        flash_backward=products * constant(backward) * older,
        native_forward=products * constant("flash_forward") * older,
        native_backward=products * constant("flash_backward") * older,
        memory=(gpu.memory_gb_s or constant("unknown_memory_gb_s"))
        * 1e9
        * constant("memory_share_compiled" if compiled else "memory_share"),
        kernel_start=constant("kernel_start"),
        host=constant("host_newer") ** (min(gpu.pcie_gen or 4, 5) - 4),
        units=gpu.multiprocessors or 1,
        pcie=constant("pcie_share") * PCIE.get(gpu.pcie_gen or 4, PCIE[4]) * 1e9,
    )


PCIE = {3: 16.0, 4: 31.0, 5: 63.0, 6: 126.0}
"""GB/s of 16 lanes, one way, by generation (stas00/ml-engineering network/README.md)."""
