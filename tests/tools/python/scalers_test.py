"""Loss scalers against traces."""

import copy
import math
import pickle
import unittest

import numpy as np

import halflab
from oracle import Case


class Scalers(Case):
    # log2 S after each step, from 2^10 with a growth interval of 4; X: a step whose gradients are not finite.
    FIRST = ". . . . X . . . . X X . X . . . . . . ."
    SECOND = ". . . . X X X X X . . . . X X . X X . . . . . ."
    TRACES = {
        "dynamic": (
            "10 10 10 11 10 10 10 10 11 10 9 9 8 8 8 8 9 9 9 9",
            "10 10 10 11 10 9 8 7 6 6 6 6 7 6 5 5 4 3 3 3 3 4 4 4",
        ),
        "megatron:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 10 10 10 10 11 11 11 11",
            "10 10 10 11 11 10 9 8 7 7 7 7 8 8 7 7 6 5 5 5 5 6 6 6",
        ),
        "apex_hysteresis:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 11 11 11 11 12 12 12 12",
            "10 10 10 11 11 10 9 8 7 7 7 7 8 8 7 7 7 6 6 6 6 7 7 7",
        ),
        "deepspeed:hysteresis=2": (
            "10 10 10 10 10 10 10 10 10 9 8 8 7 7 7 7 7 8 8 8",
            "10 10 10 10 10 9 8 7 6 6 6 6 6 5 4 4 3 2 2 2 2 2 3 3",
        ),
        "deepspeed:hysteresis=2:consecutive_hysteresis=1": (
            "10 10 10 10 10 10 10 10 10 10 9 9 9 9 9 9 9 10 10 10",
            "10 10 10 10 10 9 8 7 6 6 6 6 6 6 5 5 5 4 4 4 4 4 5 5",
        ),
        "deepspeed:hysteresis=1": (
            "10 10 10 10 9 9 9 9 9 8 7 7 6 6 6 6 6 7 7 7",
            "10 10 10 10 9 8 7 6 5 5 5 5 5 4 3 3 2 1 1 1 1 1 2 2",
        ),
        "paddle:hysteresis=2": (
            "10 10 10 11 11 11 11 11 12 12 11 11 11 11 11 11 12 12 12 12",
            "10 10 10 11 11 10 10 9 9 9 9 9 10 10 9 9 9 8 8 8 8 9 9 9",
        ),
    }
    SAME_AS = {
        "flax": "deepspeed:hysteresis=1",
        **dict.fromkeys(("apex_amp", "apex_fp16_optimizer", "tensorflow", "keras", "jmp", "mindspore"), "dynamic"),
    }

    def trace(self, spec, pattern):
        scaler = halflab.Scaler(spec, init_scale=1024, growth_interval=4)
        trace = []
        for mark in pattern.split():
            self.assertEqual(scaler.update(mark == "X"), "skip" if mark == "X" else "apply")
            trace.append(math.log2(scaler.scale))
        return trace

    def test_published_rules_step_by_step(self):
        specs = {**{spec: spec for spec in self.TRACES}, **self.SAME_AS}
        for spec, same_as in specs.items():
            for pattern, trace in zip((self.FIRST, self.SECOND), self.TRACES[same_as]):
                self.assertEqual(self.trace(spec, pattern), [int(x) for x in trace.split()], spec)

    def test_a_whole_sequence_at_once(self):
        for spec in halflab.scalers:
            if halflab.scalers[spec]["kind"] != "global" or halflab.Scaler(spec).needs_exponents:
                continue
            at_once, step_by_step = halflab.Scaler(spec), halflab.Scaler(spec)
            found_inf = [mark == "X" for mark in self.SECOND.split()]
            largest = [100.0 * (step + 1) for step in range(len(found_inf))]
            steps = [(step_by_step.scale, step_by_step.update(*known)) for known in zip(found_inf, largest)]
            self.assertEqual(at_once.replay(found_inf, largest).tolist(), steps, spec)
            self.assertEqual(at_once.state, step_by_step.state, spec)
        exponents = [halflab.ExponentHistogram([x]) for x in (2.0**-4, np.inf)]
        twin = [halflab.ExponentHistogram([2.0**-20])] * 2
        steps = halflab.Scaler("adaptive", headroom=2).replay(exponents=exponents, twin=twin)
        self.assertEqual(steps["decision"].tolist(), ["apply", "skip"])

    def test_a_sequence_by_its_trace(self):
        found_inf = np.array([mark == "X" for mark in self.FIRST.split()])
        trace = halflab.Scaler("dynamic", init_scale=1024, growth_interval=4).replay(found_inf)
        after = [int(x) for x in self.TRACES["dynamic"][0].split()]
        np.testing.assert_array_equal(np.log2(trace["scale"]), [10] + after[:-1])
        np.testing.assert_array_equal(trace["decision"] == "skip", found_inf)
        self.assertEqual(halflab.Scaler("dynamic").replay([]).shape, (0,))

    def test_a_sequence_of_zeros_and_ones(self):
        for of_steps in ([0, 1, 0], np.array([0, 1, 0])):
            scales = halflab.Scaler("dynamic").replay(of_steps)["scale"]
            np.testing.assert_array_equal(scales, halflab.Scaler("dynamic").replay([False, True, False])["scale"])
        self.assert_refused("found_inf of step 1", halflab.Scaler("dynamic").replay, [0, 2])

    def test_an_abort_ends_a_sequence(self):
        scaler = halflab.Scaler("deepspeed", init_scale=4, min_scale=1, hysteresis=1, raise_error_at_min_scale=True)
        steps = scaler.replay([True] * 9)
        self.assertEqual(steps.tolist(), [(4.0, "skip"), (2.0, "skip"), (1.0, "abort")])

    def test_a_wrong_sequence_leaves_the_scaler_as_it_was(self):
        scaler = halflab.Scaler("dynamic")
        for fragment, arguments in (
            ("step 1: max_abs = nan", ([True, False], [1.0, math.nan])),
            ("found_inf of step 1 = 'no' is not allowed; allowed: True, False", ([True, "no"],)),
            ("sequences of 2 and 1 steps", ([True, False], [1.0])),
            ("step 0: nothing is known", (None, [1.0])),
            ("found_inf = 3 is not allowed; allowed: a sequence", (3,)),
        ):
            self.assert_refused(fragment, scaler.replay, *arguments)
            self.assertEqual(scaler.state, halflab.Scaler("dynamic").state)

    TORCH = {"scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3, "_growth_tracker": 2}

    def test_the_state_of_a_gradscaler(self):
        scaler = halflab.Scaler.from_torch(self.TORCH)
        self.assertEqual(scaler.replay([False, True, False])["scale"].tolist(), [1024.0, 4096.0, 1024.0])
        self.assertEqual(scaler.options["growth_interval"], 3)
        self.assertEqual(halflab.Scaler.from_torch({**self.TORCH, "scale": 0.0}).replay([True])["scale"].tolist(), [0.0])
        refused = self.assert_refused
        refused("key 'scale' is missing; allowed: the state_dict() of an enabled GradScaler", halflab.Scaler.from_torch, {})
        refused("key 'hysteresis' is not allowed", halflab.Scaler.from_torch, {**self.TORCH, "hysteresis": 2})
        refused("scale = 'x' is not allowed; allowed: a number", halflab.Scaler.from_torch, {**self.TORCH, "scale": "x"})
        refused("growth_factor = 0.5 is not allowed", halflab.Scaler.from_torch, {**self.TORCH, "growth_factor": 0.5})
        refused("state_dict = 3 is not allowed; allowed: a dict", halflab.Scaler.from_torch, 3)

    def test_options_in_either_form(self):
        self.assertEqual(
            halflab.Scaler("dynamic:growth_interval=20").options, halflab.Scaler("dynamic", growth_interval=20).options
        )
        self.assertEqual(halflab.Scaler("static", scale=8).scale, 8)
        self.assertEqual(halflab.scalers["dynamic"]["options"]["growth_interval"]["default"], 2000)
        self.assertEqual(halflab.scalers["dynamic"]["options"]["growth_factor"]["allowed"], "numbers in (1, inf)")

    def test_every_global_scaler_goes_on_from_its_state(self):
        steps = [halflab.ExponentHistogram([x]) for x in (1.0, np.inf, 100.0, 2.0, np.nan, 1.0, 1.0)]
        twin = halflab.ExponentHistogram([2.0**-20])
        for name, row in halflab.scalers.items():
            if row["kind"] != "global":
                self.assert_refused(f"scaler '{name}' is of kind {row['kind']}", halflab.Scaler, name)
                continue
            first, second = halflab.Scaler(name), halflab.Scaler(name)
            for step in steps[:4]:
                first.update(exponents=step, twin=twin)
            second.restore(first.state)
            scalers = (first, second, copy.deepcopy(first), pickle.loads(pickle.dumps(first)))
            for step in steps[4:]:
                decisions = {(scaler.update(exponents=step, twin=twin), scaler.scale) for scaler in scalers}
                self.assertEqual(len(decisions), 1, name)

    def test_options_go_through_pickle(self):
        scaler = halflab.Scaler("dynamic:growth_interval=20", init_scale=8)
        self.assertEqual(pickle.loads(pickle.dumps(scaler)).options, scaler.options)

    def test_a_scaler_that_looks_at_exponents(self):
        scaler = halflab.Scaler("adaptive", headroom=2)
        self.assertTrue(scaler.needs_exponents)
        gradients = np.float32([2.0**-30, 2.0**-20])
        seen = halflab.ExponentHistogram(halflab.round_to(gradients * scaler.scale))
        self.assertTrue(scaler.wants_twin(exponents=seen))
        self.assertEqual(scaler.update(exponents=seen, twin=halflab.ExponentHistogram(gradients)), "apply")
        # 65504 / 2^-20 lies below 2^36, of which 2 octaves stay free.
        self.assertEqual(scaler.scale, 2.0**33)
        self.assert_refused("without the exponents", scaler.update, True)
        self.assert_refused("without the exponents", scaler.wants_twin, True)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown scaler 'dinamic'; did you mean 'dynamic'", halflab.Scaler, "dinamic")
        refused("unknown option 'interval'", halflab.Scaler, "dynamic", interval=3)
        refused("allowed: numbers in (1, inf)", halflab.Scaler, "dynamic:growth_factor=1")
        refused("is given twice", halflab.Scaler, "dynamic:growth_interval=3", growth_interval=3)
        refused("allowed: a number", halflab.Scaler, "dynamic", growth_interval="x")
        scaler = halflab.Scaler("dynamic")
        refused("saved state", scaler.restore, {"scale": 1})
        refused("scale = 'x' is not allowed; allowed: a number", scaler.restore, {**scaler.state, "scale": "x"})
        refused("state: key = 1 is not allowed", scaler.restore, {1: 2})
        refused("nothing is known of the step", scaler.update)
        refused("nothing is known of the step", scaler.wants_twin, max_abs=1)
        for max_abs in (math.nan, -1, math.inf, 1e39):
            refused("max_abs = ", scaler.update, False, max_abs)
        self.assertEqual(scaler.state, halflab.Scaler("dynamic").state)


if __name__ == "__main__":
    unittest.main()
