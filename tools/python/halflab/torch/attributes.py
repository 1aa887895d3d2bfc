"""The attributes of a model's modules, to be put back after a forward pass that must leave no trace."""

import collections

import torch

_HOOKS = {name for name in vars(torch.nn.Module()) if "hook" in name}


class PutBack:
    """What is held by a module and has attributes to be put back of its own."""


LONGEST = 10000  # parts of a list, dict or set that is copied: longer ones, as of a vocabulary, would cost too much


class Attributes:
    """As they are now: what modules hold, but for hooks, and the lists, dicts and sets in it, unless these are long."""

    def __init__(self, model):
        self._modules, self._containers = [], {}  # by id: a container and a copy of it
        for module in model.modules():
            own = {name: value for name, value in vars(module).items() if name not in _HOOKS}
            self._modules.append((vars(module), own))
            for value in own.values():
                self._keep(value)

    def put_back(self):
        for container, before in self._containers.values():
            container.clear()
            (container.extend if isinstance(container, (list, collections.deque)) else container.update)(before)
        for attributes, own in self._modules:
            for name in [name for name in attributes if name not in _HOOKS and name not in own]:
                del attributes[name]
            attributes.update(own)

    def _keep(self, value):
        if isinstance(value, PutBack):
            value = vars(value)
        is_container = isinstance(value, (list, dict, set, collections.deque))
        if is_container and len(value) <= LONGEST and id(value) not in self._containers:
            self._containers[id(value)] = value, value.copy()
            for part in value.values() if isinstance(value, dict) else value:
                self._keep(part)
