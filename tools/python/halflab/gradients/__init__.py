"""Records of a training run's gradients, which halflab.torch.watch and the experiments' --record write."""

from .record import GradientRecord, read_gradients

__all__ = ["GradientRecord", "read_gradients"]
