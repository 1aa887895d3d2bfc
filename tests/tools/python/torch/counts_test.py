"""Counts made by torch operations, as on a GPU, against those of the C++ histogram; and what leaves the device."""

import contextlib
import math
import unittest
from unittest import mock

from case import Case, halflab, needs, nn, np, torch

from halflab.torch import counts
from halflab.torch.counts import Tally, device_counts, largest_magnitude, read_together


def counted_on_device(values):
    tally = Tally()
    tally._device["x"] = device_counts(values)
    tally._host["x"] = halflab.ExponentHistogram()
    return tally.read()["x"]


def edges():
    """Where octaves and classes begin and end, beyond binary32 too, both neighbours of each, and 1,000 drawn numbers."""
    exponents = np.arange(-160, 132)
    fractions = (1, 1 + 2.0**-23, 2 - 2.0**-10, 2 - 2.0**-11, 2 - 2.0**-23)
    with np.errstate(over="ignore"):
        middles = np.concatenate([np.ldexp(fraction, exponents) for fraction in fractions])
    near = np.concatenate([np.nextafter(middles, 0), middles, np.nextafter(middles, np.inf), [0, -0.0, np.inf, np.nan]])
    return torch.from_numpy(np.concatenate([near, -near, np.random.default_rng(1).normal(size=1000)]))


class OnDevice(Case):
    def test_every_binary16_and_bfloat16(self):
        codes = torch.arange(65536, dtype=torch.int32).to(torch.int16)
        for dtype in (torch.float16, torch.bfloat16):
            values = codes.view(dtype)
            self.assertEqual(counted_on_device(values), halflab.ExponentHistogram(values.float().numpy()), dtype)

    def test_edges_of_binary32_and_binary64(self):
        for values in (edges(), edges().float()):
            self.assertEqual(counted_on_device(values), halflab.ExponentHistogram(values.numpy()))

    def test_pieces_and_sums(self):
        values = torch.randn(1000).half()
        with mock.patch.object(counts, "CHUNK", 64):
            self.assertEqual(counted_on_device(values), halflab.ExponentHistogram(values.numpy()))
        self.assertEqual(counted_on_device(torch.zeros(0)), halflab.ExponentHistogram())
        self.assertEqual(counted_on_device(torch.tensor(3.0)), halflab.ExponentHistogram([3.0]))

    @needs(2, 3)
    def test_nothing_waits_for_the_device(self):
        """A fake tensor of CUDA has no values: whatever asked for one, or for a shape that depends on one, would raise."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode(), Moves() as moves:
            for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
                bins, largest = device_counts(torch.empty(3, 5000, dtype=dtype, device="cuda"))
                self.assertEqual((bins.device.type, largest.device.type), ("cuda", "cuda"))
                self.assertEqual((bins.numel(), largest.numel()), (277 * 4 + 3, 1))
                self.assertEqual(largest_magnitude(torch.empty(7, dtype=dtype, device="cuda")).device.type, "cuda")
        self.assertEqual(moves.sizes, [])

    @needs(2, 3)
    def test_a_step_on_a_device_moves_small_counts_alone(self):
        """Training on the meta device, which raises where the host asks for a value. What is read at last is recorded."""

        class Scaler(torch.amp.GradScaler):
            """Without the question to the device that the real one asks."""

            def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
                return {found_inf.device: found_inf}

            def _maybe_opt_step(self, optimizer, state, *arguments, **options):
                return optimizer.step()

            def update(self):
                self._scale *= 1
                self._per_optimizer_states.clear()

            def get_scale(self):
                return 65536.0

            def _get_growth_tracker(self):
                return 0

        read = []

        def read_nothing(tensors):
            read.append([tensor.numel() for tensor in tensors if tensor.device.type == "meta"])
            return [np.zeros(tuple(tensor.shape), dtype=np.int64) for tensor in tensors]

        model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(inplace=True), nn.Linear(512, 10)).to("meta")
        x = torch.empty(256, 64, device="meta")
        optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), Scaler("meta")
        with contextlib.ExitStack() as patches:
            for part in ("recorder", "counts", "widths"):
                patches.enter_context(mock.patch(f"halflab.torch.{part}.read_together", read_nothing))
            with halflab.torch.watch(model, optimizer, scaler, every=4, out=self.folder / "run"):
                for step in range(6):
                    optimizer.zero_grad()
                    scaler.scale(model(x).sum()).backward()
                    scaler.step(optimizer)
                    scaler.update()
                    if step in (0, 4):
                        sizes = [size for group in read for size in group]
                        self.assertEqual(sizes.count(277 * 4 + 3), 3 + 4)  # outputs and parameters
                        self.assertLessEqual(set(sizes), {277 * 4 + 3, 1})
                        read.clear()
                    self.assertEqual(read, [])
        self.assertEqual({size for group in read for size in group}, {1})  # S, found_inf and norms of the last step


def Moves():
    """A mode that lists the sizes of tensors which go from a GPU to the host, and of values that the host asks for."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.sizes = []

        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            result = function(*arguments, **(options or {}))
            name = str(function)
            is_read = "_local_scalar_dense" in name or "nonzero" in name
            source = next((a for a in arguments if isinstance(a, torch.Tensor)), None)
            to_host = isinstance(result, torch.Tensor) and result.device.type == "cpu"
            if source is not None and source.device.type == "cuda" and (is_read or to_host):
                self.sizes.append((name, source.numel()))
            return result

    return Recorder()


class Reading(Case):
    def test_tensors_are_read_together(self):
        tensors = [torch.ones(2, 3), torch.tensor(2.0), torch.arange(4), torch.full((1,), 3.0, dtype=torch.float64)]
        arrays = read_together(tensors)
        self.assertEqual([array.shape for array in arrays], [(2, 3), (), (4,), (1,)])
        for tensor, array in zip(tensors, arrays):
            np.testing.assert_array_equal(tensor.numpy(), array)
        self.assertEqual(read_together([]), [])

    def test_the_largest_magnitude_shows_what_is_not_finite(self):
        self.assertEqual(float(largest_magnitude(torch.tensor([-3.0, 2.0]))), 3)
        self.assertEqual(float(largest_magnitude(torch.tensor([-math.inf, 2.0]).half())), math.inf)
        self.assertTrue(math.isnan(float(largest_magnitude(torch.tensor([math.nan, math.inf])))))
        self.assertEqual(float(largest_magnitude(torch.zeros(0))), 0)


if __name__ == "__main__":
    unittest.main()
