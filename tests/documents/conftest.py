import os
from pathlib import Path

import pytest
from document_texts import JSON, PLAIN


def shared_folder() -> Path | None:
    shared = os.environ.get("DSGEN_SHARED")
    return Path(shared) if shared else None


def corpus_texts() -> list[str]:
    """Texts of all real config files at hand, as a reader opens them; two of our own where there are none."""
    shared = shared_folder()
    files = sorted((shared / "corpus").rglob("*.json")) if shared else []
    return [PLAIN, JSON, *(file.read_text(encoding="utf-8") for file in files)]


@pytest.fixture(scope="session")
def real_texts() -> list[str]:
    if shared_folder() is None:
        pytest.skip("DSGEN_SHARED is unset: no corpus of real configs at hand")
    return corpus_texts()
