"""Halflab's six networks as they are written in PyTorch, with the names that Halflab gives their parameters.

Weights are initialised as PyTorch does; load_state_dict() takes Halflab's. Images come as batch x channels x height x width,
text as batch x tokens, whose logits are rows, token by token.
"""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F


def layers(names, widths, activation):
    """Linear layers with these names, each followed by the activation."""
    modules = OrderedDict()
    for name, inputs, outputs in zip(names, widths, widths[1:]):
        modules[name] = nn.Linear(inputs, outputs)
        modules[f"{name}_activation"] = activation()
    return modules


class Mlp(nn.Sequential):
    def __init__(self):
        modules = layers(("hidden1", "hidden2"), (784, 512, 256), nn.ReLU)
        super().__init__(OrderedDict(modules, output=nn.Linear(256, 10)))


class Autoencoder(nn.Sequential):
    def __init__(self):
        names = ("encoder1", "encoder2", "encoder3", "decoder1", "decoder2", "decoder3")
        super().__init__(layers(names, (784, 256, 64, 16, 64, 256, 784), nn.Sigmoid))


class NormalisedConv2d(nn.Conv2d):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(super().forward(x))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = NormalisedConv2d(1, 16), NormalisedConv2d(16, 32)
        self.conv3, self.conv4 = NormalisedConv2d(32, 32), NormalisedConv2d(32, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(x + self.conv3(x))
        return self.output(F.relu(self.conv4(x)).mean((2, 3)))


class Ssd(nn.Module):
    """Logits and offsets of 320 anchors, those of the 8 x 8 cells before those of the 4 x 4, of images of 64 x 64 pixels."""

    def __init__(self, anchors=4, classes=4):
        super().__init__()
        self.classes = classes
        widths = [(3, 16), (16, 16), (16, 32), (32, 32), (32, 64), *[(64, 64)] * 5]
        for number, (inputs, outputs) in enumerate(widths, 1):
            self.add_module(f"conv{number}", nn.Conv2d(inputs, outputs, 3, padding=1))
        for name in ("head1", "head2"):
            heads = {kind: nn.Conv2d(64, anchors * size, 3, padding=1) for kind, size in (("class", classes), ("box", 4))}
            for head in heads.values():
                nn.init.normal_(head.weight, std=0.02)
            self.add_module(name, nn.ModuleDict(heads))

    def forward(self, x):
        rows = lambda head, tap, length: head(tap).permute(0, 2, 3, 1).reshape(len(tap), -1, length)
        logits, boxes = [], []
        x = (x - 0.5) * 256
        for pair in range(5):
            if pair > 0:
                x = F.max_pool2d(x, 2)
            for number in (2 * pair + 1, 2 * pair + 2):
                x = F.relu(self.get_submodule(f"conv{number}")(x))
            if pair >= 3:
                head = self.get_submodule(f"head{pair - 2}")
                logits.append(rows(head["class"], x / 64, self.classes))
                boxes.append(rows(head["box"], x / 64, 4))
        return torch.cat(logits, 1), torch.cat(boxes, 1)


def anchors():
    """Rows of x, y, width, height, as Ssd orders them."""
    rows = []
    for cells, size, next_size in ((8, 0.2, 0.4), (4, 0.4, 0.6)):
        between = (size * next_size) ** 0.5
        shapes = [(size, size), (between, between), (size * 2**0.5, size / 2**0.5), (size / 2**0.5, size * 2**0.5)]
        centres = [(i + 0.5) / cells for i in range(cells)]
        rows += [(x, y, *shape) for y in centres for x in centres for shape in shapes]
    return torch.tensor(rows)


def overlaps(boxes, anchors):
    """Intersection over union of boxes (rows of x_min, y_min, x_max, y_max) and anchors, boxes x anchors."""
    low, high = anchors[:, :2] - anchors[:, 2:] / 2, anchors[:, :2] + anchors[:, 2:] / 2
    sides = torch.minimum(high, boxes[:, None, 2:]) - torch.maximum(low, boxes[:, None, :2])
    common = sides.clamp(min=0).prod(2)
    return common / (anchors[:, 2:].prod(1) + (boxes[:, 2:] - boxes[:, :2]).prod(1, keepdim=True) - common)


def matched(boxes):
    """What each anchor of one image is to predict: labels, 0 for background, and offsets. An anchor answers for the object
    that it overlaps most, if by half; and each object has the anchor that overlaps it most, of those not yet taken.

    `boxes` are rows of class, x_min, y_min, x_max, y_max.
    """
    all_anchors = anchors()
    shared = overlaps(boxes[:, 1:], all_anchors)
    best, objects = shared.max(0)
    objects = objects.where(best >= 0.5, -1)
    taken = torch.zeros(len(all_anchors), dtype=torch.bool)
    for row, of_object in enumerate(shared):
        first = of_object.masked_fill(taken, -1).argmax()
        objects[first], taken[first] = row, True
    found = boxes[objects]
    offsets = torch.cat([
        ((found[:, 1:3] + found[:, 3:]) / 2 - all_anchors[:, :2]) / (0.1 * all_anchors[:, 2:]),
        ((found[:, 3:] - found[:, 1:3]) / all_anchors[:, 2:]).log() / 0.2,
    ], 1)  # fmt: skip
    is_object = objects >= 0
    return (found[:, 0].long() + 1) * is_object, offsets * is_object[:, None]


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


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        batch, context, width = x.shape
        normed = self.norm(x)
        query, key, value = (
            f(normed).view(batch, context, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / (width / self.heads) ** 0.5 + mask
        return self.output((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, context, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.mlp = nn.Module()
        self.mlp.norm = nn.LayerNorm(width)
        self.mlp.hidden, self.mlp.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = x + self.attention(x, mask)
        return x + self.mlp.output(F.gelu(self.mlp.hidden(self.mlp.norm(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=67, context=64, width=128, blocks=4, heads=4):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        for number in range(1, blocks + 1):
            self.add_module(f"block{number}", Block(width, heads))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1), persistent=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for name, block in self.named_children():
            if name.startswith("block"):
                x = block(x, self.mask)
        return self.output(self.norm(x)).flatten(0, 1)


class LstmLayer(nn.Module):
    """nn.LSTM with one bias in the place of two that are added."""

    def __init__(self, width):
        super().__init__()
        weight = lambda *shape: nn.Parameter(torch.empty(*shape).uniform_(-(width**-0.5), width**-0.5))
        self.input_weight, self.hidden_weight = weight(4 * width, width), weight(4 * width, width)
        self.bias = weight(4 * width)

    def forward(self, x):
        start = x.new_zeros(1, len(x), x.shape[2])
        weights = (self.input_weight, self.hidden_weight, self.bias, torch.zeros_like(self.bias))
        return torch.lstm(x, (start, start), weights, True, 1, 0.0, self.training, False, True)[0]


class Lstm(nn.Module):
    def __init__(self, vocabulary=67, width=128):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.lstm1, self.lstm2 = LstmLayer(width), LstmLayer(width)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.output(self.lstm2(self.lstm1(self.token(tokens)))).flatten(0, 1)


NETWORKS = {"mlp": Mlp, "autoencoder": Autoencoder, "cnn": Cnn, "ssd": Ssd, "transformer": Transformer, "lstm": Lstm}


def inputs_and_targets(name, batch):
    """What the network takes and what loss() compares it with, of a batch that Halflab wrote (--dump-tensors)."""
    if name in ("transformer", "lstm"):
        return batch["tokens"].long(), (batch["labels"].long().flatten(),)
    images = batch["inputs"]
    if name == "autoencoder":
        return images, (images,)
    if name == "ssd":
        boxes = batch["boxes"]
        labels, offsets = zip(*(matched(boxes[boxes[:, 0] == image, 1:]) for image in range(len(images))))
        return images.view(-1, 3, 64, 64), (torch.stack(labels), torch.stack(offsets))
    return images.view(-1, 1, 28, 28) if name == "cnn" else images, (batch["labels"].long(),)


def loss(name, outputs, *targets):
    return {"autoencoder": F.mse_loss, "ssd": detection_loss}.get(name, F.cross_entropy)(outputs, *targets)
