"""What to do about findings, as sentences of HTML."""

from .findings import INPUT, NOTICEABLE, nearest_log2
from .words import code, listed, power, s_is


def to_do(found):
    """What to do about it."""
    if len(found.steps) == 0:
        return ["Check that optimizer= or scaler= is the one whose step() or update() the loop calls, inside of the with."]
    advice = []
    forward = found.overflowed_forward()
    if found.applied:
        advice.append("Train with a loss scaler or check gradients: a step that is not finite destroys the weights.")
    if forward == INPUT:
        steps = sorted({skip["step"] for skip in found.with_bad_input()})
        advice.append(
            f"Look at the batch of {'step' if len(steps) == 1 else 'steps'} {listed(map(str, steps))}: what the model was given "
            "holds NaNs or infinities, which neither a loss scale nor FP32 cures."
        )
    elif any(skip.get("twin") == "not finite" for skip in found.lost):
        advice.append("Look at the batch and the loss of these steps. FP16 is not to blame: FP32 is not finite either.")
    elif forward is not None:
        advice.append(
            f"Run {code(forward)} in FP32, inside of {code('torch.autocast(device_type, enabled=False)')} and on "
            f"{code('x.float()')}: it overflows in the forward pass, which no loss scale reaches."
        )
    advice += _scaling(found)
    is_unexplained = found.lost and not found.is_search and forward is None and not _has_twin(found)
    if found.is_of_torch and (is_unexplained or found.tensors.loses is None):
        calm = "Nothing, while skips are so rare. " if is_unexplained and found.is_rare and not advice else ""
        advice.append(
            f"{calm}For an exact answer, watch again with {code('twin=compute_loss')}, a function that makes the loss of "
            "the batch again."
        )
    return advice or ["Nothing: go on."]


def _has_twin(found):
    return any(skip.get("twin") for skip in found.lost)


def _scaling(found):
    """About the scaler and its S."""
    best, used = found.log2_recommended, found.tensors.log2_used
    if best is None:
        if not found.tensors.total.histogram.zero or found.tensors.is_truth or found.has_scaler:
            return []
        scaler = code(f"{found.scaler_class}()")
        return [f"Try {scaler}: every gradient is zero, as FP16 without a loss scale makes small ones."]
    start = code(f"{found.scaler_class}(init_scale=2.0**{best})") if found.is_of_torch else s_is(power(best))
    if not found.has_scaler:
        if best <= 0 or not (found.tensors.loses or found.tensors.total.share("flushed", 0) >= NOTICEABLE):
            return []
        steps = listed(map(code, ("scaler.scale(loss).backward()", "scaler.step(optimizer)", "scaler.update()")))
        then = f"{code('scaler =')} {start}, then {steps}" if found.is_of_torch else f"with {start}"
        return [f"Scale the loss, which nothing does: {then}."]
    if found.tensors.loses and best > used:
        return [f"Begin with a larger S, {start}, or let it grow sooner ({code('growth_interval')})."]
    first_scale = nearest_log2(float(found.steps["scale"][0]))
    if found.lost and found.lost[0]["step"] == found.steps["step"][0] and best < first_scale:
        return [f"To spare the skipped steps at the beginning, start with {start}; one of them costs a step and no more."]
    return []


def to_do_with(tensors):
    best, used = tensors.total.recommended, tensors.log2_used or 0
    needs_less = bool(tensors.total.share("overflowed", used))
    needs_more = tensors.loses or tensors.total.share("flushed", used) >= NOTICEABLE
    if best is not None and (needs_less or needs_more and best > used):
        return [f"Scale the loss with {s_is(power(best))}."]
    return ["Nothing: no scale keeps more."]
