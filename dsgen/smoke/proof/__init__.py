"""The proof that a generated step is the right step: trials against a plain loop, and what they came to."""
