"""A device that is not the CPU, for computers that have no other.

Tensors `on_device` say that they are on `meta`, have no memory that NumPy could read, and refuse to
be used together with the CPU's, as a GPU's do. What they hold is computed on the CPU all the same,
so that results can be compared.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

DEVICE = torch.device("meta")
MOVES = {"_to_copy", "copy_", "set_"}


class Elsewhere(Tensor):
    """A tensor of the pretended device; `inside` is where it is in truth."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> Elsewhere:
        outside = torch.empty(inside.shape, dtype=inside.dtype, device=DEVICE)
        made = Tensor._make_subclass(cls, outside)
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return compute(function, args, kwargs or {})


class PretendedDevice(TorchDispatchMode):
    """Within the block, tensors made on the pretended device are on it. `made` has the most numbers
    that each operation has made on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, int] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = compute(function, args, kwargs or {})
        if isinstance(found, Tensor) and not isinstance(found, Elsewhere) and not function.is_view:
            name = function.overloadpacket.__name__
            self.made[name] = max(self.made.get(name, 0), found.numel())
        return found


def compute(function: Any, args: Any, kwargs: Any) -> Any:
    """The operation on what is inside; its results are where its operands were."""
    name, tensors = function.overloadpacket.__name__, list[Tensor]()
    tree_map_only(Tensor, tensors.append, (args, kwargs))
    there = [tensor for tensor in tensors if isinstance(tensor, Elsewhere)]
    here = [t for t in tensors if not isinstance(t, Elsewhere) and t.dim() and name not in MOVES]
    if there and here:
        raise RuntimeError(f"{name}: operands on {DEVICE} and of {list(here[0].shape)} on the CPU")
    target = kwargs.get("device")
    elsewhere = bool(there) if target is None else torch.device(target) == DEVICE
    if elsewhere and target is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    args, kwargs = tree_map_only(Elsewhere, lambda tensor: tensor.inside, (args, kwargs))
    found = function(*args, **kwargs)
    if name.endswith("_") and there and isinstance(found, Tensor):
        if found.shape != tensors[0].shape:  # torch's matmul squeezes in place
            with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
                function(tensors[0], *args[1:], **kwargs)
        return tensors[0]
    return tree_map_only(Tensor, Elsewhere, found) if elsewhere else found


def move_(model: nn.Module) -> None:
    """The parameters and buffers of the model, to the pretended device, in place."""
    for module in model.modules():
        for name, value in list(module._parameters.items()):
            if value is not None:
                moved = Elsewhere(value.detach().clone())
                module._parameters[name] = nn.Parameter(moved, requires_grad=value.requires_grad)
        for name, buffer in list(module._buffers.items()):
            if buffer is not None:
                module._buffers[name] = Elsewhere(buffer.clone())


def inside(tensor: Tensor) -> Tensor:
    return tensor.inside if isinstance(tensor, Elsewhere) else tensor
