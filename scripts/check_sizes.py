"""Keep files small, and print how large the package is.

No source file over 400 lines, no function over 60, no large file in the repository, no more lines in the
package than MAX_PACKAGE_LINES.
"""

import ast
import statistics
import subprocess
import sys
from pathlib import Path

MAX_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PACKAGE_LINES = 38_850
"""The aim is 33,000: lower this as the package shrinks."""
MAX_BYTES = 1 << 20
OWN_CORPORA = "data/"
MAX_CORPUS_BYTES = 4 << 20
"""Of a file of our own conversations, messages or ratings."""
WEIGHTS = "listenwell/pretrained/"
MAX_WEIGHTS_BYTES = 40 * 10**6


def listed_files(root: Path) -> list[Path]:
    """The repository's files, new ones that git does not ignore included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]


def package_lines(root: Path) -> dict[str, int]:
    """Lines of each module of the package."""
    modules = {file.relative_to(root).as_posix(): file for file in listed_files(root) if file.suffix == ".py"}
    return {
        name: file.read_text(encoding="utf-8").count("\n")
        for name, file in modules.items()
        if name.startswith("listenwell/")
    }


def summary(lines: dict[str, int]) -> str:
    """The counts that CONTRIBUTING.md quotes."""
    sizes = sorted(lines.values())
    return (
        f"{sum(sizes):,} lines in {len(sizes)} files of the package; "
        f"median file {statistics.median(sizes):g} lines, longest {sizes[-1]}"
    )


def problems(root: Path) -> list[str]:
    """Every file or function that is too large, as one line each."""
    messages, weights = [], 0
    for file in listed_files(root):
        name, size = file.relative_to(root).as_posix(), file.stat().st_size
        if name.startswith(WEIGHTS):
            weights += size
        elif size > (limit := MAX_CORPUS_BYTES if name.startswith(OWN_CORPORA) else MAX_BYTES):
            messages.append(f"{name}: {size} bytes; only shipped weights may exceed {limit}")
        if name.startswith("listenwell/") and file.suffix == ".py":
            messages += _long_code(name, file.read_text(encoding="utf-8"))
    if weights > MAX_WEIGHTS_BYTES:
        messages.append(f"{WEIGHTS}: {weights} bytes in all; at most {MAX_WEIGHTS_BYTES}")
    total = sum(package_lines(root).values())
    if total > MAX_PACKAGE_LINES:
        messages.append(f"listenwell/: {total} lines in all; at most {MAX_PACKAGE_LINES}")
    return messages


def _long_code(name: str, text: str) -> list[str]:
    lines = text.count("\n")
    messages = [f"{name}: {lines} lines; at most {MAX_LINES}"] if lines > MAX_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                messages.append(
                    f"{name}:{node.lineno}: {node.name} has {length} lines; at most {MAX_FUNCTION_LINES}"
                )
    return messages


if __name__ == "__main__":
    repository = Path(__file__).resolve().parents[1]
    messages = problems(repository)
    print(summary(package_lines(repository)))
    print("\n".join(messages) or "file sizes: fine")
    sys.exit(bool(messages))
