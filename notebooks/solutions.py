"""Solutions of the exercises of the notebooks beside this file: python3 solutions.py [NOTEBOOK]

Each prints what it computes; every claim is an assertion, as in the notebooks. Where an exercise changes a cell, that cell of
the notebook is run with the change.
"""

import contextlib
import io
import json
import pathlib
import re
import sys

import halflab
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PATTERN = "....X....XX.X......."  # of notebook 4: X marks a step whose gradients overflow


def cells_of(notebook):
    (file,) = HERE.glob(f"{notebook:02}_*.ipynb")
    return json.loads(file.read_text(encoding="utf-8"))["cells"]


def cell(notebook, name, changes=(), **names):
    """What a cell of a notebook defines, once (old, new) texts are changed in it; `names` are what cells before it define."""
    source = "".join(next(each for each in cells_of(notebook) if each["id"] == name)["source"])
    for old, new in changes:
        assert old in source, f"notebook {notebook}, cell {name}: {old!r} is gone"
        source = source.replace(old, new)
    defined = {"halflab": halflab, "np": np, **names}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(source, defined)
    return defined


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


def three_1():
    """It falls: from one in seven to one in thirty-six. The third cause: early, few digits are right already, and a right one
    sends back next to nothing."""
    late = cell(3, "real")["s"]
    early = cell(3, "real", [("steps=600", "steps=100")])["s"]
    share = "fraction_flushed_at_scale_1"
    assert early[share] < 0.05 < 0.13 < late[share] and early["test_accuracy"] < late["test_accuracy"]
    return f"flushed after 100 steps {early[share]:.1%}, after 600 {late[share]:.1%}"


def three_2():
    """At most at 2^-11, which is 1 / 2048: twice the batch costs an octave."""
    changes = [("batch=1024", "batch=2048"), ("128: trained, 1024: fresh", "2048: fresh")]
    fresh = cell(3, "mean", changes, network="mlp:hidden1=256:hidden2=128")["fresh"]
    largest = fresh.tables["moments"][0]["max_abs_log2"]
    assert -11.2 < largest <= -11
    return f"2^{largest:.2f}"


def three_3():
    """Yes, the first two with all of their gradients. Depth counts, not width."""
    depth = cell(3, "sigmoid", [('model="autoencoder"', 'model="autoencoder:width=64"')])["depth"]
    flushed = dict(zip(depth["tensor"], depth["fraction_flushed_at_scale_1"]))
    assert flushed["encoder1"] == flushed["encoder2"] == 1 and 0.2 < flushed["encoder3"] < 0.6
    return {str(name): f"{share:.1%} flushed" for name, share in flushed.items()}


def three_4():
    """By a hundredth of a per cent: a little more is lost than predicted. As much is lost on the way to the cast as is kept
    against the prediction, and the two cancel."""
    sweep = cell(3, "measured", [("model=network, steps=600", 'model="lstm", steps=30')])["sweep"]
    predicted, measured = sweep["fraction_flushed_predicted"][0], sweep["fraction_flushed"][0]
    assert 0 < measured - predicted < 2e-4 and sweep["fraction_lost_upstream"][0] > 10 * (measured - predicted)
    return f"predicted {predicted:.3%}, measured {measured:.3%}"


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


def four_4():
    """Yes: between two poisoned steps lie eleven clean ones, of which ten let S grow by the octave that the last one cost."""
    changes = [("dynamic:growth_interval=20", "dynamic:growth_interval=10")]
    names = cell(4, "poisoned", changes)
    scales, bad = names["scales"], 12 * np.arange(1, 5) - 1
    log2 = scales["scale_log2"][scales["strategy"] == "dynamic:growth_interval=10"]
    assert np.all(log2[bad] == 17) and np.all(log2[bad + 1] == 16)
    return f"log2 S {log2[bad]} -> {log2[bad + 1]}"


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


def five_3():
    """No: updates a hundred times as large are not swallowed, at first not one, and all four end alike."""
    names = cell(5, "training", [("lr=1e-5", "lr=1e-3")])
    losses = list(names["final_loss"].values())
    assert max(losses) < 1.05 * min(losses) and names["first"]["O2:master_weights=false"] < 0.01
    return {policy: f"test loss {loss:.3f}" for policy, loss in names["final_loss"].items()}


def five_4():
    """At 1024: there the gap is 1, and four tenths, which a step adds, are less than half of it."""
    tenths = halflab.round_to(np.full(65536, 0.1))
    total = halflab.matmul(tenths, np.ones(65536), "volta_fp16")
    assert total == 1024 and halflab.ulp(total) / 2 > 4 * tenths[0]
    return float(total)


def six_1():
    """95 % of them. Just above a power of two an ulp is the largest part of a number, up to 1/1024; those of them that are
    below 1/4 pass still, by the 1e-5."""
    names = cell(6, "tolerance", [("1e-3 *", "9e-4 *")])
    positive, normal = names["positive"], names["normal"]
    right = names["passes"](names["neighbours"], positive)
    failing = positive[~right]
    assert right[normal].sum() == 29230 and failing.min() == 0.25
    assert np.ldexp(failing, 1 - np.frexp(failing)[1]).max() < 1.09
    return f"{right[normal].sum():,} of {normal.sum():,}"


def six_2():
    """Through float64 both are right. Through a perfect float32 cbrt is not: rounded twice, one significand comes out wrong, in
    every third octave. Numpy's own float32 is off by less than a float there, to the good side."""
    changes = [('"arcsinh": np.arcsinh,', '"cbrt": np.cbrt, "arcsin": np.arcsin,'), ("ours = {", 'ours = {"arcsin": "asin", ')]
    through = cell(6, "peer-functions", changes, x=halflab.decode(np.arange(2**16, dtype=np.uint16)))["through"]
    assert all(through["float64"][name] == (0, 0) for name in ("cbrt", "arcsin"))
    assert through["perfect float32"]["cbrt"] == (20, 1) and through["float32"]["arcsin"][0] < 10
    return {way: {name: counts[name][0] for name in ("cbrt", "arcsin")} for way, counts in through.items()}


