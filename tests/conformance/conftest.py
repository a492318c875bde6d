"""Configs for the conformance tests are those of the linter's own tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lint"))
