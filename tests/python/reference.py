# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes docs/reference/python.md from the docstrings of the package: tests/python/run reference.py"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).parents[2]
PACKAGE = TREE / "python/strobe"
PAGE = TREE / "docs/reference/python.md"
HEAD = """<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->
<!-- Made from the docstrings of python/strobe by `tests/python/run reference.py`, and compared with them by the tests. -->
# The module `strobe`

How is each function called, and what does it return? This page has what the docstrings have; the tests run its examples. [Use
strobe from Python](../how-to/python.md) says what to do with it, and [fly scans](../how-to/fly-scan.md) what `strobe.bluesky` is for.
"""

#: Of the module, which are methods of this machine.
FUNCTIONS = {"run", "record", "attach", "catalogue", "status", "get", "set"}
Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """What a file of the package defines."""

    lines: list[str]
    nodes: dict[str, ast.ClassDef | Def]

    @classmethod
    def of(cls, path: Path) -> "Module":
        text = path.read_text()
        return cls(text.splitlines(), {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef | Def)})


def page() -> str:
    init = ast.parse((PACKAGE / "__init__.py").read_text())
    said = {name.name: node.module for node in init.body if isinstance(node, ast.ImportFrom) for name in node.names}
    functions, classes = list[str](), list[str]()
    for name, module in sorted(said.items()):
        where = Module.of(PACKAGE / f"{module.removeprefix('strobe.')}.py")
        # Some functions are methods of this machine.
        node = where.nodes.get(name) or next(method for method in where.nodes["Machine"].body
                                             if isinstance(method, Def) and method.name == name and not is_a(method, "overload"))
        if isinstance(node, ast.ClassDef):
            classes += of_class(f"strobe.{name}", node, where)
        else:
            functions += of_function(f"strobe.{name}", node, 3)
    detector = Module.of(PACKAGE / "bluesky/_detector.py")
    return "\n".join([HEAD, "## Functions\n", *functions, "## Classes\n", *classes, "## For bluesky\n",
                      *of_class("strobe.bluesky.StrobeDetector", detector.nodes["StrobeDetector"], detector)]).rstrip() + "\n"


def of_function(name: str, node: Def, level: int) -> list[str]:
    kind = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    head = f"{'#' * level} `{name}`\n"
    return [head, f"```python\n{kind}{name.split('.')[-1]}{signature(node)}\n```\n", *text(node)]


def of_class(name: str, node: ast.ClassDef, where: Module) -> list[str]:
    parts = [f"### `{name}`\n", *text(node)]
    begin = next((method for method in node.body if isinstance(method, Def) and method.name == "__init__"), None)
    if "bluesky" in name and begin:
        parts.insert(1, f"```python\n{node.name}{signature(begin)}\n```\n")
    attributes = [f"| `{field}` | {type_} | {said} |" for field, type_, said in fields(node, where)]
    attributes += [f"| `{member.name}` | {cell(member.returns)} | {' '.join(first_words(member))} |"
                   for member in members(node) if is_a(member, "property") and member.returns]
    if attributes:
        parts += ["| attribute | type | |\n|---|---|---|\n" + "\n".join(attributes) + "\n"]
    here = [member for member in members(node) if name == "strobe.Machine" and member.name in FUNCTIONS]
    if here:
        parts.append(f"{', '.join(f'`{member.name}`' for member in here)}: the functions of the module, on that machine.\n")
    for member in members(node):
        if member in here:
            continue
        if not is_a(member, "property"):
            parts += of_function(f"{node.name}.{member.name}", member, 4)
        elif examples(member):
            parts += [examples(member)]
    return parts


def members(node: ast.ClassDef) -> Iterator[Def]:
    """What a user calls. A class method makes one of what the package itself has."""
    for member in node.body:
        if isinstance(member, Def) and not member.name.startswith("_") and ast.get_docstring(member):
            if not is_a(member, "classmethod") and not is_a(member, "overload"):
                yield member


def fields(node: ast.ClassDef, where: Module) -> Iterator[tuple[str, str, str]]:
    """Name, type, and what the comment above says."""
    for statement in ast.walk(node):
        match statement:
            case ast.AnnAssign(target=ast.Name(name) | ast.Attribute(attr=name), annotation=annotation):
                type_ = cell(annotation)
            case ast.Assign(targets=[ast.Attribute(attr=name)]):
                type_ = ""
            case _:
                continue
        comment = list[str]()
        above = statement.lineno - 2
        while where.lines[above].strip().startswith("#:"):
            comment.insert(0, where.lines[above].strip().removeprefix("#:").strip())
            above -= 1
        if comment:
            yield name, type_ or argument_type(node, statement), " ".join(comment)


def argument_type(node: ast.ClassDef, statement: ast.Assign) -> str:
    """Of what an argument of __init__ is kept as, or of what is made of one."""
    begin = next(method for method in node.body if isinstance(method, Def) and method.name == "__init__")
    arguments = {argument.arg: argument.annotation for argument in begin.args.args}
    match statement.value:
        case ast.Name(name) if arguments.get(name):
            return cell(arguments[name])
        case ast.Call(func=ast.Attribute(value=ast.Name(name))):
            return f"`{name}`"
    raise SystemExit(f"{node.name}: line {statement.lineno}: say the type of what has a comment")


def is_a(node: Def, decorator: str) -> bool:
    return any(isinstance(found, ast.Name) and found.id == decorator for found in node.decorator_list)


def signature(node: Def) -> str:
    """Without self; an argument a line, where a line would be too long."""
    said = node.args
    places = [*said.posonlyargs, *said.args]
    values = [None] * (len(places) - len(said.defaults)) + said.defaults
    parts = [argument(place, value) for place, value in zip(places, values)]
    if said.posonlyargs:
        parts.insert(len(said.posonlyargs), "/")
    if said.vararg:
        parts.append("*" + argument(said.vararg, None))
    elif said.kwonlyargs:
        parts.append("*")
    parts += [argument(name, value) for name, value in zip(said.kwonlyargs, said.kw_defaults)]
    if said.kwarg:
        parts.append("**" + argument(said.kwarg, None))
    parts = [part for part in parts if part != "self"]
    end = ")" + (f" -> {kind(node.returns)}" if node.returns else "")
    line = f"({', '.join(parts)}{end}"
    return line if len(line) < 100 else "(\n    " + ",\n    ".join(parts) + "\n" + end


def argument(said: ast.arg, value: ast.expr | None) -> str:
    text = said.arg + (f": {kind(said.annotation)}" if said.annotation else "")
    return text if value is None else f"{text} = {kind(value)}"


def kind(node: ast.expr) -> str:
    """A type, or a value, as the package writes them."""
    return ast.unparse(node).replace("'", '"')


def cell(node: ast.expr) -> str:
    """In a table."""
    return f"`{kind(node)}`".replace("|", "\\|")


def text(node: ast.ClassDef | Def) -> list[str]:
    words, programs = "\n".join(first_words(node)), examples(node)
    return [words + "\n", *([programs] if programs else [])]


def first_words(node: ast.ClassDef | Def) -> list[str]:
    """What a docstring says before its example."""
    said = ast.get_docstring(node) or ""
    return said.partition(">>>")[0].strip().splitlines()


def examples(node: ast.ClassDef | Def) -> str:
    said = ast.get_docstring(node) or ""
    return f"```python\n{said[said.index('>>>'):].strip()}\n```\n" if ">>>" in said else ""


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.relative_to(TREE))
