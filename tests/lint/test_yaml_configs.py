"""DeepSpeed configs in YAML, whole files and sections of others, by the rules of JSON and in the words of YAML."""

import json
from pathlib import Path

import pytest
from deepspeed_configs import SHARED

from dsgen.cli import main
from dsgen.lint.finding import Finding
from dsgen.lint.kinds import kind_of
from dsgen.lint.run import lint_bytes
from dsgen.lint.target import make_target

WHOLE = """\
# how much at once
train_batch_size: 8
zero_optimization:
  stage: 2
  reduce_bucket_size: 5e8
  offload_param: {device: cpu}
aio:
  thread_count: 4  # dsgen: ignore[DS110]
own: 1  # dsgen: ignore[DS110]
fp16:
  enabled: true
  loss_scale: 128
"""
HELD = "model:\n  deepspeed:\n" + "".join(f"    {line}\n" for line in WHOLE.splitlines())


def lint(text: str, name: str = "ds.yaml") -> list[Finding]:
    kind = kind_of(name)
    assert kind is not None
    return lint_bytes(name, text.encode(), kind, make_target("0.19.8"))


@pytest.mark.parametrize(("text", "down", "right", "path"), [(WHOLE, 0, 0, ()), (HELD, 2, 4, ("model", "deepspeed"))])
def test_rules_hold_with_places_and_paths(text: str, down: int, right: int, path: tuple[str, ...]) -> None:
    found = {finding.code: finding for finding in lint(text)}
    assert sorted((one.range.line - down, one.range.column - right, code) for code, one in found.items()) == [
        (5, 23, "DS111"),
        (6, 3, "DS301"),
        (8, 3, "DS114"),
        (8, 22, "DS109"),
        (12, 15, "DS402"),
    ]
    assert found["DS111"].path == (*path, "zero_optimization", "reduce_bucket_size")
    assert "text to YAML, which reads an exponent only as in 2.0e+8" in found["DS111"].message
    assert found["DS111"].help == "write 500000000"


def test_values_and_keys_are_fixed_in_place(tmp_path: Path) -> None:
    file = tmp_path / "ds.yaml"
    file.write_text(HELD, "utf-8")
    main(["lint", str(file), "--unsafe-fixes", "--deepspeed", "0.19.8"])
    expected = HELD.replace("loss_scale: 128", "loss_scale: 0").replace("      offload_param: {device: cpu}\n", "")
    # The comment hid nothing.
    expected = expected.replace("thread_count: 4  # dsgen: ignore[DS110]", "intra_op_parallelism: 4")
    assert file.read_text("utf-8") == expected


def test_every_section_counts() -> None:
    text = "a:\n  deepspeed: {train_batch_size: 8, own: 1}\nb:\n  ds_config: {train_batch_size: 8, own: 1}\n"
    assert [(finding.code, finding.path) for finding in lint(text)] == [
        ("DS110", ("a", "deepspeed", "own")),
        ("DS110", ("b", "ds_config", "own")),
    ]


def test_keys_that_stand_twice_are_taken_as_yaml_takes_them() -> None:
    (found,) = lint("train_batch_size: 8\ntrain_batch_size: 9\n")
    assert (found.severity, found.message) == (
        "warning",
        "'train_batch_size' stands twice: YAML takes the last one without a word",
    )


def test_json_under_a_yaml_name_is_read_as_its_loaders_read_it() -> None:
    assert (
        lint('{"train_batch_size": 8, // eight\n "zero_optimization": {"reduce_bucket_size": 5e8, "stage": 1}}') == []
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1\n",
        "- train_batch_size: 8\n",
        "deepspeed_config: ds.json\n",
        "training:\n  train_batch_size: 8\n  own: 1\n",
    ],
)
def test_what_is_no_config_is_left_alone(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint(text) == []
    (tmp_path / "a.yaml").write_text(text, "utf-8")
    main(["lint", str(tmp_path), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["files"] == 0


def test_folders_are_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {
        "ds.yaml": WHOLE,
        "held.yml": HELD,
        "broken.yaml": "train_batch_size: [",
        "other.yaml": "a: 1",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    main(["lint", str(tmp_path), "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == 2
    assert main(["lint", str(tmp_path / "broken.yaml")]) == 1
    assert "[DS101 file-cannot-be-read]" in capsys.readouterr().out


@pytest.mark.skipif(SHARED is None, reason="DSGEN_SHARED is unset: no corpus of real configs at hand")
def test_real_files() -> None:
    """DeepSpeed 0.19.6 was asked about each; what it refuses is an error, and nothing else is."""
    folder = Path(str(SHARED), "corpus")
    rows = [line.split("\t") for line in (folder / "INDEX.tsv").read_text("utf-8").splitlines()[1:]]
    chosen = [(row[0], row[8]) for row in rows if row[4] in ("deepspeed_yaml", "deepspeed_yaml_embedded")]
    assert len(chosen) == 10
    for name, verdict in chosen:
        kind = kind_of(name)
        assert kind is not None
        found = lint_bytes(name, (folder / name).read_bytes(), kind, make_target("0.19.6"))
        assert any(finding.severity == "error" for finding in found) == ("rejects" in verdict), name
