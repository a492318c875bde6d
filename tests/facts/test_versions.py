"""Versions are ordered as releases are, and a target's gaps are filled with the newest known."""

import pytest

from dsgen.errors import RefusedError
from dsgen.facts.versions import libraries, version_key
from dsgen.spec.values import HardwareSpec, ModelSpec, Spec, TargetSpec
from dsgen.target import Target, target_of, unknown_versions


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


def _spec(**versions: str) -> Spec:
    return Spec(
        file="spec.yaml",
        model=ModelSpec(name="gpt2"),
        hardware=HardwareSpec(gpu="t4"),
        target=TargetSpec(versions=versions),
    )


def test_target_fills_what_the_spec_leaves_open() -> None:
    target = target_of(_spec(deepspeed="0.19.2"))
    assert target.version("deepspeed") == "0.19.2"
    assert target.version("torch") == libraries()["torch"].newest
    assert Target().version("deepspeed") == libraries()["deepspeed"].newest


@pytest.mark.parametrize("name", libraries())
def test_a_version_that_is_not_written_for_is_refused(name: str) -> None:
    oldest = libraries()[name].oldest
    assert target_of(_spec(**{name: oldest})).version(name) == oldest
    with pytest.raises(RefusedError, match=f"dsgen writes for {name} {oldest} and newer, not 0.0.9"):
        target_of(_spec(**{name: "0.0.9"}))


@pytest.mark.parametrize("name", libraries())
def test_a_version_that_is_not_known_yet_is_said(name: str) -> None:
    assert unknown_versions(target_of(_spec())) == ()
    (said,) = unknown_versions(target_of(_spec(**{name: "99.1"})))
    assert said.startswith(f"{name} 99.1 is newer than {libraries()[name].newest}")
