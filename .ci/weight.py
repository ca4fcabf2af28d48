"""How many tokens of code a reader carries, by package, without comments and docstrings: a step of `make lint`.

It fails if a package is above its budget, `[tool.weight]` in pyproject.toml. A change that needs more raises the budget
in the same commit, and so says what it weighs.
"""

import ast
import sys
import tokenize
import tomllib
from pathlib import Path

PACKAGE = Path("src/entropy_valley")
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def tokens(path: Path) -> int:
    """The tokens of a file."""
    docstrings = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstrings.add((node.body[0].lineno, node.body[0].col_offset))
    with path.open("rb") as file:
        code = [token for token in tokenize.tokenize(file.readline) if token.type not in LAYOUT]
    return sum(token.start not in docstrings for token in code)


def main() -> int:
    budgets = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["weight"]
    weights = dict.fromkeys(budgets, 0)
    for path in PACKAGE.rglob("*.py"):
        folder = path.parent.relative_to(PACKAGE).as_posix()
        # Of a package in packages, such as data/sources, the nearest one with a budget.
        owners = [name for name in budgets if f"{folder}/".startswith(f"{name}/")]
        weights[max(owners, key=len, default=".")] += tokens(path)
    for name, weight in weights.items():
        print(f"{name}: {weight:,} of {budgets[name]:,} tokens" + ": too many" * (weight > budgets[name]))
    return int(any(weight > budgets[name] for name, weight in weights.items()))


if __name__ == "__main__":
    sys.exit(main())
