"""Everything a run must remember to go on as if it had never stopped, without pickle.

Tensors (trained weights, optimizer moments, random states) go to safetensors, numbers to JSON, both inside
a checkpoint folder that is written whole or not at all.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from listenwell.errors import CheckpointError

TENSORS, NUMBERS = "training.safetensors", "training.json"


@dataclass
class Progress:
    """How far a run is."""

    epoch: int = 0
    step: int = 0
    """Step inside the epoch that comes next."""
    steps: int = 0
    """Steps in all so far."""
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None
    """The best validation metric so far."""
    worse: int = 0
    """Validations since then."""
    finished: bool = False
    scaler: dict[str, float] = field(default_factory=dict)
    """The loss scale of fp16."""
    recipe: str = ""
    """A hash of the settings that shape the result: a run goes on only with the same ones."""


def random_states() -> dict[str, torch.Tensor]:
    """This process's random states, of the CPU and of its GPU."""
    states = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["random.cuda"] = torch.cuda.get_rng_state()
    return states


def save_state(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    randoms: dict[str, torch.Tensor],
) -> None:
    """Write the run's state into a checkpoint's folder; `randoms` are those of every process, by number."""
    tensors = dict(randoms)
    for name, parameter in _trained(model):
        tensors[f"weight.{name}"] = parameter.detach()
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"moment.{key}.{name}"] = value
    save_file({name: value.contiguous().cpu() for name, value in tensors.items()}, folder / TENSORS)
    (folder / NUMBERS).write_text(json.dumps(asdict(progress)), encoding="utf-8")


def load_state(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, recipe: str, process: int = 0
) -> Progress:
    """Put the run's state back into model and optimizer."""
    progress = Progress(**json.loads((folder / NUMBERS).read_text(encoding="utf-8")))
    if progress.recipe != recipe:
        raise CheckpointError(
            f"{folder} is of a run with other settings, data or base weights.",
            "Name another output folder in the recipe, or remove this one.",
        )
    tensors = load_file(folder / TENSORS)
    # A run that goes on with more processes than it had: the new ones keep the state of their seed.
    if (state_of_cpu := tensors.get(f"random.cpu.{process}")) is not None:
        torch.set_rng_state(state_of_cpu)
    if torch.cuda.is_available() and (state_of_gpu := tensors.get(f"random.cuda.{process}")) is not None:
        torch.cuda.set_rng_state(state_of_gpu)
    state: dict[int, dict[str, Any]] = {}
    with torch.no_grad():
        for number, (name, parameter) in enumerate(_trained(model, optimizer)):
            parameter.copy_(tensors[f"weight.{name}"])
            moments = {
                key: tensors[full]
                for key in ("step", "exp_avg", "exp_avg_sq")
                if (full := f"moment.{key}.{name}") in tensors
            }
            if moments:
                state[number] = moments
    plain = optimizer.state_dict()
    optimizer.load_state_dict({"state": state, "param_groups": plain["param_groups"]})
    return progress


def _trained(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> list[tuple[str, torch.nn.Parameter]]:
    """Trained parameters by name, in the optimizer's order where one is given."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    if optimizer is None:
        return named
    names = {id(parameter): name for name, parameter in named}
    return [(names[id(p)], p) for group in optimizer.param_groups for p in group["params"]]
