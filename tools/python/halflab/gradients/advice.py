"""What to do about findings, as sentences of HTML."""

from .findings import INPUT_OF, nearest_log2
from .words import code, listed, module, named, percent, power, s_is, steps_of, stored_as

OFTEN = 0.02  # of the steps: more are worth another growth interval


def to_do(found):
    """What to do about it."""
    if len(found.steps) == 0:
        return ["Check that optimizer= or scaler= is the one whose step() or update() the loop calls, inside of the with."]
    advice = _against_the_cause(found)
    is_explained = found.overflowed_forward() is not None or found.spoilt_weights() is not None
    if found.is_forecast:
        advice += _should_it_be_fp16(found, is_nothing_else=not advice)
    else:
        advice += _scaling(found)
    is_unexplained = found.lost and not found.is_search and not is_explained and not _has_twin(found)
    can_repeat = found.is_of_torch and not found.has_fp16_weights
    if can_repeat and (is_unexplained or found.tensors.verdict is None):
        calm = "Nothing, while skips are so rare. " if is_unexplained and found.is_rare and not advice else ""
        advice.append(
            f"{calm}For an exact answer, watch again with {code('twin=compute_loss')}, a function that makes the loss of "
            "the batch again."
        )
    no_more = "no scale keeps more" if found.tensors.verdict in ("loses", "flushes") else "go on"
    return advice or [f"Nothing: {no_more}."]


def _against_the_cause(found):
    """What spoilt the steps that were lost, where it is known and no matter of scale."""
    advice, weights, inputs, layer = [], found.spoilt_weights(), found.with_bad_input(), found.overflowed_module()
    if found.applied:
        how = "Check gradients" if found.is_forecast else "Train with a loss scaler or check gradients"
        advice.append(f"{how}: a step that is not finite destroys the weights.")
    if inputs:
        advice.append(
            f"Look at the batch of {steps_of(inputs)}: what the model was given holds NaNs or infinities, which neither a loss "
            "scale nor FP32 cures."
        )
    if weights:
        advice.append(
            f"Look at what made the weights {code(weights['weight_before'])} before step {weights['step']}: they hold NaNs or "
            "infinities, and so does all that follows from them."
        )
    elif any(skip.get("twin") == "not finite" for skip in found.blamed if skip not in inputs):
        advice.append("Look at the batch and the loss of these steps. FP16 is not to blame: FP32 is not finite either.")
    elif found.nan_without_overflow:
        advice.append(
            f"Look at the loss and the labels of {steps_of(found.nan_without_overflow)}: the gradients are NaN, and an "
            "overflow does not explain it."
        )
    elif layer is not None:
        what = f"what makes {module(layer)}" if layer.startswith(INPUT_OF) else module(layer)
        advice.append(
            f"Run {what} in FP32, inside of {code('torch.autocast(device_type, enabled=False)')} and on "
            f"{code('x.float()')}: it overflows in the forward pass, which no loss scale reaches."
        )
    return advice


def _has_twin(found):
    return found.source == "twin" or any(skip.get("twin") for skip in found.lost)


def _scaling(found):
    """About the scaler and its S."""
    best, used = found.log2_recommended, found.tensors.log2_used
    if best is None:
        if not found.tensors.total.histogram.zero or found.tensors.is_truth or found.has_scaler:
            return []
        scaler = code(f"{found.scaler_class}()")
        return [f"Try {scaler}: every gradient is zero, as FP16 without a loss scale makes small ones."]
    start = _scaler_of(found, best)
    if not found.has_scaler:
        return _scale_the_loss(found, start) if found.tensors.gains(best) else []
    if found.is_search and found.lost_after_growth() > OFTEN:
        return [
            f"Let S grow later, by a larger {code('growth_interval')}: {percent(found.lost_after_growth())} of the steps are "
            "lost because it had just grown."
        ]
    if found.nan_without_overflow or found.overflowed_forward() is not None:
        return []
    if found.tensors.gains(best):
        return [f"Begin with a larger S, {start}, or let it grow sooner ({code('growth_interval')})."]
    first_scale = nearest_log2(float(found.steps["scale"][0]))
    if found.lost and found.lost[0]["step"] == found.steps["step"][0] and best < first_scale:
        return [f"To spare the skipped steps at the beginning, start with {start}; one of them costs a step and no more."]
    return []


def _scale_the_loss(found, start):
    if found.has_fp16_weights:
        return [
            "Keep the weights in FP32, under autocast to FP16 with a GradScaler: nothing scales the loss, FP16 weights lose "
            "small updates, and a GradScaler refuses their gradients."
        ]
    return [f"Scale the loss, which no GradScaler does: {_how_to_scale(found, start)}."]


def _should_it_be_fp16(found, is_nothing_else):
    """To a run in another format a loss scale is of no use."""
    best = found.log2_recommended
    if best is None or not found.tensors.gains(best):
        return []
    calm = f"Nothing, as you train in {found.trained_in}. " if is_nothing_else else ""
    if found.has_scaler:
        return [f"{calm}Should you go to FP16: begin with {_scaler_of(found, best)}."]
    return [f"{calm}Should you go to FP16: {_how_to_scale(found, _scaler_of(found, best))}."]


def _scaler_of(found, log2_scale):
    if not found.is_of_torch:
        return s_is(power(log2_scale))
    return code(f"{found.scaler_class}(init_scale=2.0**{log2_scale})")


def _how_to_scale(found, start):
    if not found.is_of_torch:
        return f"with {start}"
    steps = listed(map(code, ("scaler.scale(loss).backward()", "scaler.step(optimizer)", "scaler.update()")))
    return f"{code('scaler =')} {start}, then {steps}"


def to_do_with(tensors):
    """To the tensors of no run."""
    best, untold = tensors.total.recommended, tensors.untold
    advice = _scale_of(tensors, best) if best is not None else []
    if untold:
        may = f"{stored_as(untold)} may have made the zeros"
        advice.append(f"Keep {named(untold)} in FP32, or scale the loss, and ask again: {may}.")
    return advice or [f"Nothing: {'there is nothing to scale' if best is None else 'no scale keeps more'}."]


def _scale_of(tensors, best):
    used = tensors.log2_used or 0
    overflowing = [row for row in tensors.rows if row.forecast.share("overflowed", used)]
    if overflowing:
        verb = "is" if len(overflowing) == 1 else "are"
        return [f"Scale the loss with {s_is(power(best))}, or see why {named(overflowing)} {verb} so large."]
    if tensors.gains(best):
        return [f"Scale the loss with {s_is(power(best))}."]
    if tensors.keeps_digits(best):
        shares = [percent(tensors.total.share("subnormal", log2)) for log2 in (used, best)]
        return [f"For more digits scale the loss with {s_is(power(best))}: {shares[1]} are subnormal there, {shares[0]} here."]
    return []
