"""What others give us is what we looked at, and what could be dangerous says why it is not (S11)."""

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
    """Each library of a lock with its version. Everything in it must be one, with a hash for each of its files."""
    pins = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip()):
        pin = _PIN.match(entry)
        assert pin, f"{lock.name}: {entry.splitlines()[0]}"
        assert "--hash=sha256:" in entry, f"{lock.name}: {pin['name']} has no hash"
        pins[pin["name"]] = pin["version"]
    return pins


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_library_is_one_version_with_its_hashes_from_wherever_it_comes(lock: Path) -> None:
    assert len(_pins(lock)) > 50
    assert "://" not in lock.read_text(encoding="utf-8")


def test_the_locks_agree() -> None:
    kept: dict[str, str] = {}
    for pins in map(_pins, LOCKS):
        assert {name: (kept[name], pins[name]) for name in kept.keys() & pins if kept[name] != pins[name]} == {}
        kept |= pins


def test_whatever_is_installed_is_in_a_lock() -> None:
    said = [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile")]
    installs = [
        line for text in said for line in text.splitlines() if re.search(r"\bpip\)? install\b|\$\(PIP\) install", line)
    ]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line and "--no-deps" not in line] == []


def test_a_security_rule_is_set_aside_only_with_a_reason() -> None:
    """`make check` holds all of ours against ruff's rules for security: what breaks one must say why it may."""
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
