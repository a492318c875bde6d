"""The schema says of a release what that says of itself: keys, defaults, types, bounds, removed keys, constructors."""

import copy
from typing import Any

import pytest
from compare_deepspeed import differences, release

from dsgen.facts.versions import libraries, version_key
from dsgen.lint import schema as sch


@pytest.fixture(scope="module")
def installed() -> Any:
    return release()


def test_the_installed_release(installed: Any) -> None:
    assert version_key(installed["version"]) == version_key(libraries()["deepspeed"].executed)
    assert list(differences(installed)) == []


# What a release may change, planted; and the word by which the comparison must tell it.
PLANTED: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "a new key": (("sections", "fp16", "new_key"), {"default": 1, "bounds": {}, "types": [], "enum": []}, "new_key"),
    "a default": (("sections", "bf16", "check_grad_overflow", "default"), False, "default is False"),
    "a bound": (("sections", "zero_optimization", "stage", "bounds"), {"maximum": 4}, "maximum is 4"),
    "a type": (("sections", "fp16", "hysteresis", "types"), ["string"], "type is ['string']"),
    "a word": (("sections", "zero_optimization.offload_param", "device", "enum"), ["none", "disk"], "one of"),
    "extra keys": (("forbids", "fp16"), False, "an unknown key is ignored"),
    "a look-up": (("lookups", "", "new_switch"), {"default": False}, "new_switch"),
    "a look-up's default": (("lookups", "aio", "queue_depth"), {"default": 9}, "aio.queue_depth: default is 9"),
    "a removal": (("removed",), [], "refused as removed"),
    "a scheduler's parameter": (("schedules", "WarmupLR", "warmup_type"), "linear", "warmup_type is 'linear'"),
    "a parameter that is needed": (("schedules", "WarmupLR", "warmup_type"), "required", "needs ['warmup_type']"),
    "an optimizer": (("names",), ["adam", "newton"], "optimizer newton"),
    "an optimizer's parameter": (("optimizers", "lion"), [{"curvature": 1}], "takes 'curvature'"),
}


@pytest.mark.parametrize("change", PLANTED)
def test_what_a_release_changes_is_listed(change: str, installed: Any) -> None:
    path, value, told = PLANTED[change]
    planted = copy.deepcopy(installed)
    place = planted
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert any(told in line for line in differences(planted))


def test_the_newest_version_is_the_table_s() -> None:
    executed = version_key(libraries()["deepspeed"].executed)
    assert version_key(sch.newest()) >= executed
    assert sch.newest() == libraries()["deepspeed"].newest
