"""Attention of fake tensors as a GPU computes it, where there is no GPU that PyTorch could ask which kernel to take."""

import contextlib

import torch
from torch.nn import functional

from .twin import autocast_dtype

_FLASH_TYPES = (torch.float16, torch.bfloat16)
_FLASH_WIDEST_HEAD, _FLASH_STEP = 256, 8  # numbers of a head


@contextlib.contextmanager
def fused_attention():
    """Has functional.scaled_dot_product_attention() of fake CUDA tensors save what PyTorch's fused kernels save: the operands,
    the result and a number for each row of scores, but no scores. Without it fakes take the kernel that keeps all scores.

    PyTorch prefers FlashAttention (16 bits, no mask, heads of up to 256 numbers) to the memory-efficient kernel, on GPUs of
    compute capability 8.0 or higher. What neither takes stays as it is, as do calls on other devices.
    """
    attend = functional.scaled_dot_product_attention

    def attend_fused(*arguments, **options):
        result = _fused(*arguments, **options)
        return attend(*arguments, **options) if result is None else result

    functional.scaled_dot_product_attention = attend_fused  # where nn.MultiheadAttention finds it, too
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = attend


def _padded(tensor, step):
    """With zeros up to a multiple of `step` in the last dimension."""
    missing = -tensor.shape[-1] % step
    return functional.pad(tensor, (0, missing)) if missing else tensor


def _fused(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The result, or None where no fused kernel is modelled."""
    operands = (query, key, value)
    alike = len({tensor.shape[-1] for tensor in operands}) == 1 and not enable_gqa
    if not alike or any(tensor.dim() != 4 or tensor.device.type != "cuda" for tensor in operands):
        return None
    lower = autocast_dtype("cuda")
    if lower is not None:
        query, key, value = (tensor.to(lower) for tensor in operands)
    if query.dtype in _FLASH_TYPES and attn_mask is None and query.shape[-1] <= _FLASH_WIDEST_HEAD:
        width = query.shape[-1]
        scale = width**-0.5 if scale is None else scale
        padded = (_padded(tensor, _FLASH_STEP) for tensor in (query, key, value))
        return torch.ops.aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, scale=scale)[0][..., :width]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(attn_mask.logical_not(), float("-inf"))
        attn_mask = attn_mask.to(query.dtype).expand(*query.shape[:3], key.shape[2])
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    return kernel(query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale)[0]
