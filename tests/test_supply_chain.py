"""Supply chain: dependencies are pinned with hashes, and every suppressed security rule has a reason (S11)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

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
