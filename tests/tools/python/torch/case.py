"""What the tests with PyTorch share. They take numpy and torch from here: where this Python lacks one of them, or cannot load
the module, they are skipped (exit code 3, and a line that says why)."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

try:
    import halflab
    import numpy as np
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {sys.executable} lacks what this needs ({error}); HALFLAB_TORCH_PYTHON names a Python that has it")
    raise SystemExit(3) from None

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def needs(*version):
    """Skips a test on an older PyTorch."""
    text = ".".join(map(str, version))
    return unittest.skipIf(VERSION < version, f"needs PyTorch {text}, this is {torch.__version__}")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)
        torch.set_num_threads(1)

    def assert_refused(self, fragment, function, *arguments, **options):
        with self.assertRaises((halflab.torch.WatchError, ValueError)) as caught:
            function(*arguments, **options)
        self.assertIn(fragment, str(caught.exception))
        self.assertEqual(len(str(caught.exception).splitlines()), 1)


class Training:
    """A small network that trains under FP16 autocast with a GradScaler; all of it follows from the seed."""

    def __init__(
        self,
        model=None,
        scale=2.0**16,
        autocast=torch.float16,
        accumulate=1,
        classes=3,
        device="cpu",
        optimizer={},
        **scaler,
    ):
        torch.manual_seed(5)
        self.device = device
        self.model = (model() if model is not None else mixed_model(classes)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, momentum=0.9, **optimizer)
        self.scaler = torch.amp.GradScaler(device, init_scale=scale, **scaler) if scale else None
        self.autocast, self.accumulate = autocast, accumulate
        draw = torch.Generator().manual_seed(7)
        self.x = torch.randn(32, 8, generator=draw).to(device)
        self.y = torch.randint(classes, (32,), generator=draw).to(device)
        self.losses, self.step_done = [], lambda step: None

    def loss(self):
        with torch.autocast(self.device, dtype=self.autocast or torch.bfloat16, enabled=self.autocast is not None):
            return nn.functional.cross_entropy(self.model(self.x), self.y)

    def run(self, steps=12):
        for step in range(steps):
            self.optimizer.zero_grad()
            for _ in range(self.accumulate):
                loss = self.loss() / self.accumulate
                (self.scaler.scale(loss) if self.scaler else loss).backward()
                self.losses.append(loss.item())
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.step_done(step)
        return self

    def watch(self, steps=12, **options):
        options = {"optimizer": self.optimizer, "scaler": self.scaler, **options}
        with halflab.torch.watch(self.model, **options) as watched:
            self.run(steps)
        notes = watched.record.manifest["notes"]
        assert not any(note.startswith("not seen any more") for note in notes), notes
        return watched


def mixed_model(classes=3):
    """Modules in place, with random numbers, with buffers."""
    return nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(inplace=True), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, classes)
    )


def hooks_in(model):
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def step_hooks_of(optimizer):
    """Its hooks, and before PyTorch 2.0 its step() where that is not the class's own."""
    return len(getattr(optimizer, "_optimizer_step_pre_hooks", ())) + ("step" in vars(optimizer))


def has_module(name):
    return importlib.util.find_spec(name) is not None
