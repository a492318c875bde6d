"""What is offered is legal there in that version, and all that is legal is offered."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dsgen.lint import schema as sch
from dsgen.lint.kinds import KINDS
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import LintTarget, make_target
from dsgen.lsp.complete import completions
from dsgen.lsp.offers import Offer
from dsgen.lsp.text import Text

VERSIONS = ("0.14.0", "0.16.4", "0.17.1", "0.19.8")
# What the linter says of a key or value that should not have been offered.
WRONG = {
    *("unknown-key", "removed-key", "renamed-key", "old-key", "key-of-a-later-version", "dead-key", "key-given-twice"),
    *("wrong-type", "value-not-allowed"),
}
NAMES = {"unknown-optimizer", "unknown-scheduler"}


def offers(text: str, target: LintTarget | None = None, name: str = "ds_config.json") -> list[Offer]:
    """What is offered at ``|``."""
    at = text.index("|")
    return completions(Text(name, text[:at] + text[at + 1 :]), at, target or make_target("0.16.4"))


def labels(text: str, target: LintTarget | None = None, name: str = "ds_config.json") -> list[str]:
    return [offer.label for offer in offers(text, target, name)]


def taken(text: str, offer: Offer) -> str:
    """The text after an offer was taken, as an editor without snippets does it."""
    text = text.replace("|", "", 1)
    text = text[: offer.start] + offer.text + text[offer.end :]
    for start, end, new in sorted(offer.beside, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def sections(schema: sch.Schema, target: LintTarget, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for key, inner in schema.get("properties", {}).items():
        words = sch.keywords(inner, target.deepspeed)
        is_right = (
            sch.exists(inner, target.deepspeed) and not inner.get("deprecated") and "dead" not in sch.facts(words)
        )
        if words.get("properties") and is_right:
            yield from sections(words, target, (*path, key))


def nested(path: tuple[str, ...], innermost: str) -> str:
    for key in reversed(path):
        innermost = f'{{"{key}": {innermost}}}'
    return innermost


def wrong(config: str, target: LintTarget, of: set[str] = WRONG) -> set[str]:
    found = lint_bytes("x.json", config.encode(), KINDS[0], target)
    return {finding.rule for finding in found} & of


def likely(words: dict[str, Any]) -> Any:
    """A right value of a key."""
    if "enum" in words:
        return words["enum"][0]
    default = words.get("default")
    if default is not None:
        return default
    by_type = {"integer": 2, "number": 0.5, "boolean": True, "string": "x", "array": [], "object": {}}
    return next((by_type[kind] for kind in sch.types(words) if kind in by_type), None)


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_are_those_that_the_linter_takes(version: str) -> None:
    target = make_target(version)
    for path in sections(sch.deepspeed_schema(), target):
        offered = set(labels(nested(path, "{|}"), target))
        schema: sch.Schema = sch.deepspeed_schema()
        for key in path:
            schema = sch.keywords(schema["properties"][key], target.deepspeed)
        for key, inner in schema.get("properties", {}).items():
            facts = sch.facts(inner)
            if "alias_of" in facts:  # the linter takes either name, one is enough
                continue
            value = json.dumps(likely(sch.keywords(inner, target.deepspeed)))
            found = wrong(nested(path, f'{{"{key}": {value}}}'), target)
            if sch.exists(inner, target.deepspeed):
                found -= {"removed-key"}  # in a later version
            assert (key in offered) == (not found), (path, key, found)


@pytest.mark.parametrize("version", VERSIONS)
def test_values_are_those_that_the_linter_takes(version: str) -> None:
    target = make_target(version, "deepspeed")
    count = 0
    for path in sections(sch.deepspeed_schema(), target):
        for key in offers(nested(path, "{|}"), target):
            text = nested(path, f'{{"{key.label}": |}}')
            for offer in offers(text, target):
                count += 1
                found = wrong(taken(text, offer), target) - {"removed-key"}  # in a later version
                assert not found, (path, key.label, offer.text)
    assert count > 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("what", ["optimizer", "scheduler"])
def test_names_and_their_parameters(what: str, version: str) -> None:
    target = make_target(version)
    names = labels(f'{{"{what}": {{"type": "|"}}}}', target)
    assert {"optimizer": "AdamW", "scheduler": "WarmupDecayLR"}[what] in names
    for name in names:
        named = f'"type": "{name}", "params": '
        assert not wrong(f'{{"{what}": {{{named}{{}}}}}}', target, NAMES), name
        for offer in offers(f'{{"{what}": {{{named}{{|}}}}}}', target):
            if offer.snippet and "${1:" in offer.snippet:
                value = offer.snippet.partition("${1:")[2].rpartition("}")[0]
                assert not wrong(f'{{"{what}": {{{named}{{"{offer.label}": {value}}}}}}}', target), (name, offer)


def test_names_come_and_go_with_versions() -> None:
    text = '{"optimizer": {"type": |}}'
    assert "Muon" not in labels(text, make_target("0.17.5"))
    assert "Muon" in labels(text, make_target("0.17.6"))
    assert "onebitadam" in labels(text, make_target("0.19.6"))
    assert "onebitadam" not in labels(text, make_target("0.19.7"))
    assert labels('{"scheduler": {"type": "WarmupDecayLR", "params": {|}}}')[0] == "total_num_steps"  # it must stand


def test_what_stands_there_is_not_offered_again() -> None:
    assert "stage" not in labels('{"zero_optimization": {"stage": 2, |}}')
    assert "stage" not in labels('{"zero_optimization": {|, "stage": 2}}')
    assert "stage" in labels('{"zero_optimization": {"st|": 2}}')
    assert "bf16" not in labels('{"bfloat16": {"enabled": true}, |}')


def test_what_does_nothing_at_this_stage_comes_last_and_says_so() -> None:
    found = offers('{"zero_optimization": {"stage": 1, |}}')
    idle = [offer.detail == "does nothing at stage 1" for offer in found]
    assert sorted(idle) == idle
    assert [offer.label for offer, does_nothing in zip(found, idle, strict=True) if does_nothing]
    assert any(offer.label == "stage3_max_live_parameters" for offer in found[idle.index(True) :])


def test_auto_is_offered_where_somebody_fills_it_in() -> None:
    text = '{"fp16": {"enabled": |}}'
    assert "auto" in labels(text, make_target("0.16.4"))
    assert "auto" in labels(text, make_target("0.16.4", "transformers"))
    assert "auto" not in labels(text, make_target("0.16.4", "deepspeed"))


# The text with the cursor, the label that is taken, and the text then.
TAKEN = [
    ('{"zero_opt|"}', "zero_optimization", '{"zero_optimization": }'),
    ('{"zero_opt|', "zero_optimization", '{"zero_optimization": '),
    ('{"zero_|opt": {}}', "zero_optimization", '{"zero_optimization": {}}'),
    ("{zero_|}", "zero_optimization", '{"zero_optimization": }'),
    ("zero_|", "zero_optimization", "zero_optimization: "),
    ('{"steps_per_print": 3\n  |\n}', "fp16", '{"steps_per_print": 3,\n  "fp16": \n}'),
    ('{"fp16": {"enabled": fa|}}', "false", '{"fp16": {"enabled": false}}'),
    ('{"fp16": {"enabled": "fa|"}}', "false", '{"fp16": {"enabled": false}}'),
    (
        '{"zero_optimization": {"offload_param": {"device": "n|"}}}',
        "nvme",
        '{"zero_optimization": {"offload_param": {"device": "nvme"}}}',
    ),
]


@pytest.mark.parametrize(("text", "label", "after"), TAKEN, ids=[case[0] for case in TAKEN])
def test_what_is_taken_replaces_what_was_begun(text: str, label: str, after: str) -> None:
    (offer,) = [offer for offer in offers(text) if offer.label == label]
    assert taken(text, offer) == after


def test_snippets() -> None:
    shown = {offer.label: offer.snippet for offer in offers('{"zero_optimization": {|\n "stage3_x": 1}}')}
    assert shown["stage"] == '"stage": ${1|0,1,2,3|},'  # another key follows
    assert shown["offload_optimizer"] == '"offload_optimizer": {$1},'
    python = {o.label: o.snippet for o in offers("import deepspeed\nds_config = {'fp16': {'|", name="train.py")}
    assert python["enabled"] == "'enabled': ${1|True,False|}"  # what is not the default comes first
    yaml = {o.label: o.snippet for o in offers("train_batch_size: 8\n|", name="ds.yaml")}
    assert yaml["fp16"] == "fp16:\n  $1"


def test_only_where_a_config_is_written() -> None:
    assert labels("x = {'a': {|", name="train.py") == []
    assert labels("import deepspeed\nx = {'a': 1, |", name="train.py") == []
    assert labels("import deepspeed\nx = {'fp16': {}, 'bf16': {}, |", name="train.py")
    assert labels("a:\n  |", name="other.yaml") == []
    assert labels('{"|"}', name="x.toml") == []
    assert labels('{"tensorboard": {"job_name": "|"}}') == ["DeepSpeedJobName"]
    assert labels('{"own": {"|"}}') == []
