"""The house keeps its shape: imports point up, files stay short, and heavy libraries load late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigrad

PACKAGE = Path(minigrad.__file__).parent
ROOT = PACKAGE.parent

# In the order in which data passes through them: a module imports only what stands before it.
ORDER = """
errors paths axes indices windows kernel_source kernels card op domains ops.* ops graph events pull
checkpoint store backward tensor optim operators numeric compare report check gradcheck prove
reference trace sound trace_file lesson view.* view ui.* ui __main__ __init__
""".split()
SIBLINGS = ("view", "ui")  # families whose members may import each other; ops may not
ONLY_IN = {"numba": ("kernels",), "streamlit": ("ui", "app"), "matplotlib": ("view",)}
HEAVY = ("numba", "streamlit", "graphviz", "pygraphviz", "matplotlib")


# --- who imports whom -----------------------------------------------------------------------------


def modules(package: Path) -> dict[str, Path]:
    """Every module by its dotted name inside the package; `ops/__init__.py` is ops."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    return found


def imports(name: str, path: Path, package: Path) -> Iterator[str]:
    """What a module imports, anywhere in it: ".graph" for one of ours, "numba" for a stranger."""
    names = modules(package)
    family = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    family = [] if name == "__init__" else family
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = family[: len(family) - node.level + 1]
            base = [package.name, *base, *([node.module] if node.module else [])]
            targets = [(".".join(base), alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for module, member in targets:
            first, _, inside = module.partition(".")
            if first != package.name:
                yield first
            else:
                longer = f"{inside}.{member}" if inside else member
                yield "." + (longer if longer in names else inside or "__init__")


def rank(name: str) -> int:
    """The place of a module in ORDER. Raises ValueError for a module without one."""
    family = name.split(".")[0] + ".*" if "." in name else name
    return ORDER.index(family)


def broken(package: Path) -> list[str]:
    """Every import that the layers forbid, in words."""
    found = []
    for name, path in modules(package).items():
        family = name.split(".")[0]
        for target in imports(name, path, package):
            if not target.startswith("."):
                homes = ONLY_IN.get(target)
                fine = homes is None or family in homes
            else:
                target = target[1:]
                sibling = "." in name and target.split(".")[0] == family
                fine = rank(target) < rank(name) or (sibling and family in SIBLINGS)
            if not fine:
                found.append(f"{name} imports {target}")
    return found


def test_every_module_imports_only_what_stands_above_it() -> None:
    assert broken(PACKAGE) == []


def test_the_layers_were_read_at_all() -> None:
    names = modules(PACKAGE)
    assert {"errors", "kernels", "ops", "ops.reduce", "view.frame", "__init__"} <= names.keys()
    assert ".graph" in imports("pull", names["pull"], PACKAGE)
    assert "numba" in imports("kernels", names["kernels"], PACKAGE)
    assert ".lesson" in imports("view.show", names["view.show"], PACKAGE)


@pytest.mark.parametrize(
    "module, line, expected",
    [
        ("graph", "from .tensor import Tensor", ["graph imports tensor"]),
        ("graph", "from . import tensor", ["graph imports tensor"]),
        ("graph", "import minigrad.tensor", ["graph imports tensor"]),
        ("graph", "from minigrad import tensor", ["graph imports tensor"]),
        ("graph", "import minigrad", ["graph imports __init__"]),
        ("graph", "def late():\n    from .tensor import Tensor", ["graph imports tensor"]),
        ("ops.one", "from .two import helper", ["ops.one imports ops.two"]),
        ("ops.one", "from ..tensor import Tensor", ["ops.one imports tensor"]),
        ("view.one", "import streamlit as st", ["view.one imports streamlit"]),
        ("graph", "def late():\n    from numba import njit", ["graph imports numba"]),
        ("graph", "from .errors import MinigradError", []),
        ("ops.one", "from ..axes import axes_of", []),
        ("view.one", "from .two import helper", []),
        ("ui.one", "import streamlit as st", []),
        ("kernels", "import numba", []),
    ],
)
def test_a_forbidden_import_is_noticed(module: str, line: str, expected: list, tmp_path: Path):
    package = tmp_path / "minigrad"
    for name in ("errors", "axes", "kernels", "graph", "tensor", "ops.two", "view.two", module):
        path = package / (name.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line if name == module else "")
    (package / "__init__.py").write_text("")
    assert broken(package) == expected


def test_a_module_without_a_place_is_noticed(tmp_path: Path) -> None:
    package = tmp_path / "minigrad"
    package.mkdir()
    (package / "helpers.py").write_text("from . import errors")
    (package / "errors.py").write_text("")
    with pytest.raises(ValueError, match="helpers"):
        broken(package)


# --- files ----------------------------------------------------------------------------------------

FILES = [*modules(PACKAGE).values(), ROOT / "app.py", *sorted((ROOT / "lessons").glob("*.py"))]


def complaints(path: Path) -> list[str]:
    """What is wrong with a file: its length, or its first line."""
    text = path.read_text(encoding="utf-8")
    opening = "#" if path.parent.name == "lessons" else '"""'
    found = []
    if len(text.splitlines()) > 300:
        found.append("longer than 300 lines")
    if not text.startswith(opening):
        found.append(f"does not start with {opening}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_short_and_says_first_what_it_is(path: Path) -> None:
    assert complaints(path) == []


def test_a_long_file_without_a_docstring_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * 301)
    assert complaints(tmp_path / "long.py") == [
        "longer than 300 lines",
        'does not start with """',
    ]


# --- what an import loads -------------------------------------------------------------------------


def loaded_by(code: str) -> set[str]:
    """Which heavy libraries a fresh interpreter has loaded after running `code`."""
    program = f"import sys\n{code}\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


SMALL = "x = minigrad.tensor([1.0], requires_grad=True); minigrad.sum(x * x).backward()"


@pytest.mark.parametrize("code", ["import minigrad", f"import minigrad; {SMALL}"])
def test_importing_minigrad_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) == set()


@pytest.mark.parametrize("library", ["numba", "graphviz"])
def test_a_heavy_import_would_be_noticed(library: str) -> None:
    assert library in loaded_by(f"import minigrad, {library}")
