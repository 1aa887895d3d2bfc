"""The sigmoid of halves in Triton: reads x.npy, which `halflab inputs sigmoid --to x.npy` wrote, and writes y.npy."""

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(x_pointer, y_pointer, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    x = tl.load(x_pointer + places, mask=inside).to(tl.float32)
    tl.store(y_pointer + places, (1 / (1 + tl.exp(-x))).to(tl.float16), mask=inside)


x = torch.from_numpy(np.load("x.npy")).cuda()
y = torch.empty_like(x)
sigmoid_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
np.save("y.npy", y.cpu().numpy())
