"""How far a run may be from the plain loop: relative differences, and where they come from.

fp32. Nothing differs but the order of sums over ranks and micro-batches. A sum of n terms in another order differs by
about sqrt(n) eps of its size (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 4.2; eps = 2^-24 =
6e-8). The longest sums here are over the global batch: at most 4 ranks x 4 micro-batches x 2 x 32 tokens = 1024 terms,
so 2e-6. Losses and gradient norms are such sums; they get a margin of 5. Weights are compared relative to how far they
have moved. Adam divides gradients by their size, so that elements of tiny gradients move as far as others, on rounding
alone: measured 3e-7 to 2e-6 with torch's Adam, 2e-5 with DeepSpeed's CPU Adam (its vector code rounds otherwise). 1e-4
leaves a margin of 5 over the worst, and is 40 times below the smallest mistake planted (3.9e-3: AdamW clipped by the
norm of a shard).

bf16. eps is 2^-8 = 4e-3 for one gradient element; the plain loop rounds where the framework does (``Sums``), so most
differences vanish: measured 0 to 1.9e-3 of the movement on 2 processes (stage 0 also rounds the clipped gradient).

bf16, sums not followed. The plain loop adds up in fp32, or in another order, what the framework adds up in bf16:
measured up to 1.7e-2 of the movement, with gradient norms 1.4e-4 and losses 1e-5 apart.

Measured with torch 2.13.0 and deepspeed 0.19.8 on CPUs; tests/smoke/test_proof_matrix.py measures again.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Largest relative differences."""

    norm: float
    """Of the first gradient, before clipping."""
    loss: float
    """Of any step."""
    weights: float
    """||p - p_plain|| / ||p_plain - p_0|| after the last step."""


TOLERANCES = {
    "fp32": Tolerance(norm=1e-5, loss=1e-5, weights=1e-4),
    "bf16": Tolerance(norm=1e-4, loss=1e-4, weights=5e-3),
    "bf16, sums not followed": Tolerance(norm=1e-3, loss=1e-3, weights=5e-2),
}
