"""Training code of torch and DeepSpeed on tensors without contents, and what of them is alive when."""
