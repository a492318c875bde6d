"""Versions are ordered as releases are, and a target's gaps are filled with the newest known."""

import pytest

from dsgen.facts.versions import libraries, version_key
from dsgen.spec.values import HardwareSpec, ModelSpec, Spec, TargetSpec
from dsgen.target import Target, target_of


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("0.9.5", "0.10.0"), ("0.19.8", "0.19.10"), ("2.9", "2.10"), ("2.13.0", "2.13.1"), ("0.19.6", "0.19.7rc1")],
)
def test_order(lower: str, higher: str) -> None:
    assert version_key(lower) < version_key(higher)


@pytest.mark.parametrize(("one", "other"), [("2.13", "2.13.0"), ("2.13.0+cpu", "2.13"), ("v5.16.0", "5.16")])
def test_equal(one: str, other: str) -> None:
    assert version_key(one) == version_key(other)


def test_not_a_version() -> None:
    with pytest.raises(ValueError, match="latest"):
        version_key("latest")


def test_what_is_executed_lies_between_oldest_and_newest() -> None:
    for library in libraries().values():
        assert version_key(library.oldest) <= version_key(library.executed) <= version_key(library.newest)


def test_target_fills_what_the_spec_leaves_open() -> None:
    spec = Spec(
        file="spec.yaml",
        model=ModelSpec(name="gpt2"),
        hardware=HardwareSpec(gpu="t4"),
        target=TargetSpec(versions={"deepspeed": "0.18.0"}),
    )
    target = target_of(spec)
    assert target.version("deepspeed") == "0.18.0"
    assert target.version("torch") == libraries()["torch"].newest
    assert Target().version("deepspeed") == libraries()["deepspeed"].newest
