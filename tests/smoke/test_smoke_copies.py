"""Of a folder only code is copied, whatever else lies in it."""

from pathlib import Path

from dsgen.smoke.adapt.folder import copy_of


def test_the_run_may_lie_inside_the_folder(tmp_path: Path) -> None:
    for name in ("train.py", "ds_config.json", "launch/torchrun.sh", "checkpoints/step-1/weights.json", "tokens.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
    inside = tmp_path / "dsgen-smoke-x" / "folder0"
    copy_of(tmp_path, inside)
    copied = {str(path.relative_to(inside)) for path in inside.rglob("*") if path.is_file()}
    assert copied == {"train.py", "ds_config.json", "launch/torchrun.sh"}


def test_what_is_not_written_yet(tmp_path: Path) -> None:
    copy_of({"train.py": "x\n", "launch/torchrun.sh": "y\n"}, tmp_path / "new")
    assert (tmp_path / "new" / "launch" / "torchrun.sh").read_text("utf-8") == "y\n"
