"""How long one matrix product takes, by its shape.

Symbols: (m, k) times (k, n); c bytes of an element.
"""

from math import ceil

from dsgen.steptime.machine import Machine

_TILE = 128
"""Rows and columns of the output that one multiprocessor works on: what cuBLAS picks for large 16-bit products is 128
to 256 by 128 to 256."""
_DEPTH = 1024
"""Least k of one part where few tiles are split along k to fill the machine."""


def product(machine: Machine, m: float, n: float, k: float, width: float, rate: float) -> float:
    """Seconds of one product.

    - Math: 2 m n k / rate, over the share of the tiles' slots that have work: tiles are handed out in waves of as many
      as there are multiprocessors, and the last wave counts whole. Tiles of half the edge fill the machine better and
      reach small_tile of the rate.
    - Reading both operands takes c (m k + n k) / memory; it overlaps with the math, so the slower of both counts.
    - The output, c m n / memory, is written when a tile's math is over.
    """
    if m <= 0:
        return 0.0
    share = _filled(machine, m, n, k, _TILE)
    if share < machine.small_tile:
        share = max(share, machine.small_tile * _filled(machine, m, n, k, _TILE // 2))
    math = 2 * m * n * k / (rate * share)
    seconds = max(math, width * k * (m + n) / machine.memory) + width * m * n / machine.memory
    return max(seconds, machine.kernel_start)


def _filled(machine: Machine, m: float, n: float, k: float, tile: int) -> float:
    """Share of the multiprocessors' slots that are full of work."""
    tiles = ceil(m / tile) * ceil(n / tile)
    used = m * n / (tiles * tile * tile)
    if tiles < machine.units:
        tiles *= max(1, min(machine.units // tiles, int(k) // _DEPTH))
    return used * tiles / (ceil(tiles / machine.units) * machine.units)
