"""Where a step of training begins and ends, seen by wrapping the methods of a GradScaler, or by hooks of an optimizer.

A listener hears, in this order and without a wait for the device:

    gradients_ready(optimizer, S)            gradients are complete, and still times S; has_stepped=True where an optimizer
                                             that makes them itself has used them already
    steps_now(optimizer)                     right before its step()
    stepped(optimizer, found, was_applied)   found: tensors that are not 0 where a gradient was not finite; was_applied is
                                             None where the optimizer itself decides on the device
    step_ended()
"""

import functools
import types


class OptimizerTap:
    """Without a scaler: each optimizer.step() is a step."""

    def __init__(self, optimizer, listener):
        self._optimizer, self._listener = optimizer, listener
        self._hooks = StepHooks(optimizer, self._before, self._after)

    def detach(self):
        self._hooks.detach()

    def _before(self, has_closure):
        if not has_closure:  # else the step itself makes the gradients
            self._listener.gradients_ready(self._optimizer, 1.0)
        self._listener.steps_now(self._optimizer)

    def _after(self, has_closure):
        if has_closure:
            self._listener.gradients_ready(self._optimizer, 1.0, has_stepped=True)
        self._listener.stepped(self._optimizer, [], True)
        self._listener.step_ended()


class ScalerTap:
    """With a GradScaler: a step ends with its update()."""

    METHODS = ("unscale_", "step", "update")

    def __init__(self, scaler, listener):
        self._scaler, self._listener = scaler, listener
        self._looked, self._applied, self._hooks = set(), set(), {}
        self.steps_past, self.updates = 0, 0  # optimizer steps that were not made by the scaler
        self._stepping = None
        self._own = {name: scaler.__dict__[name] for name in self.METHODS if name in scaler.__dict__}
        for name in self.METHODS:
            original = getattr(scaler, name)
            setattr(scaler, name, _Tapped(original, getattr(self, "_" + name)))

    def detach(self):
        for name in self.METHODS:
            self._scaler.__dict__.pop(name, None)
        self._scaler.__dict__.update(self._own)
        for hooks in self._hooks.values():
            hooks.detach()

    def follow(self, optimizer):
        """Hears of the optimizer's steps, whoever calls for them."""
        if id(optimizer) not in self._hooks:
            before = functools.partial(self._optimizer_steps, optimizer)
            self._hooks[id(optimizer)] = StepHooks(optimizer, before, lambda has_closure: None)

    def _optimizer_steps(self, optimizer, has_closure):
        self._applied.add(id(optimizer))
        self.steps_past += self._stepping != id(optimizer)
        self._listener.steps_now(optimizer)

    def _unscale_(self, original, optimizer):
        self._look(optimizer)
        return original(optimizer)

    def _step(self, original, optimizer, *arguments, **options):
        self.follow(optimizer)
        decides_itself = getattr(optimizer, "_step_supports_amp_scaling", False)
        if decides_itself:  # such a step does not call unscale_()
            self._look(optimizer)
        self._applied.discard(id(optimizer))
        self._stepping = id(optimizer)
        try:
            result = original(optimizer, *arguments, **options)
        finally:
            self._stepping = None
        self._look(optimizer)  # unscale_() of a scaler that does not call its own
        was_applied = None if decides_itself else id(optimizer) in self._applied
        self._listener.stepped(optimizer, self._found(optimizer), was_applied)
        return result

    def _update(self, original, *arguments, **options):
        result = original(*arguments, **options)
        self._looked.clear()
        self.updates += 1
        self._listener.step_ended()
        return result

    def _look(self, optimizer):
        if id(optimizer) not in self._looked:
            self._looked.add(id(optimizer))
            self._listener.gradients_ready(optimizer, current_scale(self._scaler))

    def _found(self, optimizer):
        state = self._scaler._per_optimizer_states[id(optimizer)]
        return list(state["found_inf_per_device"].values())


class _Tapped:
    """A method of a scaler that is listened to. In a copy of the scaler, and in one that was saved, it is the method itself."""

    def __init__(self, original, tap):
        functools.update_wrapper(self, original)
        self._original, self._tap = original, tap

    def __call__(self, *arguments, **options):
        return self._tap(self._original, *arguments, **options)

    def __reduce__(self):
        return _method_itself, (self._original,)


def _method_itself(method):
    return method


def current_scale(scaler):
    """S, a copy on its device: update() changes it where it lies."""
    scale = scaler._get_scale_async()
    return 1.0 if scale is None else scale.detach().clone()


class StepHooks:
    """before(has_closure) and after(has_closure) around optimizer.step(), by its hooks, or by wrapping it where it has none
    (PyTorch before 2.0)."""

    def __init__(self, optimizer, before, after):
        self._optimizer, self._before, self._after = optimizer, before, after
        self._handles, self._wrapped = [], None
        if hasattr(optimizer, "register_step_pre_hook"):
            self._handles = [
                optimizer.register_step_pre_hook(lambda _, arguments, options: before(_has_closure(arguments, options))),
                optimizer.register_step_post_hook(lambda _, arguments, options: after(_has_closure(arguments, options))),
            ]
        else:
            self._wrap(optimizer.step)

    def detach(self):
        for handle in self._handles:
            handle.remove()
        wrapped, self._wrapped = self._wrapped, None
        if wrapped is None or self._optimizer.step is not wrapped:  # a scheduler made meanwhile goes on calling it
            return
        del self._optimizer.step
        if self._own is not None:
            self._optimizer.step = self._own

    def _wrap(self, original):
        """As a method, since schedulers take optimizer.step for one."""

        def step(_optimizer, *arguments, **options):
            if self._wrapped is None:
                return original(*arguments, **options)
            has_closure = _has_closure(arguments, options)
            self._before(has_closure)
            result = original(*arguments, **options)
            self._after(has_closure)
            return result

        self._own = vars(self._optimizer).get("step")
        self._wrapped = self._optimizer.step = types.MethodType(step, self._optimizer)


def _has_closure(arguments, options):
    return any(callable(argument) for argument in (*arguments, *options.values()))
