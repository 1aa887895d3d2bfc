"""What the record of a watch says."""

from ..gradients.record import read_gradients
from .errors import WatchError


class Answers:
    """Of a watch, in the middle of it and afterwards."""

    @property
    def record(self):
        """The halflab.GradientRecord so far."""
        if self._state == "new":
            raise WatchError("this watch has not begun; allowed: its answers inside of its with, and after it")
        if self._state == "open":
            self._flush()
        if self._state == "open" or not hasattr(self, "_read"):
            self._read = read_gradients(self.folder)
        return self._read

    tensors = property(lambda self: self.record.tensors, doc="As of halflab.GradientRecord.")
    skips = property(lambda self: self.record.skips, doc="As of halflab.GradientRecord.")
    steps = property(lambda self: self.record.steps, doc="As of halflab.GradientRecord.")

    def recommended_scale(self):
        """As of halflab.GradientRecord."""
        return self.record.recommended_scale()

    def report(self, out):
        """As of halflab.GradientRecord."""
        return self.record.report(out)

    def replay(self, scalers, out=None):
        """As of halflab.GradientRecord."""
        return self.record.replay(scalers, out)
