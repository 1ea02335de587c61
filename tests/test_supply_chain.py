"""Supply chain: dependencies are pinned with hashes, and every suppressed security rule has a reason (S11)."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bythebook.models import MODELS

ROOT = Path(__file__).parents[1]
LOCKS = sorted(ROOT.glob("requirements*.lock"))
_PIN = re.compile(r"(?P<name>[a-z0-9._-]+)(?:\[[a-z,]+\])?==(?P<version>[^\s;\\]+)")
_SET_ASIDE = re.compile(r"#\s*(?:noqa|nosec|type: ignore)\b(?P<rules>[^-\n]*)(?P<reason>- \w.*)?")


def _pins(lock: Path) -> dict[str, str]:
    """The version of each package of a lock file. Every entry must have a version and hashes."""
    pins = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip()):
        pin = _PIN.match(entry)
        assert pin, f"{lock.name}: {entry.splitlines()[0]}"
        assert "--hash=sha256:" in entry, f"{lock.name}: {pin['name']} has no hash"
        pins[pin["name"]] = pin["version"]
    return pins


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_is_pinned_with_hashes_and_without_index(lock: Path) -> None:
    assert len(_pins(lock)) > 50
    assert "://" not in lock.read_text(encoding="utf-8")


def test_the_lock_files_agree() -> None:
    kept: dict[str, str] = {}
    for pins in map(_pins, LOCKS):
        assert {name: (kept[name], pins[name]) for name in kept.keys() & pins if kept[name] != pins[name]} == {}
        kept |= pins


def test_installed_packages_are_in_a_lock_file() -> None:
    said = [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile")]
    installs = [
        line for text in said for line in text.splitlines() if re.search(r"\bpip\)? install\b|\$\(PIP\) install", line)
    ]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line and "--no-deps" not in line] == []


def test_every_suppressed_security_rule_has_a_reason() -> None:
    """`make check` applies ruff's security rules: every suppression must have a reason."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert "S" in rules["select"]
    assert not [rule for rule in rules["ignore"] if re.fullmatch(r"S\d*", rule)]
    assert not [
        rule
        for path, ignored in rules["per-file-ignores"].items()
        if path[:3] == "src"
        for rule in ignored
        if rule[0] == "S"
    ]
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            aside = _SET_ASIDE.search(line)
            if aside and re.search(r"\bS\d{3}\b", aside["rules"]):
                assert aside["reason"], f"{path.relative_to(ROOT)}: {line.strip()}"


OPTIONAL = {"cohere": "cohere", "qdrant_client": "qdrant", "ray": "ray", "asyncpg": "postgres", "httpx": "cohere"}
"""Modules of optional dependencies, each with its extra. httpx comes with the clients that need it."""
NEEDED_BY_A_DEPENDENCY = {
    "starlette",
    "pydantic",
    "pydantic_core",
    "agents",
    "typing_extensions",
    "grpc",
    "opentelemetry",
}
"""Modules that another declared dependency always brings."""


def test_every_third_party_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        re.split(r"[\[><=;~! ]", requirement)[0].lower().replace("-", "_") for requirement in project["dependencies"]
    }
    distributions = packages_distributions()
    missing = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for top in {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names, "bythebook", ""}:
                known = {name.lower().replace("-", "_") for name in distributions.get(top, [top])}
                if not known & declared and top not in {*OPTIONAL, *NEEDED_BY_A_DEPENDENCY}:
                    missing.add(f"{path.relative_to(ROOT)} imports {top}")
    assert not missing, "declare it in pyproject.toml: " + ", ".join(sorted(missing))
    assert set(OPTIONAL.values()) <= set(project["optional-dependencies"])


def test_optional_dependencies_are_imported_only_where_they_are_used() -> None:
    """An import at module level would fail on an installation without the extra."""
    homes = ("embeddings/cohere.py", "index/qdrant", "ingest/ray", "ingest/attach.py")
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "src" / "bythebook").rglob("*.py")
        if not str(path.relative_to(ROOT / "src" / "bythebook")).startswith(homes)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.partition(".")[0] in OPTIONAL
    ]
    assert not wrong


def test_the_notice_names_each_local_model_and_is_distributed() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for spec in MODELS:
        assert all(part in notice for part in (spec.title, spec.wheel.replace("==", " "), *spec.files))
    licences = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert licences == ["LICENSE", "NOTICE"]
