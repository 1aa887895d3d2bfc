"""Times casts of a float32 array to small formats in ml_dtypes, torch and torchao on one core; prints "case_library rate version"
lines, rates in elements per second. Where a library is missing, a line says so."""

import importlib
import logging
import os
import statistics
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

SIZE, REPEATS = 1 << 20, 9


def rate(cast):
    cast()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        cast()
        times.append(time.perf_counter() - begin)
    return SIZE / statistics.median(times)


def ml_dtypes_casts(library):
    import numpy as np

    values = np.random.default_rng(0).standard_normal(SIZE, np.float32)
    types = {
        "encode_bfloat16": "bfloat16",
        "encode_e4m3": "float8_e4m3fn",
        "encode_e5m2": "float8_e5m2",
        "encode_e2m1": "float4_e2m1fn",
    }
    return {case: lambda dtype=getattr(library, name): values.astype(dtype) for case, name in types.items()}


def torch_casts(library):
    library.set_num_threads(1)
    values = library.randn(SIZE)
    types = {"encode_bfloat16": library.bfloat16, "encode_e4m3": library.float8_e4m3fn, "encode_e5m2": library.float8_e5m2}
    return {case: lambda dtype=dtype: values.to(dtype) for case, dtype in types.items()}


def torchao_casts(_library):
    import torch
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

    torch.set_num_threads(1)
    values = torch.randn(SIZE)
    return {
        "encode_mxfp8_e4m3": lambda: to_mx(values.reshape(-1, 32), torch.float8_e4m3fn, 32),
        "encode_mxfp4": lambda: to_mx(values.reshape(-1, 32), torch.float4_e2m1fn_x2, 32),
        "encode_nvfp4": lambda: nvfp4_quantize(values.reshape(-1, 16)),
    }


if __name__ == "__main__":
    for name, casts in (("ml_dtypes", ml_dtypes_casts), ("torch", torch_casts), ("torchao", torchao_casts)):
        try:
            library = importlib.import_module(name)
            for case, cast in casts(library).items():
                print(f"{case}_{name} {rate(cast):.4g} {name} {library.__version__}", flush=True)
        except (ImportError, AttributeError, RuntimeError, TypeError) as error:
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
