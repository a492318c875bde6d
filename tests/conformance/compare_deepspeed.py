"""Compares schemas/deepspeed.schema.json with the config classes of DeepSpeed releases and lists every difference.

    python tests/conformance/compare_deepspeed.py [FOLDER...]

Each FOLDER is an unpacked source release (``pip download --no-deps --no-binary :all: deepspeed==0.19.8``, then
``tar``); without one it is the installed DeepSpeed. Exit 1 where anything differs. The release is imported in a process
of its own, on torch for the CPU; nothing of it is built.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schema_sections import around, contents, files, read_elsewhere, section, sections

from dsgen.facts.versions import version_key
from dsgen.lint import schema as sch
from dsgen.lint.versions import Version

FIELDS = Path(__file__).with_name("deepspeed_fields.py")

# Read by others than DeepSpeed's parser, so its look-ups do not show them: who reads each.
READ_ELSEWHERE = {
    "allgather_size": "read_zero_config_deprecated, only with zero_optimization: true",
    "eigenvalue": "never: DeepSpeed looks for it inside quantize_training",
    "quantize_training": "DeepSpeedConfig, where compression_training quantizes weights",
    "data_parallel_size": "deepspeed.initialize",
    "inference": "transformers",
    "msamp": "accelerate",
    "sequence_parallel_size": "DeepSpeedConfig, of the config as it was handed in",
    "expert_parallel": "DeepSpeedConfig, key by key once it is enabled",
}


def release(folder: Path | None = None) -> Any:
    """What the release in a folder, or the installed one, says of itself."""
    environment = {**os.environ, "DS_ACCELERATOR": "cpu"}
    if folder:
        environment["PYTHONPATH"] = str(folder)
    ran = subprocess.run(
        [sys.executable, str(FIELDS)],
        input=json.dumps({"plain": {path: (contents(path), around(path)) for path in sections()}, "files": files()}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    if ran.returncode:
        raise SystemExit(f"{folder or 'the installed DeepSpeed'} could not be read:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout)


def differences(found: Any) -> Iterator[str]:
    """Every place where the schema says otherwise than the release does."""
    version = version_key(found["version"])
    for path, fields in found["sections"].items():
        yield from _keys(path, fields, version)
        if sch.refuses_unknown(section(path), version) != found["forbids"][path]:
            yield f"{path}: an unknown key is {'refused' if found['forbids'][path] else 'ignored'}"
        yield from (line for key, field in fields.items() for line in _field(path, key, field, version))
    for path, asked in found["lookups"].items():
        if _stands(path, version) and not sch.is_pydantic(section(path), version):
            yield from _lookups(path, asked, found["literals"], version)
    yield from _removed(found, version)
    yield from _constructors(found, version)


def _stands(path: str, version: Version) -> bool:
    """Whether a version reads a section at all: neither it nor what it stands in is gone or yet to come."""
    steps = path.split(".") if path else []
    return all(sch.exists(section(".".join(steps[: n + 1])), version) for n in range(len(steps)))


def _living(schema: Any, version: Version) -> dict[str, Any]:
    return {
        key: sch.keywords(inner, version) for key, inner in schema["properties"].items() if sch.exists(inner, version)
    }


def _keys(path: str, theirs: Any, version: Version) -> Iterator[str]:
    ours = _living(section(path), version)
    yield from (f"{path}.{key}: the release has it, the schema not" for key in theirs.keys() - ours.keys())
    yield from (f"{path}.{key}: the schema has it, the release not" for key in ours.keys() - theirs.keys())


def _field(path: str, key: str, field: Any, version: Version) -> Iterator[str]:
    ours = _living(section(path), version).get(key)
    if ours is None:
        return
    # Bounds that the engine adds later may be ours alone.
    for word, bound in field["bounds"].items():
        if ours.get(word) != bound:
            yield f"{path}.{key}: {word} is {bound}, in the schema {ours.get(word)}"
    if field["default"] is not None and ours.get("default") != field["default"]:
        yield f"{path}.{key}: default is {field['default']!r}, in the schema {ours.get('default')!r}"
    types = set(field["types"]) - {"null"}
    if types and types != set(sch.types(ours)) - {"null"}:
        yield f"{path}.{key}: type is {sorted(types)}, in the schema {sch.types(ours)}"
    if field["enum"] and set(field["enum"]) != set(ours.get("enum", field["enum"])) and "maximum" not in ours:
        yield f"{path}.{key}: one of {field['enum']}, in the schema {ours.get('enum')}"


def _lookups(path: str, asked: Any, literals: Any, version: Version) -> Iterator[str]:
    schema = section(path)
    ours = _living(schema, version)
    at = f"{path}." if path else ""
    for key, said in asked.items():
        if key not in ours:
            # A check that a key is absent asks for it as well.
            if sch.facts(schema["properties"].get(key, {})).get("then") != "refused":
                yield f"{at}{key}: the release reads it, the schema has it not"
        elif said and said["default"] is not None and ours[key].get("default") != said["default"]:
            yield f"{at}{key}: default is {said['default']!r}, in the schema {ours[key].get('default')!r}"
    for key in ours.keys() - asked.keys() - (READ_ELSEWHERE.keys() if not path else set()):
        if "dead" in sch.facts(section(path)["properties"][key]):
            continue
        reader = read_elsewhere(path, key)
        if reader and key not in literals.get(reader, ()):
            yield f"{at}{key}: the schema has it, {reader} of the release does not read it"
        elif not reader:
            yield f"{at}{key}: the schema has it, the release does not read it"


def _removed(found: Any, version: Version) -> Iterator[str]:
    for path, removed in (("", found["removed"]), ("zero_optimization", found["removed_zero"])):
        marked = {
            key
            for key, inner in section(path)["properties"].items()
            if sch.facts(inner).get("then") == "refused"
            and not sch.exists(inner, version)
            and not _is_later(inner, version)
        }
        for key in marked ^ set(removed):
            yield f"{path or 'the top level'}: {key!r} is {'not ' if key in marked else ''}refused as removed"


def _is_later(schema: Any, version: Version) -> bool:
    return bool(version < version_key(sch.facts(schema).get("since", "0")))


def _constructors(found: Any, version: Version) -> Iterator[str]:
    cases = sch.facts(section("scheduler"))["variants"]["cases"]
    for name in cases.keys() ^ found["schedules"].keys():
        yield f"scheduler {name}: only in one of schema and release"
    for name, theirs in found["schedules"].items():
        schema = sch.resolve(cases[name])
        ours = _living(schema, version)
        for key in ours.keys() ^ theirs.keys():
            yield f"scheduler {name}: {key!r} only in one of schema and release"
        required = {key for key, default in theirs.items() if default == "required"}
        if required != set(schema.get("required", ())):
            yield f"scheduler {name}: needs {sorted(required)}, in the schema {schema.get('required')}"
        for key in theirs.keys() & ours.keys() - required:
            default = ours[key].get("default")
            if default != theirs[key]:
                yield f"scheduler {name}: {key} is {theirs[key]!r} by default, in the schema {default!r}"
    variants = sch.facts(section("optimizer"))["variants"]
    known = {
        name
        for name in variants["cases"]
        if version >= version_key(variants["since"].get(name, "0"))
        and version < version_key(variants["until"].get(name, "9999"))
    }
    for name in known ^ set(found["names"]):
        yield f"optimizer {name}: only in one of schema and release"
    for name, classes in found["optimizers"].items():
        living = _living(sch.resolve(variants["cases"][name]), version)
        for key in {key for theirs in classes for key in theirs} - living.keys():
            yield f"optimizer {name}: the release takes {key!r}, the schema not"


def main() -> int:
    """Prints the differences of each release; 1 where there are any."""
    differ = False
    for folder in [Path(word).resolve() for word in sys.argv[1:]] or [None]:
        found = release(folder)
        lines = sorted(differences(found))
        said = [
            f"DeepSpeed {found['version'].strip()}: {len(lines) or 'no'} differences",
            *(f"  {line}" for line in lines),
        ]
        sys.stdout.write("\n".join(said) + "\n")
        differ = differ or bool(lines)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
