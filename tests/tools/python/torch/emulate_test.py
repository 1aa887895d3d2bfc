"""Emulated layers against products of numpy's arrays that halflab rounded, gradient by gradient."""

import copy
import doctest
import io
import itertools
import unittest
import warnings

from case import Case, Training, halflab, needs, nn, np, torch

emulate = halflab.torch.emulate


def along(axis, values, format, **options):
    """Blocks along an axis, by the function whose blocks lie along the last."""
    return np.moveaxis(halflab.round_to_blocks(np.moveaxis(values, axis, -1), format, **options), -1, axis)


def cast(values, axis, format):
    values = values.detach().numpy()
    if format in halflab.block_formats:
        return along(axis, values, format).astype(values.dtype)
    return halflab.round_to(values, format, saturate=True).astype(values.dtype)


def doubles(draw, *shape):
    """Numbers whose exponents lie far apart."""
    return (torch.randn(*shape, generator=draw) * 2.0 ** torch.randint(-12, 12, shape, generator=draw)).double()


class Emulation(Case):
    FORMATS = ("e4m3", "binary16", "bfloat16", "e5m2_fnuz", *halflab.block_formats)

    def setUp(self):
        super().setUp()
        self.draw = torch.Generator().manual_seed(3)

    def products(self, layer, x, format, gradient_format=None, **options):
        """y, dx, dw, db of an emulated layer and a random gradient of y."""
        x = x.clone().requires_grad_()
        layer.zero_grad()
        with emulate(layer, format, gradient_format, **options):
            y = layer(x)
        dy = doubles(self.draw, *y.shape).to(y.dtype)
        y.backward(dy)
        return dy, y, x.grad, layer.weight.grad, layer.bias.grad

    def test_products_of_a_linear_layer(self):
        for format in self.FORMATS:
            for gradient_format in (format, "e5m2"):
                layer = nn.Linear(37, 21).double()
                x, weight = doubles(self.draw, 5, 11, 37), layer.weight
                dy, y, dx, dw, db = self.products(layer, x, format, gradient_format)
                x2, dy2 = x.reshape(55, 37), dy.reshape(55, 21)
                ones = np.ones((55, 1))
                x1, w1 = cast(x2, 1, format), cast(weight, 1, format)
                self.assert_products(y.reshape(55, 21), np.hstack([x1, ones]),
                                     np.vstack([w1.T, layer.bias.detach().numpy()]))
                self.assert_products(dx.reshape(55, 37), cast(dy2, 1, gradient_format), cast(weight, 0, format))
                self.assert_products(dw, cast(dy2, 0, gradient_format).T, cast(x2, 0, format))
                self.assert_products(db, dy2.numpy().T, ones[:, 0])

    def assert_products(self, found, a, b):
        """Both found and a @ b are sums of n binary64 products, in orders of their own: each is off by at most n 2^-53 of the
        sum of the magnitudes, and a little."""
        bound = 2.02 * a.shape[1] * 2.0**-53 * (np.abs(a) @ np.abs(b))
        error = np.abs(found.detach().numpy() - a @ b)
        self.assertTrue((error <= bound).all(), f"{(error / bound).max()} of the bound")

    CONVOLUTIONS = (
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 3, "groups": 2, "dilation": 2, "padding": 2},
        {"kernel_size": 2, "padding": "same"},
        {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
    )
    KINDS = ((nn.Conv1d, (9,)), (nn.Conv2d, (8, 7)), (nn.Conv3d, (5, 4, 6)))

    def test_products_of_convolutions(self):
        for kind, shape in self.KINDS:
            for options, format in itertools.product(self.CONVOLUTIONS, ("e4m3", "nvfp4", "mxfp4")):
                with self.subTest(kind=kind, format=format, **options):
                    self.assert_convolution(kind(40, 36, **options).double(), doubles(self.draw, 19, 40, *shape), format)

    def assert_convolution(self, layer, x, format):
        """Each result is PyTorch's of a layer that holds what was cast for it."""
        dy, y, dx, dw, db = self.products(layer, x, format)
        groups = layer.groups

        def channels(tensor):
            groupwise = tensor.unflatten(1, (groups, -1)).flatten(0, 1)
            return torch.from_numpy(cast(groupwise, 1, format)).unflatten(0, (-1, groups)).flatten(1, 2)

        self.assert_layer(layer, channels(x), torch.from_numpy(cast(layer.weight, 1, format)), None, y=y)
        weight = torch.from_numpy(cast(layer.weight.unflatten(0, (groups, -1)), 1, format)).flatten(0, 1)
        self.assert_layer(layer, x, weight, channels(dy), dx=dx)
        images = [torch.from_numpy(cast(tensor, 0, format)) for tensor in (x, dy)]
        self.assert_layer(layer, images[0], layer.weight, images[1], dw=dw)
        np.testing.assert_allclose(db, dy.transpose(0, 1).flatten(1).sum(1), 1e-9)

    def assert_layer(self, layer, x, weight, dy, y=None, dx=None, dw=None):
        own = copy.deepcopy(layer)
        own.weight.data, x = weight.detach().clone(), x.clone().requires_grad_()
        own.zero_grad()
        output = own(x)
        if dy is not None:
            output.backward(dy)
        for found, expected in ((y, output), (dx, x.grad), (dw, own.weight.grad)):
            if found is not None:
                expected = expected.detach().numpy()
                np.testing.assert_allclose(found.detach(), expected, 1e-9, 1e-12 * np.abs(expected).max())

    def test_binary32_changes_no_bit_of_any_gradient(self):
        layers = [(nn.Linear(32, 16), (8, 9, 32)), (nn.Linear(32, 16, bias=False), (5, 32)), (nn.Linear(32, 16), (32,))]
        for kind, shape in self.KINDS:
            layers += [(kind(4, 6, **options), (5, 4, *shape)) for options in self.CONVOLUTIONS]
            layers.append((kind(4, 6, 3), (4, *shape)))
        for layer, shape in layers:
            x, results = torch.randn(*shape), []
            for emulated in (False, True):
                handle = emulate(layer, "binary32") if emulated else None
                own_x, layer.weight.grad = x.clone().requires_grad_(), None
                y = layer(own_x)
                y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape))
                results.append((y, own_x.grad, layer.weight.grad))
                if handle:
                    handle.remove()
            for plain, emulated in zip(*results):
                self.assertTrue(torch.equal(plain, emulated), layer)

    @needs(2, 3)
    def test_binary32_changes_no_step_of_training(self):
        def run(is_emulated, autocast):
            training = Training(model=network, autocast=autocast)
            training.x = training.x.reshape(32, 1, 8)
            if is_emulated:
                emulate(training.model, "binary32")
            return training.run(), torch.cat([p.detach().reshape(-1) for p in training.model.parameters()])

        for autocast in (None, torch.bfloat16):
            (plain, weights), (emulated, emulated_weights) = run(False, autocast), run(True, autocast)
            self.assertEqual(plain.losses, emulated.losses)
            self.assertTrue(torch.equal(weights, emulated_weights))

    @needs(2, 3)
    def test_after_removal_training_is_as_without(self):
        plain = Training().run()
        training = Training()
        with emulate(training.model, "e2m1"):
            training.loss()
        torch.manual_seed(5)
        again = Training()
        emulated = emulate(again.model, "e2m1")
        emulated.remove()
        emulated.remove()
        self.assertEqual(again.run().losses, plain.losses)
        self.assertFalse(any("forward" in module.__dict__ for module in [*training.model.modules(), *again.model.modules()]))

    def test_removed_after_an_exception(self):
        model = nn.Sequential(nn.Linear(4, 4))
        with self.assertRaises(ZeroDivisionError), emulate(model, "e4m3"):
            1 / 0
        self.assertNotIn("forward", model[0].__dict__)

    def test_stochastic_rounding_follows_its_seed(self):
        def output(seed):
            torch.manual_seed(1)
            layer = nn.Linear(64, 64)
            with emulate(layer, "mxfp4", rounding="stochastic", seed=seed):
                return layer(torch.ones(1, 64) / 3), layer(torch.ones(1, 64) / 3)

        first, second = output(1)
        again, other = output(1)[0], output(2)[0]
        self.assertTrue(torch.equal(first, again))
        self.assertFalse(torch.equal(first, second))
        self.assertFalse(torch.equal(first, other))

    def test_stochastic_rounding_of_gradients_alone_is_unbiased(self):
        layer = nn.Linear(16, 8, bias=False).double()
        nn.init.ones_(layer.weight)  # a number of e2m1
        x, dx = torch.ones(4000, 16).double().requires_grad_(), 8 * 2.2
        with emulate(layer, "e2m1", gradient_rounding="stochastic", seed=7):
            y = layer(x)
        self.assertTrue(torch.equal(y, torch.full_like(y, 16.0)))
        y.backward(torch.full_like(y, 2.2))  # between 2 and 3
        self.assertLessEqual(set((x.grad[:, 0]).tolist()), {16.0 + n for n in range(9)})
        self.assertAlmostEqual(x.grad[:, 0].mean().item(), dx, delta=5 * (8 * 0.2 * 0.8 / 4000) ** 0.5)

    @needs(2, 3)
    def test_under_autocast_operands_are_cast_twice_and_results_are_its_type(self):
        layer = nn.Linear(64, 8)
        x = torch.randn(4, 64, requires_grad=True)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype), emulate(layer, "nvfp4"):
                y = layer(x)
            self.assertEqual(y.dtype, dtype)
            lower = [t.detach().to(dtype).float() for t in (x, layer.weight, layer.bias)]
            expected = nn.functional.linear(*(torch.from_numpy(cast(t, 1, "nvfp4")) for t in lower[:2]), lower[2])
            self.assertTrue(torch.equal(y, expected.to(dtype)))
            y.sum().backward()
            self.assertEqual(x.grad.dtype, torch.float32)

    def test_tied_weights_inputs_without_gradient_and_no_grad(self):
        first, second = nn.Linear(8, 8), nn.Linear(8, 8)
        second.weight = first.weight
        x = torch.randn(3, 8)
        with emulate(nn.Sequential(first, second), "e4m3") as emulated:
            h = first(x)
            second(h.detach().requires_grad_()).sum().backward()
            alone = first.weight.grad.clone()
            first.weight.grad = None
            h.sum().backward()
            both = alone + first.weight.grad
            first.weight.grad = None
            hidden = first(x)
            (hidden.sum() + second(hidden.detach()).sum()).backward()
            self.assertEqual(emulated.names, ("0", "1"))
            with torch.no_grad():
                self.assertFalse(first(x).requires_grad)
                self.assertTrue(torch.equal(first(x), h))
        self.assertTrue(torch.equal(first.weight.grad, both))

    def test_copies_and_saved_models_are_not_emulated(self):
        model, x, file = nn.Sequential(nn.Linear(4, 4, bias=False)), torch.randn(3, 4), io.BytesIO()
        plain = model(x)
        with emulate(model, "e2m1"):
            copied = copy.deepcopy(model)
            torch.save(model, file)
            file.seek(0)
            saved = torch.load(file, weights_only=False)
            self.assertFalse(torch.equal(model(x), plain))
            for own in (copied, saved):
                self.assertTrue(torch.equal(own(x), plain))
                with emulate(own, "e2m1"):
                    self.assertTrue(torch.equal(own(x), model(x)))
                own[0].weight.data.zero_()
                self.assertTrue(torch.equal(own(x), torch.zeros(3, 4)))

    def test_fast_paths_are_left(self):
        """nn.TransformerEncoder in evaluation multiplies without its layers. Its attention, which is not emulated, still goes
        a fast path of its own, and sums in another order."""
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        model, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(3, 5, 16)
        mask = torch.zeros(3, 5, dtype=torch.bool)
        mask[1, 3:] = True
        for options in ({}, {"src_key_padding_mask": mask}):
            with torch.no_grad():
                plain = model(x, **options)
            with emulate(model, "e2m1", select="linear"):
                with_gradients = model(x, **options)
                with torch.no_grad():
                    emulated = model(x, **options)
            torch.testing.assert_close(emulated[~mask], with_gradients.detach()[~mask], rtol=1e-5, atol=1e-5)
            self.assertFalse(torch.allclose(emulated[~mask], plain[~mask], atol=1e-2))
            with torch.no_grad():
                self.assertTrue(torch.equal(model(x, **options), plain))

    def test_layers_that_are_never_called_are_told(self):
        class Functional(nn.Sequential):
            def forward(self, x):
                return nn.functional.linear(x, self[0].weight)

        model = Functional(nn.Linear(4, 4))
        with self.assertWarnsRegex(UserWarning, r"never called, so not emulated: \['0'\]"), emulate(model, "e4m3"):
            model(torch.ones(1, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with emulate(model, "e4m3"):
                pass

    def test_which_layers(self):
        convolution = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU())
        model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": convolution, "c": nn.MultiheadAttention(8, 2)})
        with emulate(model, "e4m3") as emulated:
            self.assertEqual(emulated.names, ("a", "b.0"))
            self.assert_refused("layer 'a' has a forward() of its own", emulate, model, "e4m3")
        with emulate(model, "e4m3", select="^b") as emulated:
            self.assertEqual(emulated.names, ("b.0",))

    def test_a_second_derivative_is_refused(self):
        """Not dropped: a gradient penalty would train other weights."""
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).double()
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        for select, layer in (("2", "2"), ("0", "0")):
            with emulate(model, "binary64", select=select):
                y = model(x).sum()
                torch.autograd.grad(y, x, retain_graph=True)
                what = f"layer '{layer}' has no second derivative; allowed: backward passes without create_graph=True"
                self.assert_refused(what, torch.autograd.grad, y, x, create_graph=True)

    def test_layers_take_their_input_by_name(self):
        model = nn.ModuleList([nn.Linear(4, 4), nn.Conv1d(4, 4, 1)])
        x = torch.randn(4, 4)
        for layer in model:
            with emulate(layer, "e4m3"):
                self.assertTrue(torch.equal(layer(input=x), layer(x)))

    def test_the_example_holds(self):
        globals_ = {"halflab": halflab, "torch": torch}
        (example,) = doctest.DocTestFinder(recurse=False).find(emulate, "emulate", globs=globals_)
        self.assertEqual(doctest.DocTestRunner().run(example), (0, 3))

    def test_what_is_not_allowed(self):
        model = nn.Sequential(nn.Linear(4, 4))
        for fragment, arguments, options in (
            ("unknown format 'e4m4'", ("e4m4",), {}),
            ("nvfp4", ("nvfp",), {}),
            ("format = 3 is not allowed", (3,), {}),
            ("format 'e8m0' is not allowed", ("e8m0",), {}),
            ("unknown rounding 'up'", ("e4m3",), {"rounding": "up"}),
            ("allowed: nearest_even, stochastic", ("mxfp4",), {"rounding": "toward_zero"}),
            ("seed = None is not allowed with rounding 'stochastic'", ("e4m3",), {"rounding": "stochastic"}),
            ("seed: allowed only with", ("e4m3",), {"seed": 1}),
            ("saturate = True is not allowed with mxfp4", ("mxfp4",), {"saturate": True}),
            ("scale_rule = 'ceil' is not allowed with e4m3", ("e4m3",), {"scale_rule": "ceil"}),
            ("unknown scale_rule 'up'", ("mxfp4",), {"scale_rule": "up"}),
            ("is found in none of the 1 names of layers, such as '0'", ("e4m3",), {"select": "head"}),
            ("is no regular expression", ("e4m3",), {"select": "("}),
        ):
            self.assert_refused(fragment, emulate, model, *arguments, **options)
            self.assertNotIn("forward", model[0].__dict__)
        self.assert_refused("the ReLU has none of its layers", emulate, nn.ReLU(), "e4m3")
        self.assert_refused("a list is not allowed", emulate, [], "e4m3")
        with emulate(model, "e4m3"):
            self.assert_refused("layer '0' got a tensor on meta", model, torch.ones(2, 4, device="meta"))
            self.assert_refused("has weights of torch.float32", model, torch.ones(2, 4).double())
            self.assert_refused("got torch.complex64", model, torch.ones(2, 4, dtype=torch.complex64))


def network():
    convolutions = nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 4, 3, padding="same", groups=2), nn.Flatten()
    return nn.Sequential(*convolutions, nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 3))


if __name__ == "__main__":
    unittest.main()
