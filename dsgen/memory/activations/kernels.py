"""How a Hugging Face class computes a block, where that decides what autograd keeps."""

from collections.abc import Mapping
from dataclasses import dataclass

from dsgen.shapes.values import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Traits of an implementation; the defaults are those of transformers' Llama."""

    dropout: bool = False
    """The published config turns residual, attention and MLP dropout on."""
    softmax_in_fp32: bool = True
    """Eager attention takes the softmax in fp32 and casts it back, keeping both."""
    softcap: bool = False
    """Eager attention passes the scores through tanh, whose output is kept."""
    gelu_in_steps: bool = False
    """GELU's tanh form is written out in tensor operations (NewGELUActivation): five tensors are kept, not two."""
    norm_product_in_fp32: bool = False
    """The norm multiplies by its weight before it casts back, so the normalised values are kept in fp32."""
    query_concatenated: bool = False
    """The rotated and the plain part of the query are concatenated, in an order that the attention kernel's output
    follows and the output projection does not: it reads, and keeps, a copy."""
    fused_qkv: bool = False
    """One matrix makes q, k and v, and q and k are rotated: v, a view, keeps all of its output alive."""
    expanded_kv: bool = False
    """Keys and values are copied to all heads before any attention kernel."""
    in_steps: bool = False
    """Attention is taken in steps, as if eager, whatever kernel is asked for."""


_LLAMA = Kernels()
_GEMMA = Kernels(norm_product_in_fp32=True)

# Read in transformers 5.24, models/<model_type>/{modeling,configuration}_<model_type>.py.
_KERNELS: Mapping[str, Kernels] = {
    "BertForSequenceClassification": Kernels(dropout=True, softmax_in_fp32=False),
    "FalconForCausalLM": Kernels(softmax_in_fp32=False, fused_qkv=True),
    "Gemma2ForCausalLM": Kernels(norm_product_in_fp32=True, softcap=True),
    "Gemma3ForCausalLM": _GEMMA,
    "Gemma3ForConditionalGeneration": _GEMMA,
    "GemmaForCausalLM": _GEMMA,
    "GPT2LMHeadModel": Kernels(dropout=True, softmax_in_fp32=False, gelu_in_steps=True),
    "GPTJForCausalLM": Kernels(gelu_in_steps=True),
    "GPTNeoForCausalLM": Kernels(gelu_in_steps=True),
    "GPTNeoXForCausalLM": Kernels(fused_qkv=True, query_concatenated=True),
    "Olmo2ForCausalLM": Kernels(norm_product_in_fp32=True),
    "OPTForCausalLM": Kernels(dropout=True),
    "Phi3ForCausalLM": Kernels(fused_qkv=True, query_concatenated=True),
    "PhiForCausalLM": Kernels(gelu_in_steps=True, query_concatenated=True),
}


# litgpt/model.py: one class for all; q, k and v from one matrix, GELU and attention by torch's kernels, no dropout.
# Keys and values of grouped queries are expanded to all heads and copied, after which the fused output is gone.
_LITGPT = Kernels(fused_qkv=True)
_LITGPT_GROUPED = Kernels(expanded_kv=True)
# Where scores are capped it takes the steps of attention one by one (scaled_dot_product_attention).
_LITGPT_CAPPED = Kernels(expanded_kv=True, softcap=True, in_steps=True)


def kernels_of(arch: Architecture, library: str = "transformers") -> Kernels:
    """Traits of the architecture's class; Llama's where none are known."""
    if library == "litgpt":
        if caps(arch):
            return _LITGPT_CAPPED
        return _LITGPT if arch.kv_heads == arch.heads else _LITGPT_GROUPED
    return _KERNELS.get(arch.hf_architecture, _LLAMA)


def caps(arch: Architecture) -> bool:
    """Whether the class passes scores and logits through tanh (Gemma-2)."""
    return _KERNELS.get(arch.hf_architecture, _LLAMA).softcap
