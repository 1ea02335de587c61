"""The container files, checked without a container engine: everything they name exists, and they contain no secret."""

from __future__ import annotations

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from bythebook.cli.app import app
from bythebook.settings import FIELDS, PREFIX, TABLE, Settings

ROOT = Path(__file__).parents[1]
MANUALS = ("docker.md", "operating.md", "observing.md", "keys.md")


def _instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile with its arguments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in pairs]


INSTRUCTIONS = _instructions()
LAST_STAGE = INSTRUCTIONS[max(n for n, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM") :]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVER = COMPOSE["services"]["bythebook"]


def _of(name: str, instructions: list[tuple[str, str]] = INSTRUCTIONS) -> list[str]:
    return [rest for found, rest in instructions if found == name]


def _variables(instructions: list[tuple[str, str]]) -> dict[str, str]:
    pairs = [part.partition("=") for rest in _of("ENV", instructions) for part in shlex.split(rest)]
    return {name: value for name, _, value in pairs}


def _copied() -> list[str]:
    """The paths that are copied from the project folder."""
    return [path for rest in _of("COPY") if "--from" not in rest for path in shlex.split(rest)[:-1]]


def _ignored(path: str) -> bool:
    """True if `.dockerignore` excludes a path. The last matching line decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and line[0] != "#" and (fnmatch(path, pattern) or fnmatch(f"/{path}", pattern.replace("**", "*"))):
            ignored = line[0] != "!"
    return ignored


def _parse(arguments: list[str]) -> None:
    """Fail if the command line does not accept these arguments. Nothing is run."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("bythebook", list(arguments), resilient_parsing=False)
    while rest := [*context._protected_args, *context.args]:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            return


@pytest.mark.parametrize("path", _copied())
def test_copied_paths_exist_and_are_not_ignored(path: str) -> None:
    assert (ROOT / path).exists()
    assert not _ignored(path)


@pytest.mark.parametrize("path", [".git", ".env", ".venv", "tests", ".bythebook", "src/.env", "src/bythebook/a.pyc"])
def test_other_paths_are_not_in_the_build_context(path: str) -> None:
    assert _ignored(path)


def test_packages_are_installed_with_hashes() -> None:
    (lock,) = [rest for rest in _of("RUN") if "--requirement" in rest]
    assert "--require-hashes" in lock
    text = (ROOT / "requirements-server.lock").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))
    assert {"asyncpg", "fastapi", "opentelemetry-exporter-otlp-proto-http", "hatchling"} <= pinned
    assert text.count("==") <= text.count("--hash=sha256:")
    ours = set(re.findall(r"^([a-z0-9._-]+==[^ ;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    theirs = set(re.findall(r"^([a-z0-9._-]+==[^ ;]+)", text, re.MULTILINE))
    assert ours <= theirs, f"run 'make lock': {sorted(ours - theirs)}"


def test_the_image_does_not_run_as_root() -> None:
    (user,) = _of("USER", LAST_STAGE)
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    names = [name for name, _ in LAST_STAGE]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name == "RUN")


def test_the_health_check_uses_an_existing_route() -> None:
    from bythebook.server.routes import health

    (check,) = _of("HEALTHCHECK", LAST_STAGE)
    script = json.loads(check.partition("CMD ")[2])[-1]
    compile(script, "HEALTHCHECK", "exec")
    (address,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", script)
    assert address == (_variables(LAST_STAGE)["BYTHEBOOK_PORT"], "/health/ready")
    assert address[1] in {getattr(route, "path", "") for route in health.router.routes}
    assert _of("EXPOSE", LAST_STAGE) == [address[0]]


def test_the_commands_of_the_containers_are_valid() -> None:
    assert json.loads(*_of("ENTRYPOINT", LAST_STAGE)) == ["bythebook"]
    _parse(json.loads(*_of("CMD", LAST_STAGE)))
    _parse(SERVER["command"])
    with pytest.raises(Exception, match="No such option"):
        _parse(["serve", "--no-such-option"])


def test_the_settings_of_the_containers_are_valid(tmp_path: Path) -> None:
    image = {name: value for name, value in _variables(LAST_STAGE).items() if name.startswith(PREFIX)}
    server = {name: _filled(value) for name, value in SERVER["environment"].items()}
    given = {name.removeprefix(PREFIX).lower(): value for name, value in (image | server).items()}
    settings = Settings.load(given, folder=tmp_path)
    assert settings.database_url == "postgresql://bythebook:given@postgres:5432/bythebook"
    assert (settings.data_dir, settings.host) == (Path("/data"), "0.0.0.0")  # noqa: S104 - inside a container


def _filled(value: str) -> str:
    """A value of the compose file with its variables replaced by given values or defaults."""
    value = re.sub(r"\$\{\w+:\?[^}]*\}", "given", value)
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def test_the_compose_file_references_only_what_it_defines() -> None:
    services, volumes = COMPOSE["services"], set(COMPOSE["volumes"])
    used = {mount.partition(":")[0] for service in services.values() for mount in service.get("volumes", [])}
    assert {name for name in used if not name.startswith(".")} == volumes
    assert (ROOT / SERVER["build"] / "Dockerfile").is_file()
    assert set(SERVER["depends_on"]) <= set(services)
    assert all("healthcheck" in services[name] for name in SERVER["depends_on"])
    assert f"@{next(iter(SERVER['depends_on']))}:" in SERVER["environment"]["BYTHEBOOK_DATABASE_URL"]
    # Volumes of other images are mounted at the folders that these images define.
    assert {mount.split(":")[1] for mount in SERVER["volumes"]} == {"/book", *_of("VOLUME", LAST_STAGE)}


def test_every_image_has_a_version() -> None:
    images = [service["image"] for service in COMPOSE["services"].values() if "image" in service]
    assert all(re.search(r":v?\d", image) for image in [*images, *(rest.split()[0] for rest in _of("FROM"))])


def test_the_published_port_is_bound_to_localhost() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_secret_is_in_the_files() -> None:
    secret = re.compile(r"password|secret|token|api_?key", re.IGNORECASE)
    assert not [rest for name, rest in INSTRUCTIONS if name in ("ENV", "ARG") and secret.search(rest)]
    given = [
        value
        for service in COMPOSE["services"].values()
        for name, value in service.get("environment", {}).items()
        if secret.search(name) or "://" in str(value)
    ]
    assert given
    assert all(re.search(r"\$\{\w+:[?-]", value) for value in given)
    assert not [known for known in FIELDS if TABLE[known].get("secret") and PREFIX + known.upper() in str(_of("ENV"))]


@pytest.mark.parametrize("manual", MANUALS)
def test_the_commands_and_settings_of_the_manual_exist(manual: str) -> None:
    text = (ROOT / "docs" / manual).read_text(encoding="utf-8")
    named = {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", text)}
    assert named <= set(FIELDS)
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    names = "|".join(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    commands = [found for block in blocks for found in re.findall(rf"[ /]bythebook ((?:{names})\b.*)", block)]
    assert commands
    for command in commands:
        _parse(shlex.split(command))


def test_the_unit_and_proxy_examples_of_the_manual_are_valid() -> None:
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=\S+/bythebook (.*)$", text, re.MULTILINE)
    _parse(shlex.split(command))
    assert f"http://127.0.0.1:{Settings().port};" in text
    assert f"`heartbeat_seconds`, {Settings().heartbeat_seconds:.0f} by default" in text
    stop = int(re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[0])
    assert stop > Settings().shutdown_seconds + 5
    assert int(SERVER["stop_grace_period"].removesuffix("s")) > Settings().shutdown_seconds
