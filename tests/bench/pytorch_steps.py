"""Times FP32 training steps of the benchmark's networks in PyTorch on one core; prints "model seconds" lines.

The same shapes, batches and optimizers as step_mlp_fp32, step_cnn_fp32, step_ssd_fp32 and step_transformer_fp32. Where it
fails, as without torch, the last line says why.
"""
import os
import statistics
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch
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


class Ssd(nn.Module):
    """Logits and offsets of the 8 x 8 + 4 x 4 cells' 4 anchors each, 320 of an image of 64 x 64 pixels."""

    def __init__(self, anchors=4, classes=4):
        super().__init__()
        self.classes = classes
        widths = [(3, 16), (16, 16), (16, 32), (32, 32), (32, 64), *[(64, 64)] * 5]
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in widths)
        self.class_heads = nn.ModuleList(nn.Conv2d(64, anchors * classes, 3, padding=1) for _ in range(2))
        self.box_heads = nn.ModuleList(nn.Conv2d(64, anchors * 4, 3, padding=1) for _ in range(2))
        for head in (*self.class_heads, *self.box_heads):
            nn.init.normal_(head.weight, std=0.02)

    def forward(self, x):
        rows = lambda head, tap, length: head(tap).permute(0, 2, 3, 1).reshape(len(tap), -1, length)
        logits, boxes = [], []
        x = (x - 0.5) * 256
        for pair in range(5):
            if pair > 0:
                x = F.max_pool2d(x, 2)
            for layer in (2 * pair, 2 * pair + 1):
                x = F.relu(self.convolutions[layer](x))
            if pair >= 3:
                logits.append(rows(self.class_heads[pair - 3], x / 64, self.classes))
                boxes.append(rows(self.box_heads[pair - 3], x / 64, 4))
        return torch.cat(logits, 1), torch.cat(boxes, 1)


def detection_loss(outputs, labels, offsets):
    """Over all values of the heads: matched anchors (label > 0) and the three hardest negatives of an image for each."""
    logits, boxes = outputs
    with torch.no_grad():
        losses = (logits.logsumexp(2) - logits[:, :, 0]).masked_fill(labels > 0, float("-inf"))
        ranks = losses.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        matched = labels > 0
        kept = matched | (ranks < 3 * matched.sum(1, keepdim=True))
    values = labels.numel() * (logits.shape[2] + 4)
    classification = F.cross_entropy(logits[kept], labels[kept], reduction="sum")
    return (classification + F.smooth_l1_loss(boxes[matched], offsets[matched], reduction="sum")) / values


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
    mlp = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    cnn, ssd, transformer = Cnn(), Ssd(), Transformer()
    momentum = lambda model, rate, decay=0: torch.optim.SGD(model.parameters(), rate, 0.9, weight_decay=decay)
    labels = lambda classes, *shape: torch.randint(classes, shape)
    # Of an image some four of the 320 anchors answer for an object; which, is the data's affair and not timed.
    matches = labels(3, 16, 320).add(1).where(torch.rand(16, 320) < 4 / 320, 0)
    return {
        "mlp": (mlp, momentum(mlp, 0.05), torch.rand(128, 784), F.cross_entropy, labels(10, 128)),
        "cnn": (cnn, momentum(cnn, 0.05), torch.rand(64, 1, 28, 28), F.cross_entropy, labels(10, 64)),
        # The rate of the first step of its warm-up.
        "ssd": (ssd, momentum(ssd, 12 / 50, 7e-7), torch.rand(16, 3, 64, 64), detection_loss, matches,
                torch.randn(16, 320, 4)),
        "transformer": (transformer, torch.optim.AdamW(transformer.parameters(), 1e-3), labels(67, 16, 64),
                        F.cross_entropy, labels(67, 16 * 64)),
    }  # fmt: skip


if __name__ == "__main__":
    for name, case in cases().items():
        print(name, seconds_per_step(*case), flush=True)
