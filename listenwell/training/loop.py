"""The loop: one for every model.

A run's folder holds `last` (to go on from) and `best` (by the validation metric). Killed at any moment, the
same command goes on from `last` and ends with the same weights as an unbroken run; on the CPU bit for bit.
"""

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from listenwell import checkpoint
from listenwell.errors import InputError
from listenwell.files import hash_files, recover
from listenwell.recipe import write_recipe
from listenwell.serialization import dumps, plain
from listenwell.training import TASKS
from listenwell.training.adapters import halve_frozen
from listenwell.training.batching import Epoch, Step
from listenwell.training.logs import Log
from listenwell.training.processes import Processes
from listenwell.training.recipe import OptimizerRecipe, TrainRecipe
from listenwell.training.state import Progress, load_state, random_states, save_state
from listenwell.training.task import Task

LOG_SECONDS = 5.0
CPU_PART_TOKENS = 1024
"""On a CPU a step is computed in parts of so many tokens: a step for a GPU would not fit into memory."""
TRAINING = "training"
"""The kind of the checkpoint `last`."""


class Trainer:
    """A task, its optimizer and how far they are."""

    def __init__(self, recipe: TrainRecipe, task: Task | None = None) -> None:
        self.recipe = recipe
        self.processes = Processes.join()
        self.device = self.processes.device()
        torch.manual_seed(recipe.seed + self.processes.number)
        if self.device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        self.task = task or TASKS.load(recipe.model).prepare(recipe, self.device)
        self.optimizer = make_optimizer(self.task.model, recipe.optimizer)
        if recipe.metric not in self.task.metrics:
            raise InputError(
                f"The task has no metric {recipe.metric!r} to choose by.",
                f"Give one of: {', '.join(self.task.metrics)}.",
            )
        self.progress = Progress(recipe=self._fingerprint())
        self._trained = [p for p in self.task.model.parameters() if p.requires_grad]
        self._precision = _precision(recipe, self.device)
        self._scaler = torch.amp.GradScaler("cuda", enabled=self._precision == torch.float16)
        if self._is_bf16_cpu:
            halve_frozen(self.task.model)

    def run(self) -> dict[str, float]:
        """Train to the end (or from where it stopped) and return the best validation's metrics."""
        self._resume()
        if self.processes.is_first:
            write_recipe(self.recipe, self.recipe.output / "recipe.yaml")
        per_epoch = len(self._order(0))
        log = Log(
            self.recipe.output if self.processes.is_first else None, round(per_epoch * self.recipe.epochs)
        )
        if self.progress.steps:
            log.event("resumed", step=self.progress.steps, epoch=self.progress.epoch)
        self.task.model.train()
        while not self.progress.finished:
            self._epoch(self._order(self.progress.epoch), log)
        metrics = self._best_metrics()
        log.event("finished", steps=self.progress.steps, seconds=round(self.progress.seconds, 1), **metrics)
        log.close()
        self.processes.wait()
        return metrics

    def _order(self, number: int) -> Epoch[Any, Any]:
        recipe = self.recipe
        return Epoch(self.task.examples(), self.task.collate, recipe.batches, recipe.seed, number)

    def _epoch(self, epoch: Epoch[Any, Any], log: Log) -> None:
        """The rest of one epoch, with validations and saves on the way."""
        total = len(epoch)
        losses, targets = torch.zeros((), device=self.device), 0
        logged = saved = begin = time.perf_counter()
        part_tokens = CPU_PART_TOKENS if self.device.type == "cpu" else None
        steps = epoch.steps(self.progress.step, self.processes.number, self.processes.count, part_tokens)
        for step in _ahead(steps):
            share = (self.progress.epoch + self.progress.step / total) / self.recipe.epochs
            rate = learning_rate(self.recipe.optimizer, share)
            losses += self._step(step, rate)
            targets += sum(batch.weight for batch in step.batches)
            self.progress.step += 1
            self.progress.steps += 1
            self.progress.tokens += sum(batch.size for batch in step.batches) * self.processes.count
            at_end = self.progress.epoch + self.progress.step / total >= self.recipe.epochs - 1e-9
            if time.perf_counter() - logged > LOG_SECONDS or at_end:
                # The only wait for the device: every few seconds, not every step.
                loss, seconds = float(losses) / max(1, targets), time.perf_counter() - begin
                log.step(self.progress, self.progress.seconds + seconds, loss, rate)
                losses.zero_()
                targets, logged = 0, time.perf_counter()
            if at_end or self._is_due(total):
                self.progress.seconds += time.perf_counter() - begin
                self._validate(log, at_end)
                self._save_last()
                saved = begin = time.perf_counter()
            elif time.perf_counter() - saved > self.recipe.save_seconds and self.processes.count == 1:
                self.progress.seconds += time.perf_counter() - begin
                self._save_last()
                saved = begin = time.perf_counter()
            if self.progress.finished:
                return
        self.progress.epoch, self.progress.step = self.progress.epoch + 1, 0

    def measure(self, split: str) -> dict[str, float]:
        """The task's metrics on a split; on a CPU that trains in bf16, in bf16 too."""
        with self._autocast() if self._is_bf16_cpu else nullcontext():
            return self.task.measure(split)

    @property
    def _is_bf16_cpu(self) -> bool:
        return bool(self.device.type == "cpu" and self._precision == torch.bfloat16)

    def _is_due(self, total: int) -> bool:
        """Whether the last step passed a multiple of `validate_every` epochs."""
        before, now = (self.progress.epoch + (self.progress.step - back) / total for back in (1, 0))
        return int(now / self.recipe.validate_every + 1e-9) > int(before / self.recipe.validate_every + 1e-9)

    def _step(self, step: Step[Any], rate: float) -> torch.Tensor:
        """One step of the optimizer; returns the summed loss without waiting for it."""
        summed = torch.zeros((), device=self.device)
        for batch in step.batches:
            with self._autocast():
                loss = self.task.loss_sum(batch)
            # Divided by the targets of the whole step: parts and processes weigh by their tokens.
            self._scaler.scale(loss / step.targets).backward()
            summed += loss.detach()
        self.processes.add_gradients(self._trained)
        self._scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._trained, self.recipe.optimizer.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["lr_multiplier"]
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return summed

    def _validate(self, log: Log, at_end: bool) -> None:
        """Measure, keep the best, and decide whether to stop."""
        metrics = self.measure(self.recipe.data.valid)
        # The first process's figure counts for all: a last digit that differs must not part their ways.
        mine = metrics[self.recipe.metric] if self.processes.is_first else 0.0
        value = float(self.processes.sum(torch.tensor(mine, dtype=torch.float64, device=self.device)))
        if not math.isfinite(value):
            raise InputError(
                f"The training went astray: {self.recipe.metric} is {value} at step {self.progress.steps}.",
                "Lower optimizer.learning_rate or raise its warmup_share, and name a new output folder.",
            )
        if self.progress.best is None or value < self.progress.best:
            self.progress.best, self.progress.worse = value, 0
            self._save_best(metrics)
        else:
            self.progress.worse += 1
        self.progress.finished = at_end or self.progress.worse >= self.recipe.patience
        log.event(
            "valid", step=self.progress.steps, **{self.recipe.metric: value, "best": self.progress.best}
        )

    def _save_best(self, metrics: dict[str, float]) -> None:
        if self.processes.is_first:
            with checkpoint.writing(self.recipe.output / checkpoint.BEST, self.task.kind) as folder:
                self.task.save(folder)
                write_recipe(self.recipe, folder / "recipe.yaml")
                text = dumps({"valid": metrics, "step": self.progress.steps})
                (folder / "metrics.json").write_text(text, encoding="utf-8")
        self.processes.wait()

    def _save_last(self) -> None:
        randoms = {
            f"{name}.{number}": state
            for name, mine in random_states().items()
            for number, state in enumerate(self.processes.gather(mine))
        }
        self.progress.scaler = dict(self._scaler.state_dict())
        if self.processes.is_first:
            with checkpoint.writing(self.recipe.output / "last", TRAINING) as folder:
                save_state(folder, self.task.model, self.optimizer, self.progress, randoms)
        self.processes.wait()

    def _fingerprint(self) -> str:
        """A name for all that shapes the weights: settings, base weights and data, wherever they lie."""
        files = hash_files([*self.task.base_files, *self.task.data_files(shaping=True)])
        return f"{recipe_hash(self.recipe)}-{files[:16]}"

    def _resume(self) -> None:
        last = self.recipe.output / "last"
        if self.processes.is_first:
            recover(last)
            recover(self.recipe.output / checkpoint.BEST)
        self.processes.wait()
        if last.exists():
            checkpoint.open_checkpoint(last, TRAINING)
            self.progress = load_state(
                last, self.task.model, self.optimizer, self.progress.recipe, self.processes.number
            )
            if self.progress.scaler:
                self._scaler.load_state_dict(self.progress.scaler)

    def best(self) -> checkpoint.Checkpoint:
        """The best checkpoint of the run so far."""
        return checkpoint.open_checkpoint(self.recipe.output / checkpoint.BEST, self.task.kind)

    def _best_metrics(self) -> dict[str, float]:
        saved = json.loads(self.best().path("metrics.json").read_text(encoding="utf-8"))
        return {name: float(value) for name, value in saved["valid"].items()}

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._precision == torch.float32:
            return nullcontext()
        return cast(AbstractContextManager[Any], torch.autocast(self.device.type, dtype=self._precision))


