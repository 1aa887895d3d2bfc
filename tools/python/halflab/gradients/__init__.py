"""Records of a training run's gradients, which halflab.torch.watch and the experiments' --record write; pages on them."""

from .arrays import GradientReport, report_gradients
from .record import GradientRecord, read_gradients

__all__ = ["GradientRecord", "GradientReport", "read_gradients", "report_gradients"]
