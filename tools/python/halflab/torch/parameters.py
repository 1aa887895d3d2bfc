"""The parameters of a watched model by their names."""

from .counts import largest_magnitude
from .hooks import unwrapped


class Parameters:
    """`select`: a compiled regular expression that is found in the names that are counted; None for all."""

    def __init__(self, model, select):
        self._model, self._select = model, select
        self._names, self.ties = _names_and_ties(model)  # a tied parameter has its first name

    names = property(lambda self: list(self._names.values()))
    are_all_selected = property(lambda self: self._select is None)

    def is_selected(self, name):
        return self._select is None or self._select.search(name) is not None

    def named(self):
        return [(self._names[id(p)], p) for p in self._model.parameters() if id(p) in self._names]

    def largest(self):
        """(name, largest magnitude), as they are now."""
        return [(name, largest_magnitude(parameter)) for name, parameter in self.named()]

    def of(self, optimizer):
        """(name, parameter), in its order; what the model does not have is named by its place."""
        return [
            (self._names.get(id(parameter), f"param_groups.{group}.{place}"), parameter)
            for group, options in enumerate(optimizer.param_groups)
            for place, parameter in enumerate(options["params"])
        ]

    def notes_of_others(self, optimizer):
        """What to say of parameters that need a gradient and that the optimizer does not step."""
        own = {id(parameter) for _, parameter in self.of(optimizer)}
        others = [name for name, parameter in self.named() if parameter.requires_grad and id(parameter) not in own]
        if not others:
            return []
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return [f"not seen, as this optimizer does not step them: the gradients of {others[0]}{more}"]

    def trained(self, optimizer):
        """(name, parameter) of all that need a gradient: the model's, whichever optimizer steps them, and its own others."""
        others = [(name, parameter) for name, parameter in self.of(optimizer) if id(parameter) not in self._names]
        return [(name, parameter) for name, parameter in self.named() + others if parameter.requires_grad]


def _names_and_ties(model):
    """(name by id of the parameter, the other names by the first of tied ones)."""
    names, ties = {}, {}
    for name, parameter in _all_parameters(unwrapped(model)):
        name = name.replace("_orig_mod.", "")
        first = names.setdefault(id(parameter), name)
        if first != name:
            ties.setdefault(first, []).append(name)
    return names, ties


def _all_parameters(model):
    """named_parameters() with every name of tied ones, which torch before 2.0 leaves out."""
    seen = set()
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, parameter in module._parameters.items():
            full = f"{prefix}.{name}" if prefix else name
            if parameter is not None and full not in seen:
                seen.add(full)
                yield full, parameter