def recipe_hash(recipe: TrainRecipe) -> str:
    """A name for all settings that shape the weights; where files are and what is measured after is none."""
    data = replace(recipe.data, path=None, annotated=None, test=None)
    base = Path(recipe.base).name
    shaping = plain(replace(recipe, output=Path(), save_seconds=0.0, base=base, weights=None, data=data))
    return hashlib.sha256(dumps(shaping).encode()).hexdigest()[:16]


def _precision(recipe: TrainRecipe, device: torch.device) -> torch.dtype:
    if device.type == "cpu":
        if recipe.precision == "fp16":
            raise InputError("precision fp16 needs a GPU.", "Use auto, fp32 or bf16 on a CPU.")
        # On a CPU that computes in bf16 it is much faster, on any other slower: never by itself.
        return torch.bfloat16 if recipe.precision == "bf16" else torch.float32
    return {"auto": torch.bfloat16, "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[
        recipe.precision
    ]


def _ahead(steps: Iterator[Step[Any]], depth: int = 4) -> Iterator[Step[Any]]:
    """The same steps, made by a second thread while the device works on the ones before."""
    with ThreadPoolExecutor(1) as thread:
        ready = deque(thread.submit(next, steps, None) for _ in range(depth))
        try:
            while (step := ready.popleft().result()) is not None:
                ready.append(thread.submit(next, steps, None))
                yield step
        finally:
            thread.shutdown(cancel_futures=True)


