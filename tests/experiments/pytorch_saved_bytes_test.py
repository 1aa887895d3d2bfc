"""Holds the bytes that memory_anatomy names as PyTorch's to PyTorch: what a forward pass saves for backward.

Each saved tensor counts once, a parameter not at all. No GPU is needed: the pass runs on fake tensors, whose operators
and casts are those of a CUDA device. Exits with 3, and says why, where torch is missing.

usage: pytorch_saved_bytes_test.py PROGRAM, where PROGRAM is memory_anatomy
"""
import csv
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    torch.set_autocast_enabled("cuda", False)
except (ImportError, TypeError) as error:  # the latter: before 2.4 it takes no device
    print(f"skipped: {sys.executable} has no torch of 2.4 or newer ({error}); HALFLAB_TORCH_PYTHON names one that has")
    raise SystemExit(3)

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench"))
import pytorch_steps


def saved_bytes(name, autocast):
    with FakeTensorMode(), torch.device("cuda"):
        model, _, inputs, loss, *targets = pytorch_steps.cases()[name]
        parameters = {p.untyped_storage()._cdata for p in model.parameters()}
        storages = {}  # held, so that no address is used twice

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in parameters:
                storages[storage._cdata] = storage
            return tensor

        torch.set_autocast_enabled("cuda", autocast)  # torch.autocast() itself refuses where there is no GPU
        torch.set_autocast_dtype("cuda", torch.float16)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss(model(inputs), *targets)
        torch.clear_autocast_cache()
        return sum(storage.nbytes() for storage in storages.values())


def published_rows(program):
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, "--quick", "--quiet", "--out", directory], check=True, stdout=subprocess.DEVNULL)
        with open(pathlib.Path(directory) / "published.csv", newline="") as file:
            return [row for row in csv.DictReader(file) if row["name"].startswith("saved_for_backward.")]


def main():
    rows, wrong = published_rows(sys.argv[1]), 0
    assert rows, "published.csv has no row saved_for_backward.*"
    for row in rows:
        _, model, policy = row["name"].split(".")
        saved = saved_bytes(model, policy == "amp")
        # Another version of PyTorch may save a scalar more or a label in another type: 1 % is less than any tensor.
        agrees = abs(saved - float(row["published"])) <= 0.01 * saved
        wrong += not agrees
        print(f"{model} {policy}: PyTorch {torch.__version__} saves {saved}, the row says {row['published']}",
              "" if agrees else "WRONG")
    raise SystemExit(1 if wrong else 0)


main()
