"""Solutions of the exercises of notebooks 1, 2, 4 and 5 that need no training: python3 solutions.py [NOTEBOOK]

Each prints what it computes; every claim is an assertion, as in the notebooks.
"""

import sys

import halflab
import numpy as np

PATTERN = "....X....XX.X......."  # of notebook 4: X marks a step whose gradients overflow


def value(fields):
    return halflab.decode(int(fields.replace(" ", ""), 2))


def one_1():
    """7 is 1.75 x 2^2: the second bit of the significand. -6 is 6 with the sign."""
    assert value("0 10001 1000000000") == 6
    assert value("0 10001 1100000000") == 7
    assert value("1 10001 1000000000") == -6
    return value("0 10001 1100000000"), value("1 10001 1000000000")


def one_2():
    """2^p + 1, with p bits of precision: from 2^p on neighbours are 2 apart."""
    holes = {}
    for name in ("binary16", "bfloat16"):
        whole = 1.0
        while halflab.next_up(whole, name) <= whole + 1:
            whole += 1
        holes[name] = int(whole + 1)
        assert holes[name] == 2 ** halflab.formats[name].precision + 1
    assert holes == {"binary16": 2049, "bfloat16": 257}
    return holes


def one_3():
    """The middle is 1.5 again: both formats have a bias in the middle of their exponents."""
    numbers = halflab.bfloat16.values()
    positive = numbers[numbers > 0]
    assert np.median(positive) == 1.5
    assert (len(positive), np.sum(positive < 1)) == (32639, 16255)
    return f"{len(positive):,} positive numbers, {np.sum(positive < 1):,} of them below 1, the middle one 1.5"


def one_4():
    """The power of two of MXFP4's scale reaches 2^-127. NVFP4's e4m3 does not, but FP32 scales the whole array first."""
    small = np.random.default_rng(0).normal(size=4096) * 1e-30
    errors = {
        name: np.linalg.norm(halflab.round_to_blocks(small, name) - small) / np.linalg.norm(small)
        for name in ("mxfp4", "nvfp4")
    }
    assert halflab.e4m3.min_subnormal > 1e-3 and halflab.e8m0.min_normal < 1e-38
    assert all(error < 0.2 for error in errors.values())
    return {name: f"{100 * error:.0f} % of the norm" for name, error in errors.items()}


def two_1():
    """At 2^p: the gap is 2 there, the 1 half of it, and a tie goes to the even neighbour."""
    ends = {name: halflab.partial_sums(np.ones(10_000), name)[-1] for name in ("binary16", "bfloat16")}
    assert all(end == 2 ** halflab.formats[name].precision for name, end in ends.items())
    return {name: int(end) for name, end in ends.items()}


def two_2():
    """Far less: the sums stay small, and so do the gaps. Still a chain is off more than a tree, and Kahan is right."""
    terms = halflab.round_to(np.random.default_rng(0).normal(size=10_000))
    errors = {order: abs(halflab.sum(terms, order) - terms.sum()) for order in ("sequential", "pairwise", "kahan")}
    assert errors["kahan"] < errors["pairwise"] < errors["sequential"] < 1
    return {order: f"off by {error:.4f}" for order, error in errors.items()}


def two_3():
    """From 2^-24 on: FP32 has 24 bits, the last one worth 2^-23 here, and a tie drops the 2^-24."""
    harmful = []
    for k in range(12, 40):
        x = 1 + 2.0**-11 + 2.0**-k
        if halflab.round_to(halflab.round_to(x, "binary32")) != halflab.round_to(x):
            harmful.append(k)
    assert harmful == list(range(24, 40))
    return f"2^-{harmful[0]}"


def two_4():
    """The mean holds; the ends spread more against their mean, as each step up is a rarer and larger event."""
    spread = {}
    for term in (0.1, 0.001):
        terms = halflab.round_to(np.full(10_000, term))
        ends = [halflab.partial_sums(terms, rounding="stochastic", seed=seed)[-1] for seed in range(20)]
        assert abs(np.mean(ends) - terms.sum()) < 4 * np.std(ends, ddof=1) / np.sqrt(len(ends))
        spread[term] = np.std(ends, ddof=1) / terms.sum()
    assert spread[0.001] > spread[0.1]
    return {term: f"{100 * share:.1f} % of the sum" for term, share in spread.items()}


def ends_at(spec, pattern):
    """log2 S after each step, in the setting of notebook 4."""
    scaler = halflab.Scaler(spec, init_scale=2**10, growth_interval=4)
    trace = []
    for step in pattern:
        scaler.update(found_inf=step == "X")
        trace.append(int(np.log2(scaler.scale)))
    return trace


def four_1():
    """Twelve clean steps: four for each of three doublings."""
    assert ends_at("dynamic", "." * 12)[-1] == 13 and max(ends_at("dynamic", "." * 11)) == 12
    return "." * 12


def four_2():
    """That of Apex's hysteresis kernel."""
    trace = ends_at("paddle:hysteresis=2", PATTERN)
    others = ("dynamic", "megatron", "apex_hysteresis", "deepspeed", "flax")
    alike = [name for name in others if ends_at(name, PATTERN) == trace]
    assert alike == ["apex_hysteresis"]
    return alike


def four_3():
    """Two for each growth: S jumps by two octaves, and comes down one at a time. Most of the time it is at 2^25."""
    scaler = halflab.Scaler("dynamic", init_scale=2.0**25, growth_interval=20, growth_factor=4)
    at_best = skipped = 0
    for _ in range(2100):
        at_best += scaler.scale == 2.0**25
        skipped += scaler.update(found_inf=bool(np.isinf(halflab.round_to(scaler.scale * 2.0**-10)))) == "skip"
    assert skipped == 190 and at_best > 0.9 * 2100
    return f"{skipped} of 2100 skipped; S = 2^25 in {100 * at_best / 2100:.0f} % of the steps"


def five_1():
    """By one place, to 1 + 2^-9: 1 + 2^-10 has an odd code, so that the tie goes up; the next one is even and stays."""
    weight = 1 + 2.0**-10
    for _ in range(1000):
        weight = halflab.add(weight, 2.0**-11)
    assert weight == 1 + 2.0**-9
    return float(weight)


def five_2():
    """At 256 = 2^8."""
    assert halflab.sum(np.ones(1024), "sequential", "bfloat16") == 256
    return 256


def five_4():
    """At 1024: there the gap is 1, and four tenths, which a step adds, are less than half of it."""
    tenths = halflab.round_to(np.full(65536, 0.1))
    total = halflab.matmul(tenths, np.ones(65536), "volta_fp16")
    assert total == 1024 and halflab.ulp(total) / 2 > 4 * tenths[0]
    return float(total)


NUMBERS = {"one": 1, "two": 2, "four": 4, "five": 5}


def main(wanted):
    for name, solution in list(globals().items()):
        notebook, _, exercise = name.partition("_")
        if notebook in NUMBERS and exercise.isdigit() and wanted in (None, str(NUMBERS[notebook])):
            print(f"{NUMBERS[notebook]}, exercise {exercise}: {solution()}\n    {solution.__doc__}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
