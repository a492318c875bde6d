"""dsgen: plan, write, lint and smoke-run DeepSpeed and FSDP configurations."""

__version__ = "0.1.0"
