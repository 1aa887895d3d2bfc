"""Counts of tensors by binary exponent, made where the tensor lies: a GPU's tensor is never copied to the host."""

import torch

from .._halflab import ExponentHistogram

OCTAVES, COLUMNS = ExponentHistogram().octave_counts.shape
LOWEST = -149
CHUNK = 1 << 24  # elements counted at a time on a device, which bounds the memory that takes


class Tally:
    """ExponentHistograms by key, in the order in which the keys were first counted.

    >>> tally = Tally()
    >>> tally.count(("encoder.0", "output"), torch.ones(3))
    >>> tally.read()["encoder.0", "output"].total
    3
    """

    def __init__(self):
        self._host, self._device = {}, {}

    def count(self, key, tensor):
        """Adds a tensor's values; of a sparse one those that it stores."""
        values = stored_values(tensor)
        if values.device.type == "cpu" and type(values) in (torch.Tensor, torch.nn.Parameter):
            array = as_array(values)
            if key in self._host:
                self._host[key].add(array)
            else:
                self._host[key] = ExponentHistogram(array)
            return
        counts, largest = device_counts(values)
        self._host.setdefault(key, ExponentHistogram())
        if key in self._device:
            kept, kept_largest = self._device[key]
            counts, largest = kept + counts.to(kept.device), torch.maximum(kept_largest, largest.to(kept_largest.device))
        self._device[key] = counts, largest

    def read(self):
        """The histograms. This alone copies counts from a device, all of them at one time."""
        keys = list(self._device)
        rows = read_together([self._device[key][0] for key in keys])
        largest = read_together([self._device[key][1] for key in keys])
        for key, cells, max_abs in zip(keys, rows, largest):
            octaves, (zero, infinite, nan) = cells[:-3].reshape(OCTAVES, COLUMNS), cells[-3:].tolist()
            self._host[key].add_counts(octaves, float(max_abs), zero=zero, infinite=infinite, nan=nan)
        self._device.clear()
        return self._host


def stored_values(tensor):
    """The real numbers that a tensor stores, outside of autograd."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout is torch.sparse_coo else tensor.values()
    return torch.view_as_real(tensor.resolve_conj().resolve_neg()) if tensor.is_complex() else tensor


def as_array(values):
    """A numpy array of a tensor on the host, a copy only where numpy has no such type."""
    if values.dtype not in (torch.float16, torch.float32, torch.float64):
        values = values.float()
    return values.resolve_neg().numpy()


def device_counts(values):
    """The counts of ExponentHistogram as one integer tensor on the values' device, and the largest finite magnitude.

    All shapes are known beforehand, so that nothing waits for the device.
    """
    wide = torch.float64 if values.dtype == torch.float64 else torch.float32
    size = OCTAVES * COLUMNS + 3
    counts = torch.zeros(size, dtype=torch.int64, device=values.device)
    largest = torch.zeros((), dtype=wide, device=values.device)
    for chunk in values.reshape(-1).split(CHUNK):
        magnitudes = chunk.to(wide).abs()
        finite = torch.where(torch.isfinite(magnitudes), magnitudes, 0)
        if chunk.numel():
            largest = torch.maximum(largest, finite.amax())
        bins = _bins(magnitudes, finite)
        counts = counts.scatter_add(0, bins, torch.ones((), dtype=torch.int64, device=values.device).expand_as(bins))
    return _octaves(counts), largest


def _bins(magnitudes, finite):
    """The bin of each value: four classes of each octave, which exclude one another, then zero, infinite, NaN."""
    fraction, exponent = torch.frexp(finite)  # 0.5 <= fraction < 1
    kind = (fraction == 0.5).long() + 2 * (fraction >= 1 - 2.0**-11) + (fraction >= 1 - 2.0**-12)
    octave = exponent.long() - 1 - LOWEST
    below, beyond = octave < 0, octave >= OCTAVES  # of float64
    kind = torch.where(below, 0, torch.where(beyond, 3, kind))
    bins = octave.clamp(0, OCTAVES - 1) * COLUMNS + kind
    rest = OCTAVES * COLUMNS
    bins = torch.where(magnitudes == 0, rest, bins)
    bins = torch.where(torch.isinf(magnitudes), rest + 1, bins)
    return torch.where(torch.isnan(magnitudes), rest + 2, bins)


def _octaves(counts):
    """Classes that exclude one another as ExponentHistogram's columns: all, powers of two, near_next, top."""
    classes = counts[:-3].view(OCTAVES, COLUMNS)
    columns = [classes.sum(1), classes[:, 1], classes[:, 2] + classes[:, 3], classes[:, 3]]
    return torch.cat([torch.stack(columns, 1).reshape(-1), counts[-3:]])


def largest_magnitude(tensor):
    """max |x|, NaN where one is NaN, infinite where one is infinite: a number, or of a device's tensor one on the device."""
    values = stored_values(tensor)
    if values.numel() == 0:
        return 0.0
    if values.dtype not in (torch.float32, torch.float64) and not values.is_cuda:
        values = values.float()  # some PyTorch on a CPU has no aminmax of 16 bits
    smallest, largest = torch.aminmax(values)  # 10 to 20 times as fast as linalg.vector_norm on a CPU
    return max(-smallest.item(), largest.item()) if values.device.type == "cpu" else torch.maximum(-smallest, largest)


def largest_above_zero(tensor):
    """max(x, 0), NaN where one is NaN, infinite where one is +infinite; -infinity is what masks are made of."""
    values = stored_values(tensor)
    if values.numel() == 0:
        return 0.0
    if values.dtype not in (torch.float32, torch.float64) and not values.is_cuda:
        values = values.float()
    return values.max().clamp(min=0)


def read_together(tensors):
    """Arrays of tensors of any devices and types, with one copy for each device and type. Numbers stay what they are."""
    arrays = [None] * len(tensors)
    groups = {}
    for place, tensor in enumerate(tensors):
        if isinstance(tensor, torch.Tensor):
            groups.setdefault((tensor.device, tensor.dtype), []).append(place)
        else:
            arrays[place] = tensor
    for places in groups.values():
        together = torch.cat([tensors[place].detach().reshape(-1) for place in places])
        together = together.cpu()
        together = as_array(together) if together.is_floating_point() else together.numpy()
        begin = 0
        for place in places:
            end = begin + tensors[place].numel()
            arrays[place] = together[begin:end].reshape(tuple(tensors[place].shape))
            begin = end
    return arrays
