"""Several processes that train as one: started by `torchrun` or `accelerate launch`, joined by gradients.

Each process computes its rows of every step; gradients are added up, so the result is that of one
process within rounding.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import distributed


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is."""

    number: int = 0
    count: int = 1
    local: int = 0
    """The number on this machine, which is also the GPU's."""

    @classmethod
    def join(cls) -> "Processes":
        """Join the others that the launcher started, if it started any."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            return cls()
        if not distributed.is_initialized():
            distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return cls(distributed.get_rank(), count, int(os.environ.get("LOCAL_RANK", "0")))

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks to the terminal."""
        return self.number == 0

    def device(self) -> torch.device:
        """This process's GPU, or the CPU."""
        if torch.cuda.is_available():
            torch.cuda.set_device(self.local)
            return torch.device("cuda", self.local)
        return torch.device("cpu")

    def add_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over the processes, in one message a type."""
        if self.count == 1:
            return
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:  # this process had no rows in a short last step
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat)
        begin = 0
        for gradient in gradients:
            gradient.copy_(flat[begin : begin + gradient.numel()].view_as(gradient))
            begin += gradient.numel()

    def sum(self, value: torch.Tensor) -> torch.Tensor:
        """The sum of a number over the processes."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value

    def gather(self, value: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of all processes, in their order; all must have one shape and type."""
        if self.count == 1:
            return [value]
        on_gpu = distributed.get_backend() == "nccl"
        mine = value.cuda() if on_gpu else value
        gathered = [torch.empty_like(mine) for _ in range(self.count)]
        distributed.all_gather(gathered, mine)
        return [tensor.cpu() for tensor in gathered]

    def wait(self) -> None:
        """Go on only when all processes are here."""
        if self.count > 1:
            distributed.barrier()

    def leave(self) -> None:
        """Part from the others at the end."""
        if self.count > 1:
            distributed.destroy_process_group()
