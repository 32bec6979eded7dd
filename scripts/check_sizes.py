"""Keep rooms small: no source file over 400 lines, no function over 60, no large file in the repository."""

import ast
import subprocess
import sys
from pathlib import Path

MAX_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_BYTES = 1 << 20
WEIGHTS = "listenwell/pretrained/"
MAX_WEIGHTS_BYTES = 40 * 10**6


def problems(root: Path) -> list[str]:
    """Every file or function that is too large, as one line each."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]
    found, weights = [], 0
    for file in files:
        name, size = str(file.relative_to(root)), file.stat().st_size
        if name.startswith(WEIGHTS):
            weights += size
        elif size > MAX_BYTES:
            found.append(f"{name}: {size} bytes; only shipped weights may exceed {MAX_BYTES}")
        if name.startswith("listenwell/") and file.suffix == ".py":
            found += _long_code(name, file.read_text(encoding="utf-8"))
    if weights > MAX_WEIGHTS_BYTES:
        found.append(f"{WEIGHTS}: {weights} bytes in all; at most {MAX_WEIGHTS_BYTES}")
    return found


def _long_code(name: str, text: str) -> list[str]:
    lines = text.count("\n")
    found = [f"{name}: {lines} lines; at most {MAX_LINES}"] if lines > MAX_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                found.append(
                    f"{name}:{node.lineno}: {node.name} has {length} lines; at most {MAX_FUNCTION_LINES}"
                )
    return found


if __name__ == "__main__":
    found = problems(Path(__file__).resolve().parents[1])
    print("\n".join(found) or "file sizes: fine")
    sys.exit(bool(found))
