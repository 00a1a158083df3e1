"""Reads the imports of a package: layers, cycles, imports in functions, optional libraries."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BELOW_ALL = ("units", "_validate", "_errors", "_optional", "_files")
ORDER = (
    "region",
    "telemetry",
    "simulator",
    "models",
    "inference",
    "diagnostics",
    "descriptors",
    "encoding",
    "privacy",
    "decoding",
    "baselines",
    "evaluation",
    "audit",
    "report",
    "study",
    "pipeline",
    "cli",
)
ESTIMATORS = ("models", "inference", "encoding", "privacy", "decoding", "baselines")
# Above in the order, and still none of its business.
FORBIDDEN = {
    "inference": ("models", "simulator", "telemetry"),
    "evaluation": ESTIMATORS,
    "decoding": ("telemetry", "models", "inference", "encoding"),
}
EXTRAS = (
    "arviz",
    "blackjax",
    "h5netcdf",
    "h5py",
    "matplotlib",
    "mbi",
    "networkx",
    "opendp",
    "openpyxl",
    "osmium",
    "osmnx",
    "rasterio",
    "requests",
    "rich",
    "sklearn",
    "typer",
)
# The command line is made of its extra; its __init__ alone has to do without.
BUILT_ON = {"cli": ("rich", "typer")}


class Import(NamedTuple):
    """One imported module, by the file that imports it."""

    file: Path
    line: int
    module: str
    in_function: bool
    for_types_only: bool


def imports_of(package: Path) -> Iterator[Import]:
    """Every import of every file; names of the package's own modules in full."""
    modules = {module_name(package, file) for file in package.rglob("*.py")}
    for file in sorted(package.rglob("*.py")):
        yield from _imports_under(ast.parse(file.read_text()), file, modules)


def module_name(package: Path, file: Path) -> str:
    """Dotted name of a file of the package."""
    parts = [package.name, *file.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_under(
    node: ast.AST, file: Path, modules: set[str], *, in_function=False, for_types_only=False
) -> Iterator[Import]:
    """Imports below a node of the syntax tree."""
    for child in ast.iter_child_nodes(node):
        names: list[str] = []
        line = getattr(child, "lineno", 0)
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            base = "." * child.level + (child.module or "")
            longer = [f"{base}.{alias.name}" for alias in child.names]
            # `from package import module` is an import of the module.
            names = [name if name in modules else base for name in longer]
        for name in dict.fromkeys(names):
            yield Import(file, line, name, in_function, for_types_only)
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports_under(
            child,
            file,
            modules,
            in_function=in_function or function,
            for_types_only=for_types_only or typing,
        )


def breaches(package: Path) -> list[str]:
    """Sentences about imports that break the rules; none is what one wants."""
    found = []
    for each in imports_of(package):
        place = f"{each.file.relative_to(package)}:{each.line}"
        if each.in_function:
            found.append(f"{place} imports {each.module} inside a function")
        if each.module.startswith("."):
            found.append(f"{place} imports relatively")
        if _needs_an_extra(package, each):
            found.append(f"{place} imports the optional {each.module} directly")
        fault = _layer_fault(package, each)
        if fault:
            found.append(f"{place} {fault}")
    return found + [f"cycle: {' -> '.join(cycle)}" for cycle in cycles(package)]


def _needs_an_extra(package: Path, each: Import) -> bool:
    """Whether an import fails at run time where an optional library is missing."""
    library, here = each.module.split(".")[0], each.file.relative_to(package).parts[0]
    if library not in EXTRAS or each.for_types_only:
        return False
    return each.file.name == "__init__.py" or library not in BUILT_ON.get(here, ())


def _layer_fault(package: Path, each: Import) -> str:
    """What is wrong with one import as to the layers, or nothing."""
    here = each.file.relative_to(package).with_suffix("").parts[0]
    parts = each.module.split(".")
    if parts[0] != package.name or here == "__init__":
        return ""
    if len(parts) == 1:
        return "imports the whole package"
    there = parts[1]
    unknown = {here, there} - {*BELOW_ALL, *ORDER}
    if unknown:
        return f"is or uses {sorted(unknown)}, which has no place in the order"
    if here == there or there in BELOW_ALL:
        return ""
    if here in BELOW_ALL or ORDER.index(there) > ORDER.index(here):
        return f"imports {there}, which stands below {here}"
    if there in FORBIDDEN.get(here, ()):
        return f"imports {there}, which is none of the business of {here}"
    return ""


def cycles(package: Path) -> list[list[str]]:
    """Circles of modules that import each other, each once, however one enters it."""
    graph: dict[str, list[str]] = {}
    for each in imports_of(package):
        if not each.for_types_only:
            graph.setdefault(module_name(package, each.file), []).append(each.module)
    found: list[list[str]] = []
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            found.append([*path[path.index(module) :], module])
        elif module not in finished:
            for following in graph.get(module, ()):
                visit(following, [*path, module])
            finished.add(module)

    for module in sorted(graph):
        visit(module, [])
    return found