def six_3():
    """Every one from -23 on, where each sum is exact. And from -28 down, where all fifteen are less than half an ulp of 1."""
    names = cell(6, "constructed")
    agree = []
    for exponent in range(-36, 1):
        left, right = names["sixteen"](exponent)
        orders = [(left, right), (left[::-1].copy(), right[::-1].copy())]
        sums = [halflab.matmul(*factors, how) for factors in orders for how in names["accumulations"]]
        if np.ptp(sums) == 0:
            agree.append(exponent)
    assert agree == [*range(-36, -27), *range(-23, 1)]
    return f"all from {agree[9]} on, and those up to {agree[8]}"


def six_4():
    """No. Within a step the order does not matter; which products come into which of the four steps does."""
    rng = np.random.default_rng(0)
    left, right = halflab.round_to(rng.normal(size=(256, 64))), halflab.round_to(rng.normal(size=(64, 256)))
    shuffled, within = rng.permutation(64), np.concatenate([16 * step + rng.permutation(16) for step in range(4)])
    plain = halflab.matmul(left, right, "hopper_fp32")
    unchanged = [np.mean(halflab.matmul(left[:, p], right[p], "hopper_fp32") == plain) for p in (shuffled, within)]
    assert unchanged[0] < 0.5 and unchanged[1] == 1
    return f"unchanged when all are shuffled: {unchanged[0]:.1%}; each sixteen in themselves: {unchanged[1]:.0%}"


def seven_1():
    """Tensors of fewer than 4096 values keep 8 bytes of state for each, here three vectors and the last layer. The others have
    two bytes and, for each 256 values, two scales in FP32: 2.03."""
    step = halflab.memory("mlp", policy="amp", optimizer="adamw8bit")
    shapes = {"fc1": 784 * 512, "fc2": 512 * 256, "others": 512 + 256 + 256 * 10 + 10}
    small, large = shapes["others"], shapes["fc1"] + shapes["fc2"]
    assert step["parameters"] == small + large
    assert step["optimizer_state"] == 8 * small + 2 * large + 2 * 4 * large // 256
    return f"{step['optimizer_state'] / step['parameters']:.3f} bytes per parameter"


def seven_2():
    """The small and the medium one. gpt2_large needs 20 GiB now; selective recomputation brings it below 16 again."""
    totals = {}
    for recomputation in ("none", "selective"):
        for network in ("gpt2_small", "gpt2_medium", "gpt2_large", "gpt2_xl"):
            step = halflab.memory(network, batch=1, sequence=1024, recomputation=recomputation)
            totals[recomputation, network] = step["total"] / 2**30
    fitting = [network for (kind, network), total in totals.items() if kind == "none" and total < 16]
    assert fitting == ["gpt2_small", "gpt2_medium"]
    assert totals["selective", "gpt2_large"] < 16 < totals["selective", "gpt2_xl"]
    return {f"{network}, {recomputation}": f"{total:.1f} GiB" for (recomputation, network), total in totals.items()}


def seven_3():
    """Two: nine in place of seven, and twenty with full recomputation, where an example costs less."""
    room = 16 * 2**30 - 1343 * 2**20
    largest = {}
    for recomputation in ("none", "full"):
        for optimizer in ("adamw", "adamw8bit"):
            options = {"sequence": 512, "optimizer": optimizer, "recomputation": recomputation}
            fits = [halflab.memory("bert_large", batch=batch, **options)["total"] <= room for batch in range(1, 130)]
            largest[recomputation, optimizer] = fits.index(False)
    assert list(largest.values()) == [7, 9, 93, 113]
    return {", ".join(names): batch for names, batch in largest.items()}


def seven_4():
    """The largest batch is nine times as large, as five times the memory leaves more beside weights and state. Shares of time
    hardly move: the card has 2.5 times the arithmetic and 2.2 times the bandwidth."""
    cards = {card: halflab.run_experiment("memory_anatomy", quick=True, card=card, policy=policy)
             for card, policy in (("v100", "amp"), ("a100-80gb", "bf16"))}  # fmt: skip
    batches = [run.summary[f"largest_batch.{policy}.none"] for run, policy in zip(cards.values(), ("amp", "bf16"))]
    times = [run.summary["time_share.tensor_contraction"] for run in cards.values()]
    assert batches == [7, 63] and abs(times[0] - times[1]) < 0.03
    return f"batches {batches}, share of products {times[0]:.0%} and {times[1]:.0%}"


NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


def exercises(notebook):
    """How many the notebook has."""
    for each in cells_of(notebook):
        text = "".join(each["source"])
        if text.startswith("## Try it yourself"):
            return len(re.findall(r"^\d+\. ", text, re.MULTILINE))
    return 0


def main(wanted):
    solutions = {}
    for name, solution in globals().items():
        notebook, _, exercise = name.partition("_")
        if notebook in NUMBERS and exercise.isdigit():
            solutions[NUMBERS[notebook], int(exercise)] = solution
    for notebook in range(1, 10):
        own = [exercise for number, exercise in solutions if number == notebook]
        assert own == list(range(1, exercises(notebook) + 1)), f"notebook {notebook} has other exercises than these: {own}"
    for (notebook, exercise), solution in solutions.items():
        if wanted in (None, str(notebook)):
            print(f"{notebook}, exercise {exercise}: {solution()}\n    {' '.join(solution.__doc__.split())}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
