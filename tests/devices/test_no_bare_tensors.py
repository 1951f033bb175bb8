"""Forward code makes tensors where its inputs are: it says `device=`, or makes them like others, as `new_zeros` does.

Constructors (`__init__`, class methods, functions that return a module) make parameters and buffers, which move with
their module; so do files whose whole business is starting values. Those are left out, and nothing else.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ssno"
PACKAGES = ("layers", "models", "ssm", "metrics", "transforms")
MAKERS = {
    "zeros",
    "ones",
    "arange",
    "tensor",
    "full",
    "empty",
    "linspace",
    "logspace",
    "eye",
    "rand",
    "randn",
    "randint",
}
MAKERS |= {"fft.fftfreq", "fft.rfftfreq"}
STARTING_VALUES = {"ssm/initialise.py", "ssm/dplr.py"}


def constructs(function: ast.FunctionDef) -> bool:
    """Whether a function makes a module."""
    returns = ast.unparse(function.returns) if function.returns else ""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return function.name == "__init__" or "classmethod" in decorators or returns.startswith("nn.")


def bare(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls that make a tensor without saying where, outside of constructors."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and constructs(node):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func).removeprefix("torch.")
            if name in MAKERS and not any(keyword.arg == "device" for keyword in node.keywords):
                yield node.lineno, ast.unparse(node)
        yield from bare(node)


def test_forward_code_says_where_its_tensors_are() -> None:
    found = []
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            name = path.relative_to(SOURCE).as_posix()
            if name not in STARTING_VALUES:
                found += [f"{name}:{line}: {call}" for line, call in bare(ast.parse(path.read_text()))]
    assert not found, "\n".join(found)


def test_a_bare_tensor_is_seen() -> None:
    code = """
class A:
    def __init__(self):
        self.a = torch.zeros(3)
    def forward(self, x):
        return x + torch.zeros(3) + torch.zeros(3, device=x.device) + x.new_zeros(3) + torch.arange(3)
"""
    assert [call for _, call in bare(ast.parse(code))] == ["torch.zeros(3)", "torch.arange(3)"]
