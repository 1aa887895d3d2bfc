"""Random calls of everything public: each returns, or raises an error of one line of a kind that fits. A call is a function of the
seed and its number alone, and runs again by these:

    PYTHONPATH=build/python python3 tests/tools/python/random_calls_test.py --calls 1000000
    PYTHONPATH=build/python python3 tests/tools/python/random_calls_test.py --first 4711 --calls 1
"""

import argparse
import collections
import faulthandler
import inspect
import os
import random
import resource
import signal
import stat
import struct
import sys
import tempfile
import time
import warnings

import mmap
import numpy as np

import halflab
from documentation_test import CLASSES, functions

EXPECTED = (TypeError, ValueError, IndexError, KeyError, OverflowError, MemoryError, OSError, halflab.RecordError)
LINE = 1000  # characters
SECONDS = 20
NO_CALLS = {"run_command", "run_experiment", "validate", "explain_gemm"}  # they start programs, each of which has its tests

TEXTS = ["", "binary16", "binary32", "e4m3", "nvfp4", "mxfp4", "nearest_even", "stochastic", "to_odd", "sequential", "pairwise",
         "fma", "shortest", "exact", "hex", "less", "dynamic", "dynamic:growth_interval=3", "static:scale=0", ":", "a:b=c:d=",
         "floor", "ceil", "fp32", "O2", "mlp", "mlp:hidden1=8", "adam", "sgd", "mma", "volta", "nan", "\0", "ä\n\x1b[2J",
         "x" * 300, "/dev/null", ".", "no/such/file", "garbage.npy", "garbage.npz", "garbage.safetensors"]
NUMBERS = [0, 1, -1, 2, 3, 7, 16, 255, 2**15, 2**16, 2**31, 2**32, 2**53, 2**63, 2**64, -2**63, 10**30, 0.0, -0.0, 0.5, 1.5, 65504.0,
           65520.0, 2.0**-24, 2.0**-26, 5e-324, 1e308, 1e-310, float("inf"), float("-inf"), float("nan"), True, 1 + 2j]
