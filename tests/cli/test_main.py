import subprocess
import sys

PROGRAM = "import sys; from listenwell.cli import main; sys.argv[0] = 'listenwell'; main()"


def run(*arguments, program=PROGRAM, **options):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


def test_help_and_importing_the_package_import_nothing_heavy():
    check = (
        "import sys, listenwell; from listenwell.cli import app; from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['corpus', '--help']).exit_code == 0\n"
        "heavy = {'torch', 'transformers', 'numpy', 'tokenizers', 'safetensors', 'gguf', 'onnxruntime',\n"
        "    'pandas', 'matplotlib', 'fastapi', 'sqlalchemy', 'uvicorn', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = run(program=check)
    assert done.returncode == 0, done.stderr


def test_a_known_error_is_one_line_and_exit_code_1():
    done = run("corpus", "show", "goemotion")
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert done.stderr.startswith("listenwell: There is no corpus named 'goemotion'.")


def test_a_closed_pipe_is_no_error(tmp_path):
    done = subprocess.run(
        f"'{sys.executable}' -c \"{PROGRAM}\" corpus list --json | head -c 1",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr


def test_the_version_is_shown():
    assert run("--version").stdout == "listenwell 0.1.0\n"
