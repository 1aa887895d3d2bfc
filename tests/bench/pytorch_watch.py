"""Times what halflab.torch.watch costs a PyTorch training on one core; prints "model_every_n overhead note" lines.

An overhead is the time of 50 steps with watch over that of 50 steps without: the median of pairs that follow each other. The
note says how far they spread. PYTHONPATH names the built module: PYTHONPATH=build/python python3 tests/bench/pytorch_watch.py
"""

import contextlib
import statistics
import sys
import time

import halflab.torch
from pytorch_steps import cases

STEPS, PAIRS = 50, 7


def seconds(case, every):
    model, optimizer, inputs, loss, *targets = case
    watching = halflab.torch.watch(model, optimizer=optimizer, every=every) if every else contextlib.nullcontext()
    with watching:
        begin = time.perf_counter()
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss(model(inputs), *targets).backward()
            optimizer.step()
        return time.perf_counter() - begin


def overheads(case, every):
    seconds(case, 0)
    return [seconds(case, every) / seconds(case, 0) for _ in range(PAIRS)]


if __name__ == "__main__":
    for name, case in cases().items():
        if name in (sys.argv[1:] or ("cnn", "transformer")):
            for every in (50, 1):
                found = sorted(overheads(case, every))
                figures = f"{statistics.median(found):.3f} pairs from {found[0]:.3f} to {found[-1]:.3f}"
                print(f"{name}_every_{every} {figures}", flush=True)
