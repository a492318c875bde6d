"""What single classes do with their config that no key-by-key table can say."""

from dataclasses import replace
from typing import Any

from dsgen.shapes.config_file import Config

Fields = dict[str, Any]


def falcon(config: Config, fields: Fields) -> None:
    """Three generations share one class: multi-query 7B, grouped-query 40B and 180B, ALiBi RW."""
    new = config.flag("new_decoder_architecture")
    if not new:
        fields["kv_heads"] = 1 if config.flag("multi_query") else fields["heads"]
    norms = config.whole("num_ln_in_parallel_attn") or (2 if new else 1)
    fields["norms_per_layer"] = 2 if norms == 2 or not config.flag("parallel_attn") else 1


def opt(config: Config, fields: Fields) -> None:
    """OPT-350m alone is post-norm, so without a last norm, and projects its embeddings."""
    if not config.flag("layer_norm_elementwise_affine"):
        raise config.problem("layer_norm_elementwise_affine", "norms without weights are not supported yet")
    if not config.flag("do_layer_norm_before") or config.flag("_remove_final_layer_norm"):
        fields["extra"]["no_final_norm"] = "1"
    width = config.whole("word_embed_proj_dim") or fields["hidden"]
    if width != fields["hidden"]:
        fields["extra"]["embed_proj"] = str(width)


def mpt(config: Config, fields: Fields) -> None:
    """transformers' class has neither biases nor learned positions, whatever the file says."""
    attention = config.get("attn_config")
    rotary = isinstance(attention, dict) and attention.get("alibi") is False
    if rotary or not config.flag("no_bias"):
        key = "attn_config" if rotary else "no_bias"
        raise config.problem(key, "MPT without ALiBi, or with biases, is not supported yet")
    fields["intermediate"] = 4 * fields["hidden"]


def qwen_moe(config: Config, fields: Fields) -> None:
    """mlp_only_layers lists dense layers; only the first n of them have a form here."""
    dense = config.layer_list("mlp_only_layers")
    if sorted(dense) != list(range(len(dense))):
        raise config.problem("mlp_only_layers", "dense layers other than the first ones are not supported yet")
    fields["moe"] = replace(fields["moe"], first_dense_layers=len(dense))


def llama4(config: Config, fields: Fields) -> None:
    """moe_layers repeats what interleave_moe_layer_step says, unless someone has edited it."""
    step, layers = fields["moe"].layer_step, fields["layers"]
    listed = config.layer_list("moe_layers")
    if listed and listed != list(range(step - 1, layers, step)):
        raise config.problem("moe_layers", "an own choice of layers with experts is not supported yet")
