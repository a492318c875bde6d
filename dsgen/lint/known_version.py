"""A DeepSpeed version that the schema knows, from how people write it."""

from dsgen.errors import InputError
from dsgen.lint import schema as sch
from dsgen.lint import versions
from dsgen.lint.versions import Version


def known_version(text: str | None) -> Version:
    """The version in ``0.16.4`` or ``deepspeed==0.16.4``; the newest known where nothing is written.

    Raises:
        InputError: no version, one of another library, or one of which the schema says nothing.
    """
    known = sch.deepspeed_schema()["x-dsgen"]
    library, _, number = (text or sch.newest()).rpartition("==")
    if library.strip() not in ("", "deepspeed"):
        raise InputError.at(f"{text!r} is no version of DeepSpeed", help=f"write deepspeed=={known['newest']}")
    version = versions.parse(number)
    if versions.before(version, known["oldest"]) or version > versions.parse(known["newest"]):
        raise InputError.at(
            f"DeepSpeed {versions.show(version)} is not known here",
            help=f"write a version from {known['oldest']} to {known['newest']}",
        )
    return version
