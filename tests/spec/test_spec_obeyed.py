"""Loss, compilation, quantised and frozen weights, and what else lives on the card, as they arrive."""

import pytest

from dsgen.errors import InputError
from dsgen.facts.models import models
from dsgen.spec.read import spec_from_text
from dsgen.spec.values import Code, Method, Resident, Spec


def read(rest: str) -> Spec:
    return spec_from_text(f"model: gpt2\nhardware: {{gpu: h100}}\n{rest}\n", "spec.yaml")


@pytest.mark.parametrize("loss", ["full", "chunked", "fused_linear"])
def test_every_loss_arrives(loss: str) -> None:
    assert read(f"training: {{loss: {loss}}}").training.loss == loss


def test_compiled_norms_keep_what_fused_ones_do() -> None:
    assert read("training: {compile: true}").training.code == Code(fused=frozenset({"norm"}))
    assert read("training: {compile: false}").training.code == Code()


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("{type: qlora}", Method(type="lora", quantization="nf4")),
        ("{type: qlora, rank: 64, quantization: gptq8}", Method(type="lora", rank=64, quantization="gptq8")),
        ("{type: lora}", Method(type="lora")),
    ],
)
def test_qlora_is_lora_beside_quantised_weights(text: str, method: Method) -> None:
    assert read(f"training: {{method: {text}}}").training.method == method


def test_patterns_of_frozen_parameters_arrive_in_order() -> None:
    assert read("training: {freeze: [embed_tokens, 'layers.0.*']}").training.freeze == ("embed_tokens", "layers.0.*")


@pytest.mark.parametrize(
    ("entry", "resident"),
    [
        ("{model: same, role: reference}", Resident(what="reference model", model="same")),
        ("{model: SAME}", Resident(what="reference model", model="same")),
        (
            "{model: meta-llama/Llama-3.1-8B, role: reward}",
            Resident(what="reward model", model="llama-3.1-8b", parameters=models()["llama-3.1-8b"].parameters),
        ),
        ("{name: vllm, reserve: 30%}", Resident(what="vllm", share=0.3)),
        ("{name: vllm, reserve: 12.5 %}", Resident(what="vllm", share=0.125)),
        ("{name: desktop, reserve: 2GiB}", Resident(what="desktop", reserve=2 * 2**30)),
    ],
)
def test_residents_arrive(entry: str, resident: Resident) -> None:
    assert read(f"residents: [{entry}]").training.residents == (resident,)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{model: lama-3.1-8b}", "spec.yaml:3:21: residents: no model is called 'lama-3.1-8b'"),
        ("{name: vllm}", "residents[0] has no reserve"),
        ("{name: vllm, reserve: 100%}", "residents[0].reserve: '100%' does not have the right form"),
        ("{name: vllm, reserve: -3%}", "residents[0].reserve: '-3%' does not have the right form"),
        ("{model: same, reserve: 3GiB}", "unknown key 'reserve' in residents[0]"),
        ("vllm", "residents[0]"),
    ],
)
def test_residents_that_say_nothing_are_refused(entry: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(f"residents: [{entry}]")
    assert message in str(caught.value)
