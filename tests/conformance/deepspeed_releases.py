"""Source releases of DeepSpeed, unpacked; nothing of them is built or installed."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

RELEASES = ("0.14.4", "0.14.5", "0.15.4", "0.16.4", "0.16.9", "0.17.6", "0.18.9", "0.19.8")
"""The last ones of each series that the schema knows, and one that many projects pin. 0.14.0 to 0.14.3 import names
that torch 2.13 and numpy 2 no longer have: with stand_ins.py they parse; mutations were not run on them."""

CACHE = "DSGEN_DEEPSPEED_RELEASES"
"""Environment variable: the folder in which unpacked releases are kept from run to run."""


def unpacked(version: str, folder: Path) -> Path:
    """The folder of a release: from the cache, or fetched; skips the test where neither is at hand."""
    folder = Path(os.environ.get(CACHE, folder))
    place = folder / f"deepspeed-{version}"
    if not place.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        archive = _fetched(version, folder)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return place


def _fetched(version: str, folder: Path) -> Path:
    # pip reads a source release's metadata by its setup.py, which wants the torch that is installed.
    flags = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--quiet", "--dest", str(folder))
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "download", *flags, f"deepspeed=={version}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if ran.returncode:
        said = ran.stderr.strip().splitlines()[-1:]
        import pytest  # late: the comparison runs without it

        pytest.skip(f"DeepSpeed {version} is not in {CACHE} and cannot be fetched: {' '.join(said)}")
    return folder / f"deepspeed-{version}.tar.gz"
