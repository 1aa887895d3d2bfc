"""Everything public is documented, and its examples hold."""

import doctest
import inspect
import unittest

import halflab
from oracle import Case

CLASSES = (halflab.Counts, halflab.ExponentHistogram, halflab.Format, halflab.Scaler)


def functions():
    """Every public function by its full name, methods and those of halflab.math too."""
    found = {f"halflab.{name}": getattr(halflab, name) for name in halflab.__all__}
    found |= {f"halflab.math.{name}": thing for name, thing in vars(halflab.math).items() if not name.startswith("_")}
    for kind in CLASSES:
        methods = {name: getattr(kind, name) for name in vars(kind) if not name.startswith("_") or name == "__init__"}
        found |= {f"halflab.{kind.__name__}.{name}": thing for name, thing in methods.items()}
    del found["halflab.Format.__init__"]  # only says that there is none
    return {name: thing for name, thing in found.items() if inspect.isroutine(thing)}


class Documentation(Case):
    def test_everything_public_says_what_it_is(self):
        for name in halflab.__all__:
            thing = getattr(halflab, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
        for kind in CLASSES:
            self.assertEqual(kind.__module__, "halflab")
        self.assertEqual(len([name for name in functions() if name.startswith("halflab.math.")]), 34)
        self.assertGreater(len(functions()), 34 + 40)

    def test_it_says_its_version(self):
        self.assertRegex(halflab.__version__, r"^\d+\.\d+\.\d+$")

    def test_every_function_has_an_example_that_holds(self):
        # Those of the six need files that are made elsewhere.
        need_files = ("report_gradients", "run_command", "run_experiment", "read_gradients", "read_record", "read_tensors")
        elsewhere = {f"halflab.{name}" for name in need_files}
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
        for name, function in {"halflab": halflab, **functions()}.items():
            example = parser.get_doctest(function.__doc__, {"halflab": halflab}, name, None, 0)
            self.assertTrue(example.examples, name)
            if name not in elsewhere:
                self.assertEqual(runner.run(example).failed, 0, name)
        self.assertEqual(str(inspect.signature(halflab.text)), "(bits, format='binary16', style='shortest')")


if __name__ == "__main__":
    unittest.main()
