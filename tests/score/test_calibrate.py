"""A team's own runs tune the named constants: what moves, what does not, and what the file says."""

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import pytest
from made_runs import table

from dsgen.cli import main
from dsgen.facts.calibration import calibrated, current, read_calibration
from dsgen.facts.constants import constant, constants_as
from dsgen.facts.tables import rows
from dsgen.facts.tunable import names_of, tunable
from dsgen.score.calibrate import CLUSTER as TEAM
from dsgen.score.calibrate import LEAST_ROWS, calibrate
from dsgen.score.fit import estimate
from dsgen.score.leave_out import LIMIT, left_out
from dsgen.score.memory_fit import memory_rows
from dsgen.score.runs import read_runs
from dsgen.score.throughput_fit import ESTIMATED
from dsgen.units import GIB

CLUSTER = {"cuda_context": 1.2 * GIB, "nccl_per_rank": 2.5 * GIB}
"""A cluster whose contexts and communicators are more than twice what is stated."""
SPEC = "{model: llama-3.1-8b, hardware: {gpu: h100-80gb-sxm, gpus_per_node: 8}}"


def runs_of(folder: Path, known_constants: Mapping[str, float], count: int = 40, stray: float = 0.01) -> str:
    """Runs of a cluster that has these constants; what is measured strays by some percent."""
    chance = random.Random(5)
    made: list[dict[str, str]] = []
    for number in range(count):
        gpus = 1 if number % 2 else 8
        made.append(
            {
                "model": "GPT2-XL" if number % 3 else "small",
                "n_gpus": str(gpus),
                "dp": str(gpus),
                "sharding": "ddp" if gpus > 1 else "none",
                "hidden": "1024",
                "layers": "12",
                "heads": "16",
                "kv_heads": "16",
                "intermediate": "2816",
                "params_b": "",
                "micro_batch": str(1 + number % 4),
                "seq_len": str(512 * (1 + number % 3)),
            }
        )
    with constants_as(known_constants):
        known = [row.residual() for row in _predicted(made, folder)]
    figures = [f"{2.718281828**residual * (1 + chance.uniform(-stray, stray)):.6f}" for residual in known]
    return table(folder, *({**row, "peak_smi_gib": figure} for row, figure in zip(made, figures, strict=True)))


def _predicted(made: list[dict[str, str]], folder: Path) -> list[Any]:
    """With 1 GiB measured the residual is the logarithm of what is predicted in GiB."""
    ones = table(folder, *({**row, "peak_smi_gib": "1"} for row in made))
    return list(memory_rows(read_runs(ones).rows))


def test_a_cluster_is_found_again(tmp_path: Path) -> None:
    memory = calibrate(read_runs(runs_of(tmp_path, CLUSTER)).rows)["memory"]
    assert set(memory.tuned) <= set(names_of("memory"))
    for name, value in CLUSTER.items():
        assert memory.tuned[name].value == pytest.approx(value, rel=0.2)
    assert memory.tuned["cuda_context"].rows == 40
    assert memory.tuned["nccl_per_rank"].rows == 20
    assert memory.before is not None
    assert memory.after is not None
    assert memory.held_out is not None
    assert memory.after < memory.before / 3
    assert memory.held_out < memory.before / 2


def test_a_cluster_like_the_defaults_changes_nothing(tmp_path: Path) -> None:
    memory = calibrate(read_runs(runs_of(tmp_path, {}, stray=0.03)).rows)["memory"]
    assert not memory.tuned
    assert set(memory.kept) == set(names_of("memory"))


def test_few_runs_are_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = runs_of(tmp_path, CLUSTER, count=LEAST_ROWS - 1)
    assert main(["calibrate", file, "-o", str(tmp_path / "site.json")]) == 1
    out, err = capsys.readouterr()
    assert "7 figures; fewer than 8 say too little" in out
    assert "no constant was tuned" in err
    assert not (tmp_path / "site.json").exists()


