"""Times FP32 training steps of the benchmark's networks in PyTorch on one core; prints "model seconds" lines.

The same shapes, batches and optimizers as the cases step_<model>_fp32. Where it fails, as without torch, the last line says why.
"""
import os
import pathlib
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tools/python/torch"))
from networks import NETWORKS, detection_loss

torch.set_num_threads(1)
torch.manual_seed(0)


def seconds_per_step(model, optimizer, inputs, loss, *targets):
    times = []
    for step in range(40):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss(model(inputs), *targets).backward()
        optimizer.step()
        if step >= 10:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def cases():
    """name: network, optimizer, inputs, loss and its targets."""
    networks = {name: network() for name, network in NETWORKS.items()}
    mlp, autoencoder, cnn, ssd, transformer, lstm = networks.values()
    momentum = lambda model, rate, decay=0: torch.optim.SGD(model.parameters(), rate, 0.9, weight_decay=decay)
    labels = lambda classes, *shape: torch.randint(classes, shape)
    # Of an image some four of the 320 anchors answer for an object; which, is the data's affair and not timed.
    matches = labels(3, 16, 320).add(1).where(torch.rand(16, 320) < 4 / 320, 0)
    images = torch.rand(512, 784)
    return {
        "mlp": (mlp, momentum(mlp, 0.05), torch.rand(128, 784), F.cross_entropy, labels(10, 128)),
        "autoencoder": (autoencoder, torch.optim.Adam(autoencoder.parameters(), 0.01), images, F.mse_loss, images),
        "cnn": (cnn, momentum(cnn, 0.05), torch.rand(64, 1, 28, 28), F.cross_entropy, labels(10, 64)),
        # The rate of the first step of its warm-up.
        "ssd": (ssd, momentum(ssd, 12 / 50, 7e-7), torch.rand(16, 3, 64, 64), detection_loss, matches,
                torch.randn(16, 320, 4)),
        "transformer": (transformer, torch.optim.AdamW(transformer.parameters(), 1e-3), labels(67, 16, 64),
                        F.cross_entropy, labels(67, 16 * 64)),
        "lstm": (lstm, torch.optim.Adam(lstm.parameters(), 0.002), labels(67, 16, 64), F.cross_entropy, labels(67, 16 * 64)),
    }  # fmt: skip


if __name__ == "__main__":
    for name, case in cases().items():
        print(name, seconds_per_step(*case), flush=True)
