"""Memory found on fake tensors against what autograd really saves, and against the formula."""

import collections
import doctest
import itertools
import unittest
from unittest import mock

from case import Case, halflab, hooks_in, needs, nn, torch

memory = halflab.torch.memory
F = nn.functional
TYPES = {"fp32": None, "amp": torch.float16, "bf16": torch.bfloat16}


def really_saved(model, x, dtype, loss):
    """Bytes of the storages that a forward pass saves but for weights and their copies, on real tensors."""
    saved = {}
    parameters = [p.detach() for p in model.parameters()]
    known = {tensor.untyped_storage().data_ptr() for tensor in [*parameters, *model.buffers()]}
    copies = [sorted_values(p.to(dtype)) for p in parameters] if dtype else []

    def pack(tensor):
        is_copy = any(same(sorted_values(tensor), copy) for copy in copies)
        if tensor.untyped_storage().data_ptr() not in known and not is_copy:
            saved.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss(model(x))
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def sorted_values(tensor):
    """The same for all layouts and views of a copy."""
    return tensor.detach().reshape(-1).sort().values


def same(a, b):
    return a.dtype == b.dtype and torch.equal(a, b)


@needs(2, 4)
class MemoryOfModels(Case):
    def models(self):
        convolutions = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(32, 10)
        )
        return (
            (nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Dropout(0.1), nn.Linear(30, 5)), (16, 20)),
            (convolutions, (4, 3, 8, 8)),
            (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Sigmoid()), (4, 3, 8, 8)),
            (nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Softmax(-1)), (2, 6, 16)),
            (nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16)), (2, 6, 16)),
        )

    def test_activations_are_what_autograd_saves(self):
        for (model, shape), (policy, dtype) in itertools.product(self.models(), TYPES.items()):
            if dtype and any(isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)) for module in model.modules()):
                continue  # on the CPU PyTorch's fake statistics are of 16 bits
            for loss in (lambda y: y, lambda y: y.float().square().mean()):
                found = memory(model, torch.zeros(shape), policy, loss=loss)
                expected = really_saved(model, torch.randn(shape), dtype, loss)
                self.assertEqual(found["activations"], expected, (policy, model))
                self.assertEqual(sum(found.modules.values()), found["activations"])

    def test_roles_of_a_network_with_a_formula(self):
        """The published mlp. Its loss keeps, beyond what the formula has, the labels and a sum of weights."""
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
        labels = torch.zeros(64, dtype=torch.int64)
        for policy, optimizer in itertools.product(TYPES, ("sgd", "momentum", "adamw")):
            found = memory(model, torch.zeros(64, 784), policy, optimizer, lambda y: F.cross_entropy(y.float(), labels))
            formula = halflab.memory("mlp", policy, optimizer, batch=64)
            self.assertEqual(list(found), list(formula))
            for role in set(formula) - {"activations", "total"}:
                self.assertEqual(found[role], formula[role], (policy, role))
            self.assertEqual(found["activations"] - formula["activations"], 64 * 8 + 4)
            self.assertEqual(found["total"], formula["total"] + 64 * 8 + 4)

    def test_the_optimizer_state_is_that_of_torch(self):
        model = nn.Linear(30, 20)
        for name, make in (
            ("sgd", lambda p: torch.optim.SGD(p, 0.1)),
            ("momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
            ("adam", torch.optim.Adam),
            ("adamw", torch.optim.AdamW),
        ):
            optimizer = make(model.parameters())
            model(torch.ones(1, 30)).sum().backward()
            optimizer.step()
            held = [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v) and v.dim()]
            found = memory(model, torch.ones(1, 30), optimizer=name)
            self.assertEqual(found["optimizer_state"], sum(4 * v.numel() for v in held), name)

    @unittest.skipUnless(torch.backends.cuda.is_built(), "needs a PyTorch that was built for CUDA")
    def test_attention_on_a_gpu_keeps_no_scores(self):
        """Operands, result, a number for each row of scores, and some of a random generator: also where no GPU is asked."""

        class Attention(nn.Module):
            def __init__(self, mask):
                super().__init__()
                self.scale, self.mask = nn.Parameter(torch.ones(())), mask

            def forward(self, x):
                query, key, value = (x * self.scale * scale for scale in (1, 2, 3))
                return F.scaled_dot_product_attention(query, key, value, self.mask(x) if self.mask else None)

        batch, heads, length = 2, 4, 128
        bool_mask = lambda x: torch.ones(length, length, dtype=torch.bool, device=x.device)
        cases = (("fp32", None, 4, 64, 64), ("amp", None, 2, 64, 64), ("bf16", None, 2, 60, 64), ("amp", bool_mask, 2, 64, 64))
        for policy, mask, size, width, padded in cases:  # FlashAttention pads heads to a multiple of 8 numbers
            x = torch.zeros(batch, heads, length, width)
            with mock.patch("torch.cuda.is_available", lambda: False):
                found = memory(Attention(mask), x, policy, "sgd", device="cuda")["activations"]
            rows = batch * heads * length
            expected = 4 * rows * width + 4 * rows * padded * size + 4 * rows + (length * length * size if mask else 0)
            self.assertIn(found - expected, range(64), policy)
        self.assertEqual(F.scaled_dot_product_attention.__name__, "scaled_dot_product_attention")

    def test_frozen_and_tied_parameters(self):
        first, second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        second.weight = first.weight
        frozen = nn.Linear(8, 8, bias=False).requires_grad_(False)
        found = memory(nn.Sequential(frozen, first, second), torch.zeros(2, 8), "fp32", "momentum")
        self.assertEqual((found["weights"], found["gradients"], found["optimizer_state"]), (2 * 256, 256, 256))
        self.assertEqual(found["activations"], 2 * (2 * 8 * 4))  # the inputs of the two that learn

    def test_neither_memory_nor_a_gpu_is_needed_and_nothing_is_changed(self):
        with torch.device("meta"):
            large = nn.Sequential(*[nn.Linear(2**16, 2**16) for _ in range(20)])  # 344 GB
        device = "cuda" if torch.backends.cuda.is_built() else "cpu"
        found = memory(large, torch.zeros(1, 2**16), "bf16", device=device)
        self.assertEqual(found["weights"], 20 * 4 * (2**32 + 2**16))
        self.assertEqual(found["cast_weights"], found["weights"] // 2)
        model, shape = self.models()[2]
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        random, enabled = torch.get_rng_state(), torch.is_autocast_enabled("cpu")
        memory(model, torch.zeros(shape))
        self.assert_refused("could not run on a fake of the example", memory, model, torch.zeros(3))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        self.assertTrue(torch.equal(torch.get_rng_state(), random))
        self.assertEqual((hooks_in(model), torch.is_autocast_enabled("cpu")), (0, enabled))

    def test_what_a_forward_pass_keeps_is_taken_out_again(self):
        class Keeps(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.seen, self.calls = nn.Linear(4, 4), {"outputs": []}, 0
                self.register_buffer("last", torch.zeros(4))

            def forward(self, x):
                y = self.linear(x)
                if not hasattr(self, "more"):
                    self.more = nn.Linear(4, 4)
                    self.register_buffer("mask", torch.ones(4))
                self.cached, self.last, self.calls = y, y[0], self.calls + 1
                self.seen["outputs"].append(y)
                return self.more(y) * self.mask

        for x in (torch.zeros(2, 4), torch.zeros(2, 5)):
            model = nn.Sequential(Keeps())
            own, last, seen = model[0], model[0].last, model[0].seen
            before = set(vars(own))
            try:
                memory(model, x)
            except ValueError:
                self.assertEqual(x.shape[1], 5)
            self.assertEqual((set(vars(own)), own.calls, seen), (before, 0, {"outputs": []}))
            self.assertEqual((list(own._modules), list(own._buffers)), (["linear"], ["last"]))
            self.assertIs(own.last, last)
            self.assertIs(own.seen, seen)
            self.assertIs(type(model(torch.zeros(2, 4))), torch.Tensor)

    def test_arguments_of_models(self):
        class Two(nn.Module):
            def forward(self, x, mask=None, scale=1):
                return (x * mask["m"]).sin() * scale

        x, mask = torch.zeros(4, 4, requires_grad=True), {"m": torch.zeros(4, 4)}
        by_place = memory(Two(), (x, mask), "fp32")
        self.assertEqual(by_place, memory(Two(), {"x": x, "mask": mask, "scale": 1}, "fp32"))
        self.assertEqual(by_place["parameters"], 0)

    def test_arguments_in_named_tuples(self):
        Batch = collections.namedtuple("Batch", "x mask")

        class Named(nn.Module):
            def forward(self, batch):
                return (batch.x * batch.mask).sin()

        x, mask = torch.zeros(4, 4, requires_grad=True), torch.zeros(4, 4)
        self.assertEqual(memory(Named(), (Batch(x, mask),), "fp32")["parameters"], 0)

    def test_the_table(self):
        lines = str(memory(self.models()[0][0], torch.zeros(16, 20))).splitlines()
        self.assertEqual(lines[0].split(), ["role", "bytes", "by", "formula"])
        self.assertEqual(lines[1].split(), ["weights", f"{4 * 785:,}", f"{4 * 785:,}"])
        self.assertIn("activations of", lines[13])
        globals_ = {"halflab": halflab, "torch": torch}
        (example,) = doctest.DocTestFinder(recurse=False).find(memory, "memory", globs=globals_)
        self.assertEqual(doctest.DocTestRunner().run(example).failed, 0)

    @unittest.skipUnless(torch.backends.cuda.is_built(), "needs a PyTorch that was built for CUDA")
    def test_recurrent_layers_on_a_gpu(self):
        for kind in (nn.LSTM, nn.GRU):
            model = nn.Sequential(kind(16, 32))
            what = f"module '0' is a nn.{kind.__name__}, of which cuDNN alone knows"
            self.assert_refused(what, memory, model, torch.zeros(4, 6, 16), device="cuda")

    def test_recurrent_layers_on_the_cpu(self):
        """oneDNN's LSTM keeps what its fake does not tell."""

        class Output(nn.Module):
            def __init__(self, layer):
                super().__init__()
                self.layer = layer

            def forward(self, x):
                return self.layer(x)[0]

        x = torch.randn(4, 6, 16)
        lstm = Output(nn.LSTM(16, 32))
        if torch.backends.mkldnn.is_available():
            what = "module 'layer' is a nn.LSTM, of which oneDNN alone knows what it keeps; allowed: the call, and the"
            self.assert_refused(what, memory, lstm, x)
        with torch.backends.mkldnn.flags(enabled=False):
            self.assertEqual(memory(lstm, x, "fp32")["activations"], really_saved(lstm, x, None, lambda y: y))
        for layer in (nn.GRU(16, 32), nn.RNN(16, 32), nn.LSTM(16, 32, proj_size=5)):
            model = Output(layer)
            self.assertEqual(memory(model, x, "fp32")["activations"], really_saved(model, x, None, lambda y: y))

    def test_buffers_are_of_inference_too(self):
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
        found = memory(model, torch.zeros(2, 4), "fp32")
        self.assertEqual(found["buffers"], 2 * 8 * 4 + 8)
        self.assertEqual(found["inference"], found["weights"] + found["buffers"])

    def test_what_is_not_allowed(self):
        class Fails(nn.Linear):
            def __init__(self):
                super().__init__(4, 4)

            def forward(self, x):
                raise AssertionError("ran before its options were looked at")

        model = nn.Linear(4, 4)
        for fragment, subject, options in (
            ("'nvfp4' is not allowed; allowed, being autocast or none: fp32, amp, bf16", model, {"policy": "nvfp4"}),
            ("unknown optimizer 'newton'", Fails(), {"optimizer": "newton"}),
            ("policy = [3] is not allowed", model, {"policy": [3]}),
            ("a list is not allowed", [], {}),
            ("'weight' is of torch.float16; allowed: torch.float32", nn.Linear(4, 4).half(), {}),
            ("'weight' has no shape yet", nn.LazyLinear(4), {}),
            ("is compiled", torch.compile(model), {}),
            ("device = 'mps' is not allowed; allowed by this PyTorch: cpu", model, {"device": "mps"}),
            ("device = 'meta' is not allowed", nn.Linear(4, 4, device="meta"), {}),
        ):
            self.assert_refused(fragment, memory, subject, torch.zeros(1, 4), **options)

        class Looks(nn.Module):
            def forward(self, x):
                return x if x.sum().item() > 0 else -x

        self.assert_refused("could not run on a fake of the example: DataDependent", memory, Looks(), torch.zeros(1, 4))


@unittest.skipIf(hasattr(torch, "set_autocast_dtype"), "this PyTorch has what memory needs")
class MemoryOnAnOlderPyTorch(Case):
    def test_what_it_needs(self):
        self.assert_refused("allowed: 2.4 or newer", memory, nn.Linear(4, 4), torch.zeros(1, 4))


if __name__ == "__main__":
    unittest.main()
