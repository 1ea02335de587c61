"""The structure of the code: imports go one way, names are unique, functions stay small, start-up is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
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
    ("models",),
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
"""A part may import parts of earlier lines. Parts of one line may import each other, but not in a cycle."""

STAGES = (
    "upstream",
    "sources",
    "chunking",
    "models",
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
"""`AgentConfig.from_env` is for callers that use the agent without `Settings`."""
METRICS = "bythebook.telemetry.prometheus"
"""Sets a variable, because the library accepts its folder only from there."""
RAY = "bythebook.ingest.ray"
"""Sets two, because the library can disable its output and usage reports only there."""
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

MAX_FUNCTION_LINES, MAX_MODULE_LINES, MAX_ARGUMENTS = 60, 700, 7

TERMS_OF_ART = frozenset({"chunking", "logging", "ranking", "rendering", "rescoring", "routing", "testing", "tracing"})
"""Module names that end in -ing and that the field uses."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import of a module of this package by another one."""

    target: str
    line: int
    at_start: bool
    """True if it is executed when the module is imported: not inside a function, not only for types."""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: Path

    @property
    def part(self) -> str:
        """The part of the package: the first name below it."""
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
    """All imports of modules of this package, including those in functions and for types."""
    for node, at_start in _statements(module.tree.body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            # `from bythebook.cli import ask` imports a module, `from bythebook.errors import BookError` does not.
            home = node.module or ""
            targets = [f"{home}.{alias.name}" if f"{home}.{alias.name}" in NAMES else home for alias in node.names]
        yield from (Import(target, node.lineno, at_start) for target in targets if target in NAMES)


def _rank(part: str) -> int:
    return next((rank for rank, parts in enumerate(ORDER) if part in parts), -1)


def test_every_part_is_in_the_order() -> None:
    missing = sorted({module.part for module in MODULES if _rank(module.part) < 0})
    assert not missing, f"add these parts to ORDER: {missing}"


def test_imports_go_one_way() -> None:
    """This includes imports for types: a stage does not name what comes after it."""
    wrong = [
        f"{module}:{found.line} imports {found.target}: {NAMES[found.target].part!r} comes after {module.part!r}"
        for module in MODULES
        for found in _imports(module)
        if _rank(NAMES[found.target].part) > _rank(module.part)
        # The package's __init__ only re-exports names.
        and module.part != "__init__"
    ]
    assert not wrong, "\n".join(["a part may import only parts before it (ORDER):", *wrong])


def test_no_import_cycle_between_modules() -> None:
    graph = {
        module.name: {found.target for found in _imports(module) if found.at_start} - {module.name}
        for module in MODULES
    }
    _assert_no_cycle(graph)


def test_no_import_cycle_between_parts() -> None:
    graph: dict[str, set[str]] = {module.part: set() for module in MODULES}
    for module in MODULES:
        if module.part != "__init__":
            graph[module.part] |= {NAMES[found.target].part for found in _imports(module)} - {module.part}
    _assert_no_cycle(graph)


def _assert_no_cycle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " -> ".join(reversed(error.args[1])))


def test_the_init_of_a_stage_imports_no_third_party_package() -> None:
    foreign = [
        f"{NAMES[f'bythebook.{stage}']}:{node.lineno} imports {name}"
        for stage in STAGES
        for node, at_start in _statements(NAMES[f"bythebook.{stage}"].tree.body)
        if at_start
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "bythebook"}
    ]
    assert not foreign, "\n".join(
        ["the __init__ of a stage is its contract; import the library in an adapter:", *foreign]
    )


def test_only_settings_read_the_environment() -> None:
    readers = [
        f"{module}:{node.lineno}"
        for module in MODULES
        if module.part not in READ_THE_ENVIRONMENT and module.name not in (AGENT_CONFIG, METRICS, RAY)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.ImportFrom) and _reads_the_environment(node)
    ]
    assert not readers, "\n".join(["take a plain value as argument; settings.py reads the environment:", *readers])


def _reads_the_environment(node: ast.Attribute | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in ("os.environ", "os.getenv", "os.environb")
    return node.module == "os" and any(alias.name in ("environ", "getenv", "environb") for alias in node.names)


def test_public_class_names_are_unique() -> None:
    """One name, one thing: a class can be found by its name alone."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module))
    duplicates = [f"{name}: {', '.join(modules)}" for name, modules in sorted(places.items()) if len(modules) > 1]
    assert not duplicates, "\n".join(["give each class a more specific name:", *duplicates])


def test_module_names_are_no_gerunds() -> None:
    gerunds = [
        str(module) for module in MODULES if module.path.stem.endswith("ing") and module.path.stem not in TERMS_OF_ART
    ]
    assert not gerunds, "\n".join(["name a module with a noun of the field:", *gerunds])


Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = [(module, node) for module in MODULES for node in ast.walk(module.tree) if isinstance(node, Function)]


def test_functions_are_short() -> None:
    long = [
        f"{module}:{node.lineno} {node.name} has {lines} lines"
        for module, node in FUNCTIONS
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long, "\n".join([f"extract named steps (at most {MAX_FUNCTION_LINES} lines):", *long])


def test_modules_are_not_too_long() -> None:
    long = [
        f"{module} has {lines} lines"
        for module in MODULES
        if (lines := len(module.path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    ]
    assert not long, "\n".join([f"split along a seam of the subject (at most {MAX_MODULE_LINES} lines):", *long])


def test_functions_do_not_take_too_many_arguments() -> None:
    too_many = [
        f"{module}:{node.lineno} {node.name} takes {len(names)} arguments"
        for module, node in FUNCTIONS
        if len(names := _arguments(node)) > MAX_ARGUMENTS and module.part != "cli"
    ]
    assert not too_many, "\n".join(
        [
            f"group related arguments in a dataclass (at most {MAX_ARGUMENTS}; commands may have more options):",
            *too_many,
        ]
    )


def _arguments(node: Function) -> list[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in every if argument.arg not in ("self", "cls")]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import bythebook", id="import bythebook"),
        pytest.param("from bythebook import AgentRequest, BookError, Filters, Settings", id="the light names"),
        pytest.param(
            "import contextlib\nfrom bythebook.cli import main\nsys.argv = ['bythebook', '--help']\n"
            "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr): main()",
            id="bythebook --help",
        ),
    ],
)
def test_start_up_imports_no_heavy_package(script: str) -> None:
    script = f"import sys\n{script}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", "import it in the function that needs it"
