"""Write docs/reference, a page for every package:  python docs/scripts/reference.py

Every public name (`__all__`) with its signature as it is written in the source, its docstring, its fields or methods,
and an example from docs/scripts/examples, which the tests run. Plain Markdown, so that any site generator shows it and
the tests can check it without one. Names are looked up in the syntax trees: annotations keep their shapes, and strings
below constants are their documentation.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import ssno

ROOT = Path(__file__).parents[2]
REFERENCE, EXAMPLES = ROOT / "docs" / "reference", Path(__file__).parent / "examples"
WIDE = 100
GENERATED = "<!-- Written by docs/scripts/reference.py from docstrings: change those, not this file. -->\n"
SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields):\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
ARGUMENT = re.compile(r"^(\s*)([\w*, ]+?):\s(.*)$")


@dataclass(frozen=True)
class PublicName:
    """A name that a package exports, where it is defined, and what the source says about it."""

    package: str
    name: str
    value: Any
    module: str
    node: ast.stmt | None
    comment: str
    """The string below a constant or a type."""

    @property
    def documentation(self) -> str:
        """The docstring, or the string below."""
        own = isinstance(self.node, ast.ClassDef | ast.FunctionDef)
        return inspect.cleandoc(ast.get_docstring(self.node) or "") if own else self.comment  # type: ignore[arg-type]


def packages() -> list[str]:
    """All packages with public names, the top level first."""
    inner = sorted(found.name for found in pkgutil.iter_modules(ssno.__path__) if found.ispkg)
    return ["ssno", *(f"ssno.{name}" for name in inner if hasattr(importlib.import_module(f"ssno.{name}"), "__all__"))]


@cache
def public_names(package: str) -> list[PublicName]:
    """What a package exports, in the order of its `__all__`."""
    module = importlib.import_module(package)
    return [find(package, name, getattr(module, name)) for name in module.__all__]


def find(package: str, name: str, value: Any) -> PublicName:
    """The place in the source that defines a name, following imports."""
    place, wanted = package, name
    if inspect.isclass(value) or inspect.isfunction(value):
        place, wanted = value.__module__, value.__name__
    for _ in range(5):
        statements = tree(place).body
        for number, node in enumerate(statements):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == wanted:
                return PublicName(package, name, value, place, node, "")
            if wanted in assigned(node):
                after = statements[number + 1] if number + 1 < len(statements) else None
                return PublicName(package, name, value, place, node, string_of(after))
        origin = [
            n for n in statements if isinstance(n, ast.ImportFrom) and wanted in {a.asname or a.name for a in n.names}
        ]
        if not origin:
            break
        alias = next(a for a in origin[0].names if (a.asname or a.name) == wanted)
        place, wanted = origin[0].module or place, alias.name
    return PublicName(package, name, value, place, None, "")


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def assigned(node: ast.stmt) -> list[str]:
    """Names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def string_of(node: ast.stmt | None) -> str:
    """The text of a string that stands alone."""
    found = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if found else ""  # type: ignore[union-attr]


