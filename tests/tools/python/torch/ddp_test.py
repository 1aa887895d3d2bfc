"""Two ranks of a DistributedDataParallel training: each records for itself, and reading merges."""

import json
import unittest

from case import Case, Training, halflab, needs, nn, torch

STEPS, RANKS, BAD_STEP = 8, 2, 5


def training_of(rank, scale):
    """The rank's half of the data, and under a scaler an infinity in that of rank 1, once."""
    training = Training(scale=scale, autocast=scale and torch.float16)
    training.model = nn.parallel.DistributedDataParallel(training.model)
    training.x, training.y = training.x[rank::RANKS].clone(), training.y[rank::RANKS]

    def plant(step):
        training.x[0, 0] = torch.inf if step + 1 == BAD_STEP else 1.0

    if scale and rank == 1:
        training.step_done = plant
    return training


def train(rank, folder, scale):
    """The process of one rank: trains alone, then watched, and leaves both lists of losses."""
    torch.set_num_threads(1)
    store = (folder / "store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
    alone, watched = training_of(rank, scale).run(STEPS), training_of(rank, scale)
    watched.watch(STEPS, every=3, out=folder / "run", twin=watched.loss if scale else None)
    losses = [[loss.hex() for loss in training.losses] for training in (alone, watched)]
    (folder / f"{rank}.json").write_text(json.dumps(losses))
    torch.distributed.destroy_process_group()


def repeat_with_buffers(rank, folder):
    """Of one rank: each adds its own number to a buffer, so that ranks with and without rank 0's buffers differ."""
    torch.distributed.init_process_group("gloo", init_method=(folder / "store").as_uri(), rank=rank, world_size=RANKS)
    found = {}
    for is_watched in (False, True):
        torch.manual_seed(1)
        model = nn.parallel.DistributedDataParallel(Counted())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loss = lambda: model(torch.full((2, 4), 1.0 + rank)).sum()

        def train():
            for _ in range(4):
                optimizer.zero_grad()
                loss().backward()
                optimizer.step()

        if is_watched:
            with halflab.torch.watch(model, optimizer, every=1, twin=loss if rank else None):
                train()
        else:
            train()
        found[is_watched] = list(SEEN)
        SEEN.clear()
    (folder / f"{rank}.json").write_text(json.dumps([found[False], found[True]]))
    torch.distributed.destroy_process_group()


SEEN = []  # by Counted; outside of the module, whose attributes a twin puts back


class Counted(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        SEEN.append(self.count.item())
        self.count += x[0, 0].item()
        return super().forward(x)


@unittest.skipUnless(torch.distributed.is_available(), "this PyTorch has no torch.distributed")
class Ranks(Case):
    def test_a_twin_of_one_rank_sends_nothing_and_sees_the_buffers_of_the_step(self):
        torch.multiprocessing.spawn(repeat_with_buffers, (self.folder,), nprocs=RANKS)
        for rank in range(RANKS):
            alone, watched = json.loads((self.folder / f"{rank}.json").read_text())
            self.assertEqual(alone, [0.0, 1.0, 2.0, 3.0])  # those of rank 0
            self.assertEqual(watched, [each for each in alone for _ in range(1 + rank)])

    def records(self, scale):
        """Of each rank, and of both."""
        torch.multiprocessing.spawn(train, (self.folder, scale), nprocs=RANKS)
        losses = [json.loads((self.folder / f"{rank}.json").read_text()) for rank in range(RANKS)]
        for alone, watched in losses:
            self.assertEqual(alone, watched)
        self.assertNotEqual(*losses)  # the ranks have data of their own
        run = self.folder / "run"
        return [halflab.read_gradients(run / f"rank{rank}") for rank in range(RANKS)], halflab.read_gradients(run)

    def test_each_rank_has_a_record_and_reading_merges_them(self):
        Training(scale=None, autocast=None).watch(STEPS + 1, out=self.folder / "run")  # an older one, on one process
        (first, second), merged = self.records(scale=None)
        for record in (first, second, merged):
            self.assertEqual(record.steps["step"].tolist(), list(range(STEPS)))
            self.assertEqual(set(record.tensors), set(first.tensors))
        self.assertEqual([record.manifest["rank"] for record in (first, second)], [0, 1])
        self.assertEqual(first.manifest["ranks"], RANKS)
        self.assertTrue(first.manifest["run"])
        for key, histogram in merged.tensors.items():
            total = halflab.ExponentHistogram()
            total += first.tensors[key]
            total += second.tensors[key]
            self.assertEqual(histogram, total, key)
        self.assertEqual(first.tensors["4.weight", "gradient"], second.tensors["4.weight", "gradient"])  # all-reduced
        self.assertNotEqual(first.tensors["4", "output"], second.tensors["4", "output"])

    @needs(2, 3)
    def test_an_infinity_of_one_rank_skips_the_step_of_all(self):
        parts, merged = self.records(scale=2.0**8)
        self.assertEqual([[skip["step"] for skip in part.skips] for part in parts], [[BAD_STEP]] * RANKS)
        self.assertEqual([(skip["step"], skip["rank"]) for skip in merged.skips], [(BAD_STEP, 0), (BAD_STEP, 1)])
        self.assertEqual([skip["twin"] for skip in merged.skips], ["finite", "not finite"])
        self.assertEqual(merged.steps["found_inf"].tolist(), [step == BAD_STEP for step in range(STEPS)])


if __name__ == "__main__":
    unittest.main()
