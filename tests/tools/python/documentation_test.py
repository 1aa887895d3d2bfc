"""Everything public is documented, and its examples hold."""

import doctest
import unittest

import halflab
from oracle import Case


class Documentation(Case):
    def test_everything_public_says_what_it_is(self):
        for name in halflab.__all__:
            thing = getattr(halflab, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
        for kind in (halflab.Counts, halflab.ExponentHistogram, halflab.Format, halflab.Scaler):
            self.assertEqual(kind.__module__, "halflab")

    def test_the_examples_of_the_module(self):
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
        result = runner.run(parser.get_doctest(halflab.__doc__, {}, "halflab", None, 0))
        self.assertGreater(result.attempted, 5)
        self.assertEqual(result.failed, 0)


if __name__ == "__main__":
    unittest.main()