@dataclass(frozen=True)
class Straight:
    """A figure that is 10 % above what is predicted, of which the context is a twentieth."""

    source: str = "here"

    def residual(self) -> float:
        return -0.1 + 0.05 * log(constant("cuda_context") / (GIB / 2))


def test_fewer_runs_move_less() -> None:
    """(x / log 2)^2 + 2 n |0.05 x - 0.1| / 0.05 is least where x / log(2)^2 = n, as long as rows still differ, and
    where they do not at last: x = 2."""
    moved = [log(estimate([Straight()] * n, ["cuda_context"], TEAM)["cuda_context"] * 2 / GIB) for n in (1, 2, 3, 30)]
    assert moved[:3] == pytest.approx([log(2) ** 2, 2 * log(2) ** 2, 3 * log(2) ** 2], rel=0.05)
    assert moved[3] == pytest.approx(2, rel=0.05)


def test_the_file_and_its_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, site, spec = runs_of(tmp_path, CLUSTER), tmp_path / "site.json", tmp_path / "spec.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    assert main(["calibrate", runs, "-o", str(site)]) == 0
    said = json.loads(site.read_text(encoding="utf-8"))
    digest = hashlib.sha256(Path(runs).read_bytes()).hexdigest()
    assert said["version"] == 1
    assert said["source"] == {"file": "runs.csv", "sha256": digest, "rows": 40}
    entry = said["constants"]["nccl_per_rank"]
    assert (entry["unit"], entry["default"], entry["rows"]) == ("GiB", 1.0, 20)
    assert said["errors"]["memory"]["after"] < said["errors"]["memory"]["before"]
    assert read_calibration(str(site)).values["nccl_per_rank"] == pytest.approx(entry["value"] * GIB)
    capsys.readouterr()

    def planned(*flags: str) -> dict[str, Any]:
        assert main(["plan", str(spec), "--format", "json", *flags]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    plain, tuned = planned(), planned("--calibration", str(site))
    assert plain["calibration"] is None
    assert tuned["calibration"]["source"]["sha256"] == digest
    assert "calibrated with constants of site.json (40 runs of runs.csv)" in tuned["basis"]
    framework = tuned["ledger"]["device"]["parts"]["framework"] - plain["ledger"]["device"]["parts"]["framework"]
    assert framework > 1.5 * GIB
    assert current() is None

    assert main(["score", runs, "--calibration", str(site), "--format", "json"]) == 0
    score = json.loads(capsys.readouterr().out)
    assert score["summary"]["median_error"] < said["errors"]["memory"]["before"] / 2
    assert score["calibration"]["file"] == "site.json"


GOOD: dict[str, Any] = {
    "version": 1,
    "source": {"file": "runs.csv", "sha256": "0" * 64, "rows": 40},
    "constants": {"cuda_context": {"value": 1.2, "unit": "GiB", "rows": 40}},
}


def bad(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


def entry(**changes: Any) -> str:
    return bad(constants={"cuda_context": {**GOOD["constants"]["cuda_context"], **changes}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("{", "site.json:1:2: is no JSON"),
        ("[]", "it has no 'constants'"),
        ("null", "it has no 'constants'"),
        ("\x00", "is no JSON"),
        ("[" * 100_000, "is no calibration"),
        (bad(version=2), "is a calibration of version 2; this dsgen reads 1"),
        (bad(version=True), "version True"),
        (bad(constants={}), "must be an object that names at least one"),
        (bad(constants=[]), "must be an object that names at least one"),
        (bad(constants={"cuda_contxt": {}}), "did you mean cuda_context"),
        (bad(constants={"loss_chunks": {"value": 8, "unit": "count", "rows": 9}}), "is no constant that can be tuned"),
        (entry(unit="MiB"), "is in 'MiB', but cuda_context is in 'GiB'"),
        (entry(value=-1), "-1 GiB is not between 0.1 and 2"),
        (entry(value=1e300), "is not between"),
        (entry(value=float("nan")), "NaN is no number"),
        (entry(value=float("inf")), "Infinity is no number"),
        (entry(value="1.2"), "'1.2' is no number"),
        (entry(value=True), "True is no number"),
        (entry(value=10**400), "is no"),
        (entry(rows=0), "rests on 0 runs"),
        (bad(constants={"cuda_context": 1.2}), "must say value, unit and rows"),
        (bad(source=None), "source: must say file, sha256 and rows"),
        (bad(source={"file": "a", "sha256": "b", "rows": "40"}), "source: must say"),
        ('{"version": 1, "version": 1}', "says 'version' twice"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    site, spec = tmp_path / "site.json", tmp_path / "spec.yaml"
    site.write_text(text, encoding="utf-8")
    spec.write_text(SPEC, encoding="utf-8")
    assert main(["plan", str(spec), "--calibration", str(site)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "site.json" in err
    assert "Traceback" not in err


def test_the_runs_are_not_replaced_by_constants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = Path(table(tmp_path, {}))
    before = runs.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(runs)
    for output in (runs, link):
        assert main(["calibrate", str(runs), "-o", str(output)]) == 2
        assert f"{output}: are the runs themselves" in capsys.readouterr().err
    assert runs.read_bytes() == before


def test_a_device_without_an_end_is_not_read_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    assert main(["plan", str(spec), "--calibration", "/dev/zero"]) == 2
    assert "/dev/zero: has more than 1000000 bytes" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    assert main(["plan", str(spec), "--calibration", str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read: No such file" in capsys.readouterr().err


def test_it_ends_with_the_command() -> None:
    site = {"cuda_context": 2.0 * GIB}
    before = constant("cuda_context")
    from dsgen.facts.calibration import Calibration

    with calibrated(Calibration(file="s", values=site, rows={"cuda_context": 9}, source="r", sha256="0", runs=9)):
        assert constant("cuda_context") == 2 * GIB
        assert current() is not None
    assert constant("cuda_context") == before
    assert current() is None


def test_defaults_lie_within_their_bounds() -> None:
    for each in tunable().values():
        assert each.least <= each.constant.stated <= each.most, each.constant.name
        assert each.clamped(each.constant.value) == each.constant.value


def test_every_estimated_constant_of_the_step_time_can_be_tuned() -> None:
    """A name that dsgen/score/throughput_fit.py estimates has its row in tunable.csv."""
    assert set(ESTIMATED) == set(names_of("time"))
    assert {row["name"] for row in rows("tunable")} == set(tunable())


def test_without_a_source_constants_come_from_the_others(tmp_path: Path) -> None:
    """Two clusters of 20 runs each, one with twice the context: without its own runs it is predicted less well."""
    first = read_runs(runs_of(tmp_path, {}, count=20)).rows
    (tmp_path / "b").mkdir()
    second = read_runs(runs_of(tmp_path / "b", {"cuda_context": 2 * GIB}, count=20)).rows
    both = [*first, *(replace(run, source="other", row_id=f"o{run.row_id}") for run in second)]
    found = left_out(both)["memory"]
    assert found is not None
    assert found.sources["other"].without > found.sources["other"].within
    assert found.sources["here"].count == 20
    assert found.estimated["cuda_context"] > 1.1
    assert left_out(first)["memory"] is None


def test_leave_one_out_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = [{"source_id": name, "peak_smi_gib": "64"} for name in ("a", "b")]
    assert main(["score", table(tmp_path, *twice), "--leave-one-out"]) == 0
    out = capsys.readouterr().out
    assert "mean error of a source, its constants estimated with it and without it" in out
    assert f"(bound {LIMIT})" in out
    assert main(["score", str(tmp_path / "runs.csv"), "--leave-one-out", "--format", "json"]) == 0
    memory = json.loads(capsys.readouterr().out)["leave_one_out"]["memory"]
    assert set(memory["sources"]) == {"a", "b"}
    assert memory["limit"] == LIMIT
