"""Halflab's scaler `dynamic` held to the real torch.amp.GradScaler, step by step."""

import unittest

from case import Case, halflab, needs, np, torch

RULES = {
    "the defaults": {},
    "growth at every clean step": {"growth_interval": 1},
    "growth every third": {"growth_interval": 3},
    "up to the edge of FP32": {"init_scale": 2.0**120, "growth_interval": 1},
    "more than FP32 holds at once": {"init_scale": 2.0**100, "growth_factor": 2.0**40, "growth_interval": 2},
    "down to zero": {"init_scale": 2.0**-120, "backoff_factor": 2.0**-3, "growth_interval": 5},
    "factors that round": {"init_scale": 1000.1, "growth_factor": 1.7, "backoff_factor": 0.3, "growth_interval": 2},
    "subnormal scales": {"init_scale": 1e-38, "growth_factor": 1.1, "backoff_factor": 0.7, "growth_interval": 2},
}


class Real:
    """A GradScaler, with a training of one parameter."""

    def __init__(self, **rule):
        self.scaler = torch.amp.GradScaler("cpu", **rule)
        self.parameter = torch.nn.Parameter(torch.zeros(3))
        self.optimizer = torch.optim.SGD([self.parameter], lr=1.0)
        self.optimizer.register_step_post_hook(lambda *_: setattr(self, "steps", self.steps + 1))
        self.steps = 0

    def step(self, value):
        """(S of the step, what becomes of it) where the scaled gradient is this value."""
        self.scaler.scale(torch.zeros(()))
        scale, before = self.scaler.get_scale(), self.steps
        self.parameter.grad = torch.tensor([1.0, value, -1.0])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return scale, "apply" if self.steps > before else "skip"


@needs(2, 3)
class Scaler(Case):
    def assert_same(self, rule, values):
        real, ours = Real(**rule), halflab.Scaler("dynamic", **rule)
        scales = []
        for step, value in enumerate(values):
            scale = ours.scale
            self.assertEqual((scale, ours.update(found_inf=not np.isfinite(value))), real.step(value), step)
            scales.append(scale)
        return scales

    def test_sequences_drawn_at_random(self):
        for row, (name, rule) in enumerate(RULES.items()):
            for share in (0.02, 0.3, 0.6):
                draw = np.random.default_rng([row, int(100 * share)])
                values = np.where(draw.random(400) < share, draw.choice([np.inf, -np.inf, np.nan], 400), 1.0)
                with self.subTest(rule=name, share=share):
                    self.assert_same(rule, values.tolist())

    def test_the_edges_are_reached(self):
        """Growth to infinity is refused and counted; after enough overflows S is 0, and stays it."""
        largest = self.assert_same(RULES["up to the edge of FP32"], [1.0] * 20)
        self.assertEqual(largest[-1], 2.0**127)
        self.assertEqual(self.assert_same(RULES["more than FP32 holds at once"], [1.0] * 9)[-1], 2.0**100)
        self.assertEqual(self.assert_same(RULES["down to zero"], [np.inf] * 30 + [1.0] * 20)[-1], 0)

    def test_the_defaults_grow_after_2000(self):
        scales = self.assert_same({}, [1.0] * 2001 + [np.inf] + [1.0] * 2001)
        found = {step: np.log2(scales[step]) for step in (1999, 2000, 2001, 2002, 4001, 4002)}
        self.assertEqual(found, {1999: 16, 2000: 17, 2001: 17, 2002: 16, 4001: 16, 4002: 17})

    def test_a_state_dict_goes_on_as_its_scaler(self):
        """Loaded at every step of a run, and the whole rest replayed at once."""
        draw = np.random.default_rng(5)
        for name in ("growth every third", "factors that round", "down to zero"):
            real = Real(**RULES[name])
            found_inf = (draw.random(60) < 0.3).tolist()
            states, steps = [], []
            for found in found_inf:
                states.append(real.scaler.state_dict())
                steps.append(real.step(np.inf if found else 1.0))
            for step, state in enumerate(states):
                ours = halflab.Scaler.from_torch(state)
                self.assertEqual(ours.replay(found_inf[step:]).tolist(), steps[step:], (name, step))
                self.assertEqual(ours.scale, real.scaler.get_scale())

    def test_a_state_dict_of_a_sharded_scaler(self):
        from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

        sharded = ShardedGradScaler("cpu", init_scale=8.0, growth_interval=2, process_group=None)
        sharded.scale(torch.zeros(()))
        self.assertEqual(halflab.Scaler.from_torch(sharded.state_dict()).replay([False] * 3)["scale"].tolist(), [8, 8, 16])
        disabled = torch.amp.GradScaler("cpu", enabled=False).state_dict()
        self.assert_refused("allowed: the state_dict() of an enabled GradScaler", halflab.Scaler.from_torch, disabled)


if __name__ == "__main__":
    unittest.main()