TYPES = ["f2", "f4", "f8", "g", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f4", ">u2", "c8", "O", "S3", "U2", "M8[s]"]
SHAPES = [(), (0,), (1,), (3,), (32,), (33,), (257,), (2, 3), (4, 16), (0, 5), (5, 0), (2, 3, 4), (1, 1, 1, 1, 2), (16, 16), (1 << 14,)]
BY_NAME = {
    "format": list(halflab.formats), "rounding": list(halflab.roundings), "order": [*halflab.sum_orders, *halflab.dot_orders],
    "predicate": list(halflab.predicates), "style": ["shortest", "exact", "hex"], "network": list(halflab.networks),
    "policy": list(halflab.policies), "optimizer": list(halflab.optimizers), "spec": list(halflab.scalers),
    "dtype": ["float32", "float64", "float16"], "saturate": [True, False], "flush_to_zero": [True, False],
    "narrow": list(halflab.formats), "scale_rule": ["floor", "ceil", "rceil", "even", None], "axis": [0, -1, None],
    "accumulation": list(halflab.accumulations), "log2": list(range(-300, 300)), "log2_scale": list(range(-300, 300)),
    "found_inf": [True, False, [True, False, False]], "steps": list(range(20)),
    "denormals_are_zero": [True, False], "seed": [0, 1, 2**63, 2**64 - 1],
}
ATTRIBUTES = ["rounding", "seed", "saturate", "flush_to_zero", "denormals_are_zero", "counts"]
FUNCTIONS = {name: function for name, function in functions().items() if name.split(".")[1] not in NO_CALLS}
NAMES = sorted(FUNCTIONS)


class Call:
    """A function and its arguments, drawn by one key."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed} {number}")
        self.name = self.random.choice(NAMES)
        self.shape = self.random.choice(SHAPES)
        function = FUNCTIONS[self.name]
        owner = self.name.split(".")[1]
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except ValueError:
            parameters = []
        self.arguments, self.options = [], {}
        of_class = next((kind for kind in CLASSES if kind.__name__ == owner), None)
        if of_class is not None and not self.name.endswith(("__init__", "from_torch")):
            self.arguments.append(self.instance(of_class))
            parameters = parameters[1:] if parameters and parameters[0].name == "self" else parameters
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                for name in self.random.sample(ATTRIBUTES, self.random.choice([0, 0, 1, 2])):
                    self.options[name] = self.value(name)
                if "seed" in self.options and self.random.random() < 0.9:
                    self.options["rounding"] = "stochastic"
            elif parameter.kind is parameter.VAR_POSITIONAL:
                self.arguments += [self.anything() for _ in range(self.random.randrange(3))]
            elif parameter.default is parameter.empty or self.random.random() < 0.4:
                if parameter.kind is parameter.KEYWORD_ONLY or self.options:
                    self.options[parameter.name] = self.value(parameter.name)
                else:
                    self.arguments.append(self.value(parameter.name))
        if self.random.random() < 0.03:
            self.arguments.append(self.anything())
        if self.random.random() < 0.03 and self.arguments:
            self.arguments.pop()
        self.function = of_class if of_class is not None and self.name.endswith("__init__") else function

    def instance(self, kind):
        if kind is halflab.Format:
            return self.random.choice(list(halflab.formats.values()))
        if kind is halflab.Scaler:
            return halflab.Scaler(self.random.choice([name for name, row in halflab.scalers.items() if row["kind"] == "global"]))
        if kind is halflab.Counts:
            return halflab.Counts()
        return halflab.ExponentHistogram(self.array("f4"))

    def array(self, kind):
        shape = self.shape if self.random.random() < 0.85 else self.random.choice(SHAPES)
        size = int(np.prod(shape))
        bytes_needed = size * np.dtype(kind).itemsize
        if np.dtype(kind).hasobject:
            array = np.empty(size, "O")
            array[:] = [self.random.choice(NUMBERS) for _ in range(size)] if size < 300 else 1
            return array.reshape(shape)
        array = np.frombuffer(self.random.randbytes(bytes_needed), kind).reshape(shape)
        if kind in ("f2", "f4", "f8") and self.random.random() < 0.7:
            array = np.random.default_rng(self.random.getrandbits(32)).standard_normal(shape).astype(kind)
        change = self.random.randrange(20)
        if change == 0 and array.ndim:
            array = array[::-1]
        elif change == 1 and array.ndim > 1:
            array = array.T
        elif change == 2 and array.ndim and array.shape[0]:
            array = np.broadcast_to(array[:1], array.shape)
        elif change == 3 and array.ndim:
            array = array[::2]
        return array

    def anything(self):
        kind = self.random.randrange(10)
        if kind < 4:
            return self.array(self.random.choice(TYPES))
        if kind < 6:
            return self.random.choice(NUMBERS)
        if kind < 7:
            return self.random.choice(TEXTS)
        if kind < 8:
            return self.instance(self.random.choice(CLASSES))
        return self.random.choice([None, [], (), {}, [[1.0], [2.0, 3.0]], [1, "a"], {"a": 1}, object(), len, np.sum, b"\xff\0", range(5),
                                   [None], slice(1), np.float16, np.float32(1.5), np.ma.masked_array([1.0, 2.0], [0, 1]), Odd(),
                                   lambda x: x, lambda x: 1 / 0])

    def value(self, name):
        if name == "n":  # of it reveal_order's time is a multiple
            return self.random.choice([*range(40), -1, 0.5, None, "a"])
        if self.random.random() < 0.08:
            return self.anything()
        if name == "tensors":
            return {"a": self.array("f4"), "b": self.array("f2")}
        if name == "format" and self.name.endswith("round_to_blocks"):
            return self.random.choice(list(halflab.block_formats))
        if name in BY_NAME:
            return self.random.choice(BY_NAME[name])
        if name == "counts":
            return halflab.Counts()
        if name in ("exponents", "counted"):
            return self.instance(halflab.ExponentHistogram)
        if name == "state":
            return self.instance(halflab.Scaler).state
        if name == "state_dict":
            return {"scale": 2.0 ** self.random.randrange(-10, 20), "growth_factor": 2.0, "backoff_factor": 0.5,
                    "growth_interval": self.random.choice([1, 0, 2000]), "_growth_tracker": self.random.choice([0, 5, -1])}
        if name == "function":
            return self.random.choice([np.sum, np.max, lambda x: float(x[0]), lambda x: x, lambda x: "a", lambda x: None])
        if name in ("paths", "path", "directory", "source", "out"):
            return self.random.choice(TEXTS)
        return self.array(self.random.choice(["f2", "f4", "f8", "u1", "u2"] if self.random.random() < 0.9 else TYPES))

    def make(self):
        """The kind of what came; raises what is none of the errors that fit."""
        try:
            self.function(*self.arguments, **self.options)
        except EXPECTED as error:
            text = str(error)
            is_ours = not isinstance(error, OSError)
            if is_ours and (len(text.splitlines()) > 1 or len(text) > LINE):
                raise AssertionError(f"an error of more than a line: {text}") from error
            return type(error).__name__
        except ZeroDivisionError:
            return "ZeroDivisionError"  # of the caller's function
        return "returned"

    def __str__(self):
        shown = [repr(argument)[:120] for argument in self.arguments]
        shown += [f"{name}={value!r}"[:120] for name, value in self.options.items()]
        return f"{self.name}({', '.join(shown)})"


class Odd:
    """An object that says of itself what is not so."""

    __array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (0, True), "version": 3, "strides": None}
    shape, dtype, ndim = (-1,), "float16", 10

    def __len__(self):
        return 2**40

    def __getitem__(self, index):
        raise KeyError(index)


def write_garbage():
    for name in ("garbage.npy", "garbage.npz", "garbage.safetensors"):
        with open(name, "wb") as file:
            file.write({"y": b"\x93NUMPY\x01\x00", "z": b"PK\x03\x04", "s": struct.pack("<Q", 2**40)}[name[-1]] + bytes(200))


def too_slow(*_):
    raise AssertionError(f"it takes more than {SECONDS} s of processor time")


def work(seed, first, last, shared):
    """Makes the calls; the number of the present one, and how many came to which end, stand in memory that outlives a crash."""
    faulthandler.enable()
    signal.signal(signal.SIGPROF, too_slow)
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # the sanitizer, which limits what is asked for itself, maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    ends = collections.Counter()
    for number in range(first, last):
        struct.pack_into("<Q", shared, 0, number)
        call = Call(seed, number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            ends[call.make()] += 1
        except BaseException as error:
            print(f"call {number}: {call}\n  {type(error).__name__}: {str(error)[:500]}", flush=True)
            ends["faults"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
    text = repr(dict(ends)).encode()
    struct.pack_into("<Q", shared, 8, len(text))
    shared[16:16 + len(text)] = text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=int(os.environ.get("HALFLAB_RANDOM_CALLS", 10000)))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    shared = mmap.mmap(-1, 1 << 16)
    total = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write_garbage()
        number, last = options.first, options.first + options.calls
        while number < last:
            end = min(number + 10000, last)
            child = os.fork()
            if child == 0:
                work(options.seed, number, end, shared)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status != 0:
                crashed = struct.unpack_from("<Q", shared, 0)[0]
                print(f"call {crashed}: {Call(options.seed, crashed)}\n  the process ended with status {status:#x}", flush=True)
                total["faults"] += 1
                end = crashed + 1
            else:
                length = struct.unpack_from("<Q", shared, 8)[0]
                total.update(eval(bytes(shared[16:16 + length])))
            number = end
        os.chdir("/")
    if not stat.S_ISCHR(os.stat("/dev/null").st_mode):
        print("/dev/null is no device any more: a call has replaced it", flush=True)
        total["faults"] += 1
    told = ", ".join(f"{count} {name}" for name, count in total.most_common())
    print(f"{options.calls} calls of {len(NAMES)} functions in {time.monotonic() - start:.0f} s: {told}")
    return 1 if total["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
