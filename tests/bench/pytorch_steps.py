"""Times FP32 training steps of the benchmark's networks in PyTorch on one core; prints "model seconds" lines.

The same shapes, batches and optimizers as step_mlp_fp32, step_cnn_fp32 and step_transformer_fp32. Exits with 3
where torch is missing.
"""
import os
import statistics
import time

os.environ["OMP_NUM_THREADS"] = "1"
try:
    import torch
except ImportError:
    raise SystemExit(3)
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [(1, 16), (16, 32), (32, 32), (32, 64)]
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o in widths)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o in widths)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        normalised = lambda layer, x: self.norms[layer](self.convolutions[layer](x))
        x = F.max_pool2d(F.relu(normalised(0, x)), 2)
        x = F.max_pool2d(F.relu(normalised(1, x)), 2)
        x = F.relu(x + normalised(2, x))
        return self.output(F.relu(normalised(3, x)).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.query, self.key, self.value, self.project = (nn.Linear(width, width) for _ in range(4))
        self.hidden, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, context, width = x.shape
        normed = self.norms[0](x)
        query, key, value = (
            f(normed).view(batch, context, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / (width / self.heads) ** 0.5 + mask
        x = x + self.project((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, context, width))
        return x + self.shrink(F.gelu(self.hidden(self.norms[1](x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=67, context=64, width=128, layers=4, heads=4):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x, self.mask)
        return self.output(self.norm(x)).flatten(0, 1)


def seconds_per_step(model, optimizer, inputs, labels):
    times = []
    for step in range(40):
        begin = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        if step >= 10:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def case(name, device="cpu"):
    """Model, optimizer, inputs, and the rows and classes of the labels."""
    with torch.device(device):
        if name == "mlp":
            model = nn.Sequential(
                nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
            )
            return model, torch.optim.SGD(model.parameters(), 0.05, 0.9), torch.rand(128, 784), (128, 10)
        if name == "cnn":
            model = Cnn()
            return model, torch.optim.SGD(model.parameters(), 0.05, 0.9), torch.rand(64, 1, 28, 28), (64, 10)
        model = Transformer()
        return model, torch.optim.AdamW(model.parameters(), 1e-3), torch.randint(67, (16, 64)), (16 * 64, 67)


def main():
    for name in ("mlp", "cnn", "transformer"):
        model, optimizer, inputs, (rows, classes) = case(name)
        print(name, seconds_per_step(model, optimizer, inputs, torch.randint(classes, (rows,))), flush=True)


if __name__ == "__main__":
    main()