@cache
def examples() -> dict[str, dict[str, str]]:
    """Doctests by package and name; a heading may list several names that one example uses."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(EXAMPLES.glob("*.md")):
        package = "ssno" if path.stem == "ssno" else f"ssno.{path.stem}"
        for heading, body in re.findall(
            r"^## ([^\n]+)\n\n(.*?)(?=^## |\Z)", path.read_text(), re.DOTALL | re.MULTILINE
        ):
            for name in heading.split(", "):
                found.setdefault(package, {})[name] = body.strip()
    return found


def package_page(package: str) -> str:
    """The reference of one package."""
    names = public_names(package)
    module = importlib.import_module(package)
    rows = [f"| [{escaped_name(one.name)}](#{anchor(one.name)}) | {first_line(one.documentation)} |" for one in names]
    parts = [
        f"# {package}\n\n{markdown(inspect.getdoc(module) or '')}\n",
        GENERATED,
        "\n".join(["| name | what it is |", "| --- | --- |", *rows]) + "\n",
    ]
    shown: dict[str, str] = {}
    for one in names:
        parts.append(entry(one, shown))
    background = background_of(package, names)
    return "\n".join([*parts, background]).rstrip() + "\n"


def entry(one: PublicName, shown: dict[str, str]) -> str:
    """A name: signature, documentation, fields, methods, example, source."""
    lines = [f"## `{one.name}` {{ #{anchor(one.name)} }}\n"]
    if isinstance(one.node, ast.FunctionDef):
        lines.append(f"```py\n{signature(one.node, one.name)}\n```\n")
    elif isinstance(one.node, ast.ClassDef):
        lines.append(f"```py\n{class_line(one.node, one.name)}\n```\n")
    elif one.node is not None:
        lines.append(f"```py\n{shorten(ast.unparse(one.node))}\n```\n")
    lines.append(markdown(one.documentation) + "\n")
    if isinstance(one.node, ast.ClassDef):
        lines += [fields_table(one), *methods(one)]
    if example := examples().get(one.package, {}).get(one.name):
        first = shown.setdefault(example, one.name)
        lines.append(
            f"Example:\n\n```pycon\n{example}\n```\n"
            if first == one.name
            else f"Example: with [`{first}`](#{anchor(first)}).\n"
        )
    lines.append(f"Defined in `src/{one.module.replace('.', '/')}.py`.\n")
    return "\n".join(line for line in lines if line)


def anchor(name: str) -> str:
    """The address of a name on its page; case counts, since `Recipe` and `recipe` are two names."""
    return name.strip("_")


def escaped_name(name: str) -> str:
    """A name as plain text, which a narrow column may break at none of its letters."""
    return name.replace("_", "\\_")


def signature(node: ast.FunctionDef, name: str, *, method: bool = False) -> str:
    """A call as it is written, one argument per line where it is long."""
    known = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(known, ast.FunctionDef)
    if method and known.args.args and known.args.args[0].arg in ("self", "cls"):
        known.args.args.pop(0)
    returns = f" -> {ast.unparse(known.returns)}" if known.returns else ""
    line = f"{name}({', '.join(arguments(known.args))}){returns}"
    if len(line) <= WIDE:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in arguments(known.args)) + f"){returns}"


def arguments(args: ast.arguments) -> Iterator[str]:
    """Arguments one by one, with the bare star before those that are keywords only."""
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    for argument, default in zip(positional, defaults, strict=True):
        yield one_argument(argument, default)
    if args.vararg:
        yield f"*{ast.unparse(args.vararg)}"
    elif args.kwonlyargs:
        yield "*"
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield one_argument(argument, default)
    if args.kwarg:
        yield f"**{ast.unparse(args.kwarg)}"


def one_argument(argument: ast.arg, default: ast.expr | None) -> str:
    """`name: type = default`."""
    equals = (
        "" if default is None else f" = {ast.unparse(default)}" if argument.annotation else f"={ast.unparse(default)}"
    )
    return ast.unparse(argument) + equals


def class_line(node: ast.ClassDef, name: str) -> str:
    """How a class is made: its constructor if it has one, else its name and bases."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return signature(item, name, method=True).removesuffix(" -> None")
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    return f"class {name}({bases})" if bases else f"class {name}"


