"""The orders in which PyTorch sums, replayed."""

import unittest

from case import Case, halflab, np, torch


def evaluate(tree, terms):
    """A tree of sums of two terms, each rounded to the terms' format."""
    return terms[tree] if isinstance(tree, int) else evaluate(tree[0], terms) + evaluate(tree[1], terms)


def leaves(tree):
    return [tree] if isinstance(tree, int) else [leaf for child in tree for leaf in leaves(child)]


class TorchOrders(Case):
    def test_sums(self):
        for dtype in (torch.float32, torch.float64):
            for n in (7, 40, 300):
                tree = halflab.reveal_order(torch.sum, n, dtype)
                self.assertEqual(sorted(leaves(tree)), list(range(n)))
                for seed in range(20):
                    terms = torch.from_numpy(np.random.default_rng(seed).standard_normal(n)).to(dtype)
                    self.assertEqual(evaluate(tree, terms.numpy()), torch.sum(terms).item())

    def test_matrix_products(self):
        """Each element of a product is a sum whose terms, times one, are rounded nowhere else."""
        n = 48
        product = lambda x: torch.matmul(x[None, :], torch.ones(n, 1, dtype=x.dtype))[0, 0]
        tree = halflab.reveal_order(product, n, "torch.float32")
        for seed in range(20):
            terms = torch.from_numpy(np.random.default_rng(seed).standard_normal(n)).to(torch.float32)
            self.assertEqual(evaluate(tree, terms.numpy()), product(terms).item())

    def test_what_is_called_gets_tensors(self):
        kinds = set()

        def in_order(x):
            kinds.add((type(x), x.dtype))
            total = x[0]
            for i in range(1, len(x)):
                total = total + x[i]
            return total

        for dtype in (torch.float16, torch.bfloat16, "torch.bfloat16"):
            self.assertEqual(halflab.reveal_order(in_order, 5, dtype), ((((0, 1), 2), 3), 4))
        self.assertEqual(kinds, {(torch.Tensor, torch.float16), (torch.Tensor, torch.bfloat16)})

    def test_half_precision_sums_have_an_order(self):
        for dtype in (torch.float16, torch.bfloat16):
            for n in (8, 100):
                self.assertEqual(sorted(leaves(halflab.reveal_order(torch.sum, n, dtype))), list(range(n)))

    def test_refusals(self):
        refused = self.assert_refused
        refused("torch.e4m3' is no dtype", halflab.reveal_order, torch.sum, 3, "torch.e4m3")
        refused("int64", halflab.reveal_order, torch.sum, 3, torch.int64)


if __name__ == "__main__":
    unittest.main()
