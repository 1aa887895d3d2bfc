"""Results do not depend on the floating-point environment that other code left in the process.

Libraries linked with -ffast-math set flush-to-zero and denormals-are-zero when they are loaded; others leave a rounding
direction behind.
"""

import contextlib
import ctypes
import ctypes.util
import platform
import unittest

import numpy as np

import halflab
from oracle import Case

FTZ_AND_DAZ = 0x8040
ROUNDING = {"nearest": 0x0000, "downward": 0x2000, "upward": 0x4000, "toward zero": 0x6000}


class Fenv(ctypes.Structure):
    """fenv_t of the C library for x86-64: 28 bytes of the x87 unit, then MXCSR."""

    _fields_ = [("x87", ctypes.c_ubyte * 28), ("mxcsr", ctypes.c_uint32)]


LIBM = ctypes.CDLL(ctypes.util.find_library("m"))


@contextlib.contextmanager
def environment(bits):
    saved, changed = Fenv(), Fenv()
    LIBM.fegetenv(ctypes.byref(saved))
    LIBM.fegetenv(ctypes.byref(changed))
    changed.mxcsr |= bits
    LIBM.fesetenv(ctypes.byref(changed))
    try:
        yield
    finally:
        LIBM.fesetenv(ctypes.byref(saved))


@unittest.skipUnless(platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc", "sets MXCSR by glibc's fenv_t")
class FloatingEnvironment(Case):
    def setUp(self):
        draw = np.random.default_rng(7)
        self.floats = draw.integers(0, 2**32, size=1 << 16, dtype=np.uint32).view(np.float32)
        self.halves = draw.integers(0, 2**16, size=1 << 14, dtype=np.uint16).view(np.float16)
        self.doubles = self.floats[:4096].astype(np.float64)
        self.small = self.floats[np.abs(self.floats) < 2.0**-126]
        self.matrices = np.where(np.isfinite(self.halves), self.halves, 0).reshape(2, 64, 128)

    def results(self):
        """Every kind of array function, each by a name."""
        floats, halves, (a, b) = self.floats, self.halves, self.matrices
        for name in ("binary16", "bfloat16", "e4m3", "e5m2", "tf32"):
            for rounding in ("nearest_even", "toward_positive", "toward_negative", "toward_zero"):
                yield f"encode {name} {rounding}", halflab.encode(floats, name, rounding=rounding)
            yield f"stochastic {name}", halflab.encode(floats, name, rounding="stochastic", seed=1)
            yield f"round_to {name}", halflab.round_to(floats[:4096], name).view(np.uint64)
        yield "blocks of doubles", halflab.round_to_blocks(np.nan_to_num(self.doubles), "mxfp8_e4m3").view(np.uint64)
        yield "doubles", halflab.encode(self.doubles)
        yield "decode", halflab.decode(np.arange(2**16)).view(np.uint64)
        for name in ("add", "multiply", "divide"):
            yield name, getattr(halflab, name)(halves, halves[::-1]).view(np.uint64)
        yield "fma", halflab.fma(halves, halves[::-1], halves).view(np.uint64)
        yield "subnormal operands", halflab.add(self.small, self.small, "binary32").view(np.uint64)
        yield "sqrt", halflab.sqrt(halves).view(np.uint64)
        yield "tanh", halflab.math.tanh(halves).view(np.uint64)
        for order in halflab.dot_orders:
            yield f"dot {order}", halflab.dot(a, b, order).view(np.uint64)
        for accumulation in halflab.accumulations:
            yield f"matmul {accumulation}", halflab.matmul(a, b.T, accumulation).view(np.uint64)
        for name in halflab.block_formats:
            yield f"blocks {name}", halflab.round_to_blocks(floats[np.isfinite(floats)][:4096], name).view(np.uint64)
        yield "histogram", halflab.ExponentHistogram(floats).counts

    def test_bits_are_the_same(self):
        expected = dict(self.results())
        for title, bits in {"FTZ and DAZ": FTZ_AND_DAZ, **ROUNDING}.items():
            with environment(bits):
                self.assertEqual(np.float64(2.0**-1074) == 0, bits == FTZ_AND_DAZ)  # the environment is in force
                found = dict(self.results())
            self.assertGreater(len(expected), 60)
            for name, result in expected.items():
                with self.subTest(f"{name}, {title}"):
                    self.assertEqual(np.count_nonzero(found[name] != result), 0)


if __name__ == "__main__":
    unittest.main()