def fields_table(one: PublicName) -> str:
    """Fields of a dataclass or named tuple, those of its bases first."""
    rows = []
    for kind in reversed(inspect.getmro(one.value)):
        if not kind.__module__.startswith("ssno"):
            continue
        body = next(
            (n.body for n in tree(kind.__module__).body if isinstance(n, ast.ClassDef) and n.name == kind.__name__), []
        )
        for number, node in enumerate(body):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            if node.target.id.startswith("_") or "ClassVar" in ast.unparse(node.annotation):
                continue
            if not (hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")):
                continue
            text = string_of(body[number + 1] if number + 1 < len(body) else None).replace("\n", " ")
            default = "" if node.value is None else f"`{shorten(ast.unparse(node.value), 40)}`"
            kind_of = shorten(ast.unparse(node.annotation), 60)
            cells = (f"`{node.target.id}`", f"`{kind_of}`", default, text)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if not rows:
        return ""
    unique = list({row.split("`")[1]: row for row in rows}.values())  # a field given again replaces the base's
    return "\n".join(["| field | type | default | |", "| --- | --- | --- | --- |", *unique]) + "\n"


def methods(one: PublicName) -> Iterator[str]:
    """Public methods and properties that the class itself defines, with their docstrings."""
    assert isinstance(one.node, ast.ClassDef)
    for node in one.node.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        text = inspect.cleandoc(ast.get_docstring(node) or "") or inherited(one.value, node.name)
        if any(ast.unparse(mark).endswith("property") for mark in node.decorator_list):
            yield f"- `.{node.name}`: {first_line(text)}"
            continue
        yield f"\n**`.{node.name}`**\n\n```py\n{signature(node, node.name, method=True)}\n```\n\n{markdown(text)}\n"


def inherited(kind: type, name: str) -> str:
    """The docstring of the method that this one overrides."""
    for base in inspect.getmro(kind)[1:]:
        found = base.__dict__.get(name) if base.__module__.startswith("ssno") else None
        if text := inspect.getdoc(found.fget if isinstance(found, property) else found) if found else None:
            return text
    return ""


def markdown(text: str) -> str:
    """A docstring as Markdown: arguments as a list, indented formulas stay code."""

    def listed(match: re.Match[str]) -> str:
        lines: list[str] = []
        for line in textwrap.dedent(match[2]).rstrip().splitlines():
            found = ARGUMENT.match(line) if not line.startswith(" ") else None
            lines.append(f"- `{found[2]}`: {found[3]}" if found else f"  {line.strip()}" if line.strip() else "")
        return f"**{match[1]}**\n\n" + "\n".join(lines) + "\n"

    return SECTION.sub(listed, text.rstrip() + "\n").rstrip()


def first_line(text: str) -> str:
    """The first sentence or line, for tables."""
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|").strip()


def shorten(text: str, most: int = 300) -> str:
    """Long values end in dots."""
    return text if len(text) <= most else text[: most - 4] + " ..."


def background_of(package: str, names: list[PublicName]) -> str:
    """What the modules behind the names say at their top: formulas, axes, conventions."""
    modules = list(dict.fromkeys(one.module for one in names if one.module not in (package, "ssno")))
    own = [name for name in modules if name.startswith(f"{package}.")]
    if not own or package == "ssno":
        return ""
    parts = ["## Formulas and conventions\n\nThe modules behind these names, in the words of their source.\n"]
    for name in own:
        module: ModuleType = importlib.import_module(name)
        parts.append(f"### {name}\n\n```text\n{inspect.cleandoc(module.__doc__ or '')}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Write every page and the index."""
    REFERENCE.mkdir(exist_ok=True)
    written = {REFERENCE / "index.md": index()}
    written |= {REFERENCE / f"{package}.md": package_page(package) for package in packages()}
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    for path in set(REFERENCE.glob("*.md")) - set(written):
        path.unlink()
    count = sum(len(public_names(package)) for package in packages())
    with_example = sum(
        one.name in examples().get(package, {}) for package in packages() for one in public_names(package)
    )
    print(f"{len(written)} pages in docs/reference: {count} names, {with_example} with an example")


def index() -> str:
    """All packages, and what each is for."""
    rows = []
    for package in packages():
        what = first_line(inspect.getdoc(importlib.import_module(package)) or "")
        rows.append(f"| [{package}]({package}.md) | {what} | {len(public_names(package))} |")
    return (
        "# Reference\n\nEvery public name, by package: what a package exports (`__all__`) is public, everything else "
        "may change. Shapes are jaxtyping annotations, checked in every test run; examples are run by the tests.\n\n"
        f"{GENERATED}\n| package | what it is | names |\n| --- | --- | ---: |\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()