def make_optimizer(model: torch.nn.Module, recipe: OptimizerRecipe) -> torch.optim.AdamW:
    """AdamW over what is trained; weight decay spares vectors (norms and biases).

    The learning rate of each group is multiplied by its `lr_multiplier`.
    """
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    has_heads = "backbone" in dict(model.named_children()) and recipe.head_lr_multiplier != 1
    multiplied = {name for name in trained if has_heads and not name.startswith("backbone.")}
    groups: list[dict[str, Any]] = [
        {"params": [], "weight_decay": decay, "lr_multiplier": lr_multiplier}
        for lr_multiplier in (1.0, recipe.head_lr_multiplier)
        for decay in (recipe.weight_decay, 0.0)
    ]
    for name, parameter in trained.items():
        groups[2 * (name in multiplied) + (parameter.ndim <= 1)]["params"].append(parameter)
    on_gpu = any(parameter.is_cuda for parameter in trained.values())
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=recipe.learning_rate,
        betas=recipe.betas,
        fused=True if on_gpu else None,  # one kernel for all parameters
    )


def learning_rate(recipe: OptimizerRecipe, progress: float) -> float:
    """The rate at a share of the whole training: a linear rise, then the decay to zero."""
    if progress < recipe.warmup_share:
        return recipe.learning_rate * (progress + 1e-8) / recipe.warmup_share
    after = min(1.0, (progress - recipe.warmup_share) / max(1e-8, 1 - recipe.warmup_share))
    share = {"constant": 1.0, "linear": 1 - after, "cosine": 0.5 * (1 + math.cos(math.pi * after))}
    return recipe.learning_rate * share[recipe.decay]
