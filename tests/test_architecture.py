"""The shape of the code: imports go one way, files and functions stay small, starting is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import bythebook

ROOT = Path(bythebook.__file__).parent

ORDER = (
    ("errors", "serialization", "telemetry", "concurrency"),
    ("upstream",),
    ("sources",),
    ("chunking",),
    ("embeddings",),
    ("index",),
    ("retrieval",),
    ("database",),
    ("conversations",),
    ("answers",),
    ("llm",),
    ("access", "feedback"),
    ("ingest",),
    ("settings",),
    ("qa",),
    ("book", "admin"),
    ("server", "mcp", "evals"),
    ("cli", "testing", "__main__", "__init__"),
)
"""A part may use parts of an earlier line; parts of one line may use each other, but not in a circle."""

STAGES = (
    "upstream",
    "sources",
    "chunking",
    "embeddings",
    "index",
    "retrieval",
    "conversations",
    "answers",
    "llm",
    "qa",
    "access",
    "feedback",
    "ingest",
)
READ_THE_ENVIRONMENT = ("settings", "cli")
AGENT_CONFIG = "bythebook.llm.config"
"""Has a door of its own, `AgentConfig.from_env`, for those who use the agent without the settings."""
METRICS = "bythebook.telemetry.prometheus"
"""Sets a variable, for a library that takes a folder from nowhere else."""
RAY = "bythebook.ingest.ray"
"""Sets two, for a library that is told from nowhere else to be quiet and to keep its figures to itself."""
HEAVY = (
    "prometheus_client",
    "opentelemetry",
    "numpy",
    "onnxruntime",
    "qdrant_edge",
    "qdrant_client",
    "openai",
    "sqlalchemy",
    "tokenizers",
    "markdown_it",
    "rich",
    "agents",
    "fastapi",
    "httpcore2",
    "cohere",
    "ray",
)

LONGEST_FUNCTION, LONGEST_MODULE, MOST_ARGUMENTS = 60, 700, 7


@dataclass(frozen=True, slots=True)
class Import:
    """One module of ours that another one names."""

    target: str
    line: int
    at_start: bool
    """Whether it happens as soon as the module is imported: not inside a function, not only for types."""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: Path

    @property
    def part(self) -> str:
        """Which part of the package it is in: the first name below the package."""
        inner = self.path.relative_to(ROOT).parts[0]
        return inner.removesuffix(".py")

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.path)

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT.parent))


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _modules() -> list[Module]:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = ["bythebook", *path.relative_to(ROOT).with_suffix("").parts]
        found.append(Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


MODULES = _modules()
NAMES = {module.name: module for module in MODULES}


def _statements(body: list[ast.stmt], *, at_start: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, at_start
            continue
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.ExceptHandler)]
        for child in inner:
            nested = child.body if isinstance(child, ast.ExceptHandler) else [child]
            yield from _statements(nested, at_start=at_start and not inside and not for_types)


def _imports(module: Module) -> Iterator[Import]:
    """Every module of ours that is imported, at any time, for any reason."""
    for node, at_start in _statements(module.tree.body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            # `from bythebook.cli import ask` names a module, `from bythebook.errors import BookError` does not.
            home = node.module or ""
            targets = [f"{home}.{alias.name}" if f"{home}.{alias.name}" in NAMES else home for alias in node.names]
        yield from (Import(target, node.lineno, at_start) for target in targets if target in NAMES)


def _rank(part: str) -> int:
    return next((rank for rank, parts in enumerate(ORDER) if part in parts), -1)


def test_every_part_has_its_place() -> None:
    homeless = sorted({module.part for module in MODULES if _rank(module.part) < 0})
    assert not homeless, f"say in ORDER where these stand in the flow: {homeless}"


def test_imports_go_one_way() -> None:
    """Also those that are for types only: a stage does not even name what comes after it."""
    wrong = [
        f"{module}:{found.line} imports {found.target}: {NAMES[found.target].part!r} comes after {module.part!r}"
        for module in MODULES
        for found in _imports(module)
        if _rank(NAMES[found.target].part) > _rank(module.part)
        # The package's own file only passes names on.
        and module.part != "__init__"
    ]
    assert not wrong, "\n".join(["a part may use only what comes before it (ORDER):", *wrong])


def test_no_module_is_imported_in_a_circle() -> None:
    graph = {
        module.name: {found.target for found in _imports(module) if found.at_start} - {module.name}
        for module in MODULES
    }
    _assert_no_circle(graph)


def test_no_part_needs_itself_by_way_of_another() -> None:
    graph: dict[str, set[str]] = {module.part: set() for module in MODULES}
    for module in MODULES:
        if module.part != "__init__":
            graph[module.part] |= {NAMES[found.target].part for found in _imports(module)} - {module.part}
    _assert_no_circle(graph)


def _assert_no_circle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("imports go in a circle: " + " -> ".join(reversed(error.args[1])))


def test_the_first_file_of_a_stage_imports_nothing_foreign() -> None:
    foreign = [
        f"{NAMES[f'bythebook.{stage}']}:{node.lineno} imports {name}"
        for stage in STAGES
        for node, at_start in _statements(NAMES[f"bythebook.{stage}"].tree.body)
        if at_start
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "bythebook"}
    ]
    assert not foreign, "\n".join(["a stage's __init__ is its contract; put the library in an adapter:", *foreign])


def test_only_settings_read_the_environment() -> None:
    readers = [
        f"{module}:{node.lineno}"
        for module in MODULES
        if module.part not in READ_THE_ENVIRONMENT and module.name not in (AGENT_CONFIG, METRICS, RAY)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.ImportFrom) and _reads_the_environment(node)
    ]
    assert not readers, "\n".join(["take a plain value instead, and let settings.py read it:", *readers])


def _reads_the_environment(node: ast.Attribute | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in ("os.environ", "os.getenv", "os.environb")
    return node.module == "os" and any(alias.name in ("environ", "getenv", "environb") for alias in node.names)


Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = [(module, node) for module in MODULES for node in ast.walk(module.tree) if isinstance(node, Function)]


def test_functions_are_small_enough_to_hold_in_the_head() -> None:
    long = [
        f"{module}:{node.lineno} {node.name} has {lines} lines"
        for module, node in FUNCTIONS
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join([f"find the steps and give each a name (at most {LONGEST_FUNCTION} lines):", *long])


def test_modules_are_small_enough_to_read_at_once() -> None:
    long = [
        f"{module} has {lines} lines"
        for module in MODULES
        if (lines := len(module.path.read_text(encoding="utf-8").splitlines())) > LONGEST_MODULE
    ]
    assert not long, "\n".join([f"find the second subject and move it out (at most {LONGEST_MODULE} lines):", *long])


def test_functions_do_not_ask_for_too_much() -> None:
    greedy = [
        f"{module}:{node.lineno} {node.name} takes {len(names)} arguments"
        for module, node in FUNCTIONS
        if len(names := _arguments(node)) > MOST_ARGUMENTS and module.part != "cli"
    ]
    assert not greedy, "\n".join(
        [f"make a noun of what belongs together (at most {MOST_ARGUMENTS}; a command's options may be more):", *greedy]
    )


def _arguments(node: Function) -> list[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in every if argument.arg not in ("self", "cls")]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import bythebook", id="import bythebook"),
        pytest.param("from bythebook import AgentRequest, BookError, Filters, Settings", id="its light names"),
        pytest.param(
            "import contextlib\nfrom bythebook.cli import main\nsys.argv = ['bythebook', '--help']\n"
            "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr): main()",
            id="bythebook --help",
        ),
    ],
)
def test_starting_imports_nothing_heavy(script: str) -> None:
    script = f"import sys\n{script}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "import it inside the function that needs it"
