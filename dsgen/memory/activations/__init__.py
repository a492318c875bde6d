"""What autograd keeps of one decoder block between the forward and the backward pass."""
