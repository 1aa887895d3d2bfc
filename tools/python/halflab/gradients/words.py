"""Findings as sentences of HTML: the answer first, then what follows from it."""

import html
import math

from .findings import INPUT, INPUT_OF, LARGEST_LOG2_SCALE, NOTICEABLE, is_power_of_two, most_often, nearest_log2

NO_BREAK = "\N{NO-BREAK SPACE}"


def code(name):
    return f"<code>{html.escape(str(name))}</code>"


def number(value):
    """Three significant digits."""
    return html.escape(f"{value:.3g}")


def percent(share):
    return f"{100 * share:.3g}{NO_BREAK}%" if share else f"0{NO_BREAK}%"


def power(log2):
    return "1" if log2 == 0 else f"2<sup>{log2}</sup>"


def scale(value):
    """S as a power of two where it is one."""
    return power(nearest_log2(value)) if is_power_of_two(value) else number(value)


def s_is(text):
    return f"S{NO_BREAK}={NO_BREAK}{text}"


def count(how_many, thing):
    return f"{how_many} {thing}" if how_many == 1 else f"{how_many} {thing}s"


def listed(texts, most=4):
    """'a, b and c'; of more than `most` the first ones and how many more."""
    texts = list(texts)
    if len(texts) > most:
        texts = [*texts[: most - 1], f"{len(texts) - most + 1} more"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def named(rows, most=3):
    return listed((code(row.label) for row in rows), most)


def module(name):
    """A module by its name; nn.Sequential's are numbers, which alone read as counts."""
    if name == "the model":
        return name
    if name.startswith(INPUT_OF):
        return INPUT_OF + module(name.removeprefix(INPUT_OF))
    return code(name) if any(map(str.isalpha, name)) else f"module{NO_BREAK}{code(name)}"


def headline(found):
    """What is wrong, in one line."""
    if len(found.steps) == 0:
        return "No step was recorded"
    fp16, s = ("FP16 would", "") if found.is_forecast else ("FP16", "s")
    gradients = {
        "loses": f"{fp16} lose{s} gradients at {s_is(power(found.tensors.log2_used))}",
        "flushes": f"{fp16} make{s} {_flushed(found.tensors)} of the gradients zero at {s_is(power(found.tensors.log2_used))}",
        "keeps": f"{fp16} keep{s} the gradients",
        None: "whether FP16 loses gradients cannot be told",
    }[found.tensors.verdict]
    is_bad = found.tensors.verdict in ("loses", "flushes")
    if not found.lost:
        return f"No step was skipped, {'but' if is_bad else 'and'} {gradients}"
    return f"{_lost_steps(found)}{f', and {gradients}' if is_bad else ''}"


def _flushed(tensors):
    return percent(tensors.total.share("flushed", tensors.log2_used or 0))


def _lost_steps(found):
    lost, of, forward, weights = len(found.lost_steps), len(found.steps), found.overflowed_forward(), found.spoilt_weights()
    how = "not finite" if found.applied else "partly applied" if found.partly_applied else "skipped"
    steps = f"{lost} of {count(of, 'step')} {'was' if lost == 1 else 'were'} {how}"
    if weights:
        return f"{steps}: the weights {code(weights['weight_before'])} were not finite already at step {weights['step']}"
    if forward == INPUT:
        return f"{steps}: at {steps_of(found.with_bad_input())} the model’s input was not finite"
    if any(skip.get("twin") == "not finite" for skip in found.blamed):
        return f"{steps}: FP32 is not finite there either"
    if forward is not None:
        return f"{steps}: {module(forward)} overflows in the forward pass"
    if found.is_search:
        return f"{steps}, as the scaler looked for S"
    if found.nan_without_overflow:
        return f"{steps}: at {steps_of(found.nan_without_overflow)} gradients were NaN, which no overflow made"
    return f"{steps}{_breaks_first(found.blamed)}"


def _breaks_first(blamed):
    by_module, by_parameter = most_often(blamed, "module_output"), most_often(blamed, "parameter")
    if not by_module and not by_parameter:
        return ""
    return f": the gradient of {module(by_module[0]) if by_module else code(by_parameter[0])} breaks first"


def skipped(found):
    """Which steps were lost, and what broke first."""
    if not found.lost:
        return []
    partly = "partly applied: one optimizer skipped them, another did not"
    what = "not finite, and applied" if found.applied else partly if found.partly_applied else "skipped"
    numbers = list(map(str, found.lost_steps))
    until = f"; the last of them {numbers[-1]}" if len(numbers) > 4 else ""
    sentences = [f"Steps that were {what}: {listed(numbers)}{until}, of {len(found.steps)}."]
    if found.is_search:
        sentences.append("They came at the very beginning or right after S had grown: so a dynamic scaler finds its S.")
    sentences.append(_first_bad(found.lost[0]))
    if len({skip.get("parameter") for skip in found.blamed} - {None}) > 1:
        name, times = most_often(found.blamed, "parameter")
        sentences.append(f"Most often it was {code(name)}, {times} of {len(found.blamed)} times.")
    return [*sentences, *_weights(found), *_module(found)]


def _weights(found):
    weights = found.spoilt_weights()
    if not weights:
        return []
    began = f"The trouble began before step {weights['step']}"
    return [f"{began}: the weights {code(weights['weight_before'])} were not finite then."]


def _first_bad(skip):
    rank = f" of rank {skip['rank']}" if "rank" in skip else ""
    at = f"At step {skip['step']}{rank}, with {s_is(scale(skip['scale']))},"
    if not skip.get("parameter"):
        return f"{at} it is not recorded which gradient was the first that was not finite."
    if not skip.get("index"):
        return f"{at} the gradient of {code(skip['parameter'])} was the first that was not finite, in backward order."
    index = ", ".join(map(str, skip["index"]))
    sentence = (
        f"{at} the gradient of {code(skip['parameter'])} was the first that was not finite, in backward order: "
        f"{number(skip['value'])} at [{index}]."
    )
    largest = skip.get("largest_finite")
    return f"{sentence} The largest that was finite is {number(largest)}, S divided out." if largest else sentence


def _module(found):
    blamed = found.blamed
    seen = next((skip for skip in blamed if _has(skip, "module_output") or _has(skip, "forward_output")), None)
    if seen is None:
        return _no_module(found) if "module_output" in blamed[0] else []
    if seen.get("forward_output") == INPUT:
        return [f"The trouble began before the model: at step {seen['step']} its input was not finite."]
    if _has(seen, "forward_output"):
        place = module(seen["forward_output"])
        what = place if place.startswith(INPUT_OF) else f"the output of {place}"
        return [f"The trouble began in the forward pass: at step {seen['step']} {what} was the first that was not finite."]
    return [
        f"The forward pass was finite; in the backward pass of step {seen['step']} the gradient of the output of "
        f"{module(seen['module_output'])} was the first module's that was not."
    ]


def _no_module(found):
    hooked = next((skip for skip in found.blamed if found.had_hooks(skip)), None)
    if hooked is None:
        return ["Hooks were on at none of these steps, so the module is not known."]
    seen = f"At step {hooked['step']} every output that hooks saw was finite, and so was its gradient"
    return [f"{seen}: the parameter’s alone was not."]


def _has(skip, column):
    return skip.get(column) is not None


def cure(found):
    """Whether a smaller S cures the steps that were lost."""
    if not found.lost:
        return []
    cured, hopeless, forward, stubborn, untold = ([], [], [], [], [])
    strange = found.nan_without_overflow
    spoilt = [skip for skip in found.blamed if _has(skip, "weight_before")]
    for skip in found.blamed:
        if skip in spoilt or skip in strange:
            continue
        if skip.get("cured_by"):
            cured.append(skip)
        elif skip.get("twin") == "not finite":
            hopeless.append(skip)
        elif _has(skip, "forward_output"):
            forward.append(skip)
        else:
            (stubborn if skip.get("twin") == "finite" else untold).append(skip)
    sentences = []
    if cured:
        scales = sorted({skip["cured_by"] for skip in cured})
        how_many = len(_numbers(cured))
        which = f"{how_many} of {len(_numbers(found.blamed))} steps" if how_many > 1 else steps_of(cured)
        to = f" to {scale(scales[-1])}" if len(scales) > 1 else ""
        sentences.append(f"A smaller S cures {which}: repeated with {s_is(scale(scales[0]))}{to}, nothing overflows.")
    given = [skip for skip in forward + hopeless if skip.get("forward_output") == INPUT]
    hopeless, forward = ([skip for skip in some if skip not in given] for some in (hopeless, forward))
    if spoilt:
        sentences.append(f"No S cures {steps_of(spoilt)}: the weights were not finite already.")
    if given:
        sentences.append(f"No S cures {steps_of(given)}: the model’s input was not finite.")
    if strange:
        sentences.append(
            f"S did not spoil {steps_of(strange)}: gradients were NaN there, while the largest of all finite steps lies more "
            "than four octaves below an overflow."
        )
    if hopeless:
        sentences.append(f"No S cures {steps_of(hopeless)}: the gradients are not finite in FP32 either.")
    if forward:
        sentences.append(f"No S cures {steps_of(forward)}: S does not touch the forward pass, which overflowed.")
    if stubborn:
        sentences.append(f"None of the smaller S that were tried cures {steps_of(stubborn)}, although FP32 is finite there.")
    if untold:
        sentences.append(_untold(found, untold))
    return sentences


def steps_of(skips):
    numbers = _numbers(skips)
    return f"step{'s' if len(numbers) > 1 else ''} {listed(map(str, numbers))}"


def _numbers(skips):
    return sorted({skip["step"] for skip in skips})


def _untold(found, untold):
    which = "it" if len(untold) == len(found.blamed) else steps_of(untold)
    reason = next((skip["twin"] for skip in untold if skip.get("twin")), None)
    why = "the record has no repeat of it with a smaller one"
    if found.is_of_torch:
        why = f"run {code('watch')} with {code('twin=compute_loss')}"
    if found.applied:
        why = "a step that was applied is not repeated with other scales"
    elif reason:
        why = f"the repeat in FP32 failed ({html.escape(reason.removeprefix('none: '))})"
    recovery, hint = found.recovery(), "No finite step came after it."
    if recovery:
        hint = f"The next finite step was {recovery[0]}, with {s_is(scale(recovery[1]))}."
    return f"Whether a smaller S cures {which} cannot be told: {why}. {hint}"


def losses(tensors, log2_recommended):
    """What FP16 makes zero at S = 1, at the S used and at the recommended one, and which scales keep it."""
    histogram = tensors.total.histogram
    if histogram.total == 0:
        return ["No step was sampled, so it cannot be told what FP16 makes of the gradients."]
    if histogram.nonzero_finite == 0:
        why = ". Whether FP16 made them so cannot be told from them"
        if tensors.is_truth:
            why = "" if tensors.untold else ": there is nothing to scale"
        return [f"Every gradient that was counted is zero or not finite{why}."]
    sentences = [_counted(tensors, log2_recommended)] if tensors.is_truth else _bounded(tensors)
    lowest, headroom = tensors.total.lowest_keeping(), tensors.total.headroom
    if tensors.is_truth and tensors.total.share("flushed", 0) >= NOTICEABLE:
        which = f"{s_is(power(headroom))} alone"
        if lowest < headroom:
            which = f"Every S from {power(lowest)} to {power(headroom)}"
        sentences.append(f"{which} keeps as much as can be kept without overflow, to 0.1{NO_BREAK}% of the values.")
    overflowed = tensors.total.share("overflowed", tensors.log2_used or 0)
    if overflowed:
        sentences.append(f"At {s_is(power(tensors.log2_used or 0))}, {percent(overflowed)} overflow.")
    if log2_recommended is not None:
        why = "an octave below the largest without overflow"
        if log2_recommended >= LARGEST_LOG2_SCALE:
            is_capped = log2_recommended == LARGEST_LOG2_SCALE
            why = "the largest that FP32 holds" if is_capped else f"{why}, which FP32 does not hold"
        sentences.append(f"Recommended: {s_is(power(log2_recommended))}, {why}.")
    if tensors.left_out:
        sentences.append(
            f"Left out are gradients that are made in FP32, which S neither saves nor overflows: {named(tensors.left_out)}."
        )
    if not tensors.exact:
        sentences.append("S was no power of two at some samples: these answers hold to within an octave.")
    return sentences


def _counted(tensors, log2_recommended):
    at = {0: s_is(1)}
    if tensors.log2_used is not None:
        at.setdefault(tensors.log2_used, f"{s_is(power(tensors.log2_used))}, {tensors.what}")
    if log2_recommended is not None:
        at.setdefault(log2_recommended, f"{s_is(power(log2_recommended))}, recommended")
    shares = [f"{percent(tensors.total.share('flushed', log2))} at {where}" for log2, where in at.items()]
    name = format_name(tensors.total.format)
    sentence = f"{name} makes zero, of the gradients that are not zero: {'; '.join(shares)}."
    scale_used, dying = tensors.log2_used or 0, []
    for how, rows in (("everything", tensors.wholly_lost(scale_used)), ("more than half", tensors.mostly_lost(scale_used))):
        if rows:
            lose = "loses" if len(rows) == 1 else "lose"
            dying.append(f"{len(rows)} of {count(len(tensors.rows), 'tensor')} {lose} {how}: {named(rows)}.")
    if dying:
        sentence += f" At {s_is(power(scale_used))}, {' '.join(dying)}"
    elif tensors.rows and tensors.total.share("flushed", scale_used) >= NOTICEABLE:
        sentence += f" No tensor loses more than half at {s_is(power(scale_used))}."
    return sentence


def _bounded(tensors):
    """The run itself was in FP16: what it lost are zeros now."""
    at = s_is(power(tensors.log2_used))
    total, used, sentences = tensors.total, tensors.log2_used, []
    if tensors.below_normal:
        lie = "lies" if len(tensors.below_normal) == 1 else "lie"
        sentences.append(
            f"At {at}, {len(tensors.below_normal)} of {count(len(tensors.rows), 'tensor')} {lie} wholly below FP16’s normal "
            f"numbers, where first digits are lost and then the values: {named(tensors.below_normal)}."
        )
    if tensors.zero:
        zero = f"{len(tensors.zero)} of {count(len(tensors.rows), 'tensor')}"
        sentences.append(f"{zero} got nothing but zeros: {named(tensors.zero)}.")
    histogram = total.histogram
    sentences.append(
        f"Of all gradients {percent(histogram.zero / histogram.total)} are zero; of the others "
        f"{percent(total.share('subnormal', used))} are subnormal at {at}."
    )
    if used > 0:
        flushed = percent(total.share("flushed", 0))
        sentences.append(f"Without a scaler, at {s_is(1)}, FP16 makes at least {flushed} of these zero.")
    if tensors.verdict != "keeps":
        sentences.append(
            "How many of the zeros FP16 made cannot be told by a run that lost the values; "
            f"{code('watch(..., twin=compute_loss)')} repeats samples in FP32 and counts them."
        )
    return sentences


def headline_of(tensors):
    """Of tensors that belong to no run."""
    name, scale_used = format_name(tensors.total.format), s_is(power(tensors.log2_used or 0))
    untold = tensors.untold
    untold = f"whether {named(untold)} {'was' if len(untold) == 1 else 'were'} lost before cannot be told" if untold else ""
    if tensors.verdict is None:
        nothing = "no value is finite and other than zero"
        return f"{untold[0].upper()}{untold[1:]}: {nothing}" if untold else f"There is nothing to lose: {nothing}"
    if tensors.total.share("overflowed", tensors.log2_used or 0):
        return f"These gradients overflow {name} at {scale_used}"
    if tensors.verdict == "flushes":
        return f"{name} makes {_flushed(tensors)} of these gradients zero at {scale_used}"
    headline = f"{name} {tensors.verdict} these gradients at {scale_used}"
    best = tensors.total.recommended
    if tensors.verdict == "keeps" and tensors.keeps_digits(best):
        headline += f", {percent(tensors.total.share('subnormal', tensors.log2_used or 0))} of them with fewer digits"
    return f"{headline}, but {untold}" if untold and tensors.verdict == "keeps" else headline


def zero_before(tensors):
    """Which tensors, that belong to no run, may have lost values before they were counted."""
    some = [row for row in tensors.rows if row.has_untold_zeros(tensors.log2_used or 0)]
    sentences = []
    for rows, zeros, told in (
        (some, "exact zeros beside subnormal numbers", "How many of these zeros {} made"),
        (tensors.untold, "no finite value but exact zeros", "Whether {} made these zeros"),
    ):
        if rows:
            hold, format = "holds" if len(rows) == 1 else "hold", stored_as(rows)
            sentences.append(
                f"{named(rows)} {hold} {format} with {zeros}. {told.format(format)} cannot be told from them; gradients kept "
                "in FP32 tell it."
            )
    return sentences


def stored_as(rows):
    return " or ".join(sorted({format_name(row.stored_as) for row in rows}))


def not_finite(tensors):
    """Which tensors, that belong to no run, hold values that are not finite."""
    bad = [row for row in tensors.rows if row.forecast.histogram.infinite + row.forecast.histogram.nan]
    cure = "" if tensors.log2_used else ", which no scale cures"
    return [f"Not finite already{cure}: values of {named(bad)}."] if bad else []


def format_name(format):
    return "FP16" if format.name == "binary16" else html.escape(format.name)


def unseen(found):
    """What the record does not tell, and why."""
    manifest, tensors = found.record.manifest, found.tensors
    notes = [f"{html.escape(note)}." for note in manifest.get("notes", ())]
    ended = manifest.get("ended", "finished")
    if ended == "running":
        notes.append("The run was killed, or goes on still: these are the steps until then.")
    elif ended != "finished":
        notes.append(f"The run ended by {html.escape(ended)}.")
    if not tensors.rows and tensors.total.histogram.total:
        notes.append("The record has no tensors one by one, as those of the experiments have none: all gradients together.")
    if found.source == "run" and not found.is_forecast and len(found.steps):
        notes.append("What FP16 made zero before it was counted is counted as zeros.")
    if not tensors.exact:
        notes.append("Where S was no power of two, magnitudes hold to within an octave.")
    return notes


def provenance(found):
    """Where the numbers come from."""
    sampled = {step for step, of in found.record.exponents if of == found.source}
    kept = sampled - found.record.bad_steps(found.source) or sampled
    counted = "" if kept == sampled else f", of which {len(kept)} are counted: the others tell nothing of S"
    source = html.escape(str(found.record.manifest.get("source", "")))
    return f"{source}{'; ' if source else ''}{count(len(found.steps), 'step')}, {count(len(sampled), 'sample')}{counted}."
