"""What watch is given: what is refused, and what is made of it."""

import os
import re
import uuid

import torch

from .. import _halflab
from .errors import WatchError

KINDS = {"activations": "activation", "weights": "weight", "updates": "update"}

# What a GradScaler is asked for.
SCALER_METHODS = ("is_enabled", "scale", "unscale_", "step", "update", "get_scale", "get_growth_factor", "get_backoff_factor")
SCALER_METHODS += ("get_growth_interval", "_get_growth_tracker")


def check(model, optimizer, scaler, every, also, twin):
    def refuse(what, allowed):
        raise WatchError(f"watch: {what} is not allowed; allowed: {allowed}")

    if not isinstance(model, torch.nn.Module):
        refuse(f"model = a {type(model).__name__}", "a torch.nn.Module")
    if optimizer is not None and not isinstance(getattr(optimizer, "param_groups", None), list):
        refuse(f"optimizer = a {type(optimizer).__name__}", "a torch.optim.Optimizer")
    if scaler is not None and not all(hasattr(scaler, name) for name in SCALER_METHODS):
        refuse(f"scaler = a {type(scaler).__name__}", "a torch.amp.GradScaler")
    if optimizer is None and (scaler is None or not scaler.is_enabled()):
        raise WatchError(
            "watch: nothing says when a step ends; needed: optimizer=, whose step() ends one, or scaler=, one that is enabled"
        )
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        refuse(f"every = {_halflab.shown(every)}", "whole numbers from 1")
    for name in also if isinstance(also, (list, tuple, set)) else (also,):
        if not isinstance(also, (list, tuple, set)) or name not in KINDS:
            refuse(f"also = {_halflab.shown(also)}", f"a list of {', '.join(KINDS)}")
    lazy = next((n for n, p in model.named_parameters() if torch.nn.parameter.is_lazy(p)), None)
    if lazy is not None:
        refuse(f"the parameter {lazy}, which has no shape yet,", "a model that was called once")
    if twin is not None and not callable(twin):
        refuse(f"twin = {_halflab.shown(twin)}", "a function that makes the loss of the batch again")
    if optimizer is not None and not _are_of_one(model, optimizer):
        refuse("an optimizer without any parameter of the model", "the one that trains it")


def _are_of_one(model, optimizer):
    own = set(map(id, model.parameters()))
    return any(id(parameter) in own for options in optimizer.param_groups for parameter in options["params"])


def pattern_of(select):
    try:
        return None if select is None else re.compile(select)
    except (re.error, TypeError) as error:
        raise WatchError(f"watch: select = {_halflab.shown(select)} is not allowed ({error}); allowed: a regular expression") from None


def own_folder(folder):
    """A folder for each rank of a distributed run."""
    rank = rank_in_run().get("rank")
    return str(folder) if rank is None else os.path.join(str(folder), f"rank{rank}")


def rank_in_run():
    """For the manifest of a distributed run: rank, how many ranks, and a word that the ranks of one run share; else empty."""
    group = torch.distributed
    if not (group.is_available() and group.is_initialized() and group.get_world_size() > 1):
        return {}
    return {"rank": group.get_rank(), "ranks": group.get_world_size(), "run": _word_of_the_run()}


def _word_of_the_run():
    """What the first rank to ask leaves in the store that the ranks met in; nobody waits. Empty without such a store."""
    try:
        store = torch.distributed.distributed_c10d._get_default_store()
        return store.compare_set("halflab.torch.watch", "", uuid.uuid4().hex).decode()
    except (AttributeError, RuntimeError, ValueError):
        return ""


def spec_of(scaler):
    """The GradScaler as halflab names it, with its options; empty of none."""
    if scaler is None or not scaler.is_enabled():
        return ""
    options = {
        "init_scale": scaler.get_scale(),
        "growth_factor": scaler.get_growth_factor(),
        "backoff_factor": scaler.get_backoff_factor(),
        "growth_interval": scaler.get_growth_interval(),
    }
    return "dynamic:" + ":".join(f"{name}={value:.17g}" for name, value in options.items())
