"""The Python of docs/pytorch.md, block by block: its callbacks too, where what they are for is installed."""

import contextlib
import os
import pathlib
import re
import unittest

from case import Case, halflab, has_module, needs, nn, torch

PAGE = pathlib.Path(__file__).resolve().parents[4] / "docs" / "pytorch.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@needs(2, 3)
class Blocks(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def run_blocks(self, language):
        names = {}
        with contextlib.redirect_stdout(None):
            for block in blocks(language):
                exec(compile(block, PAGE.name, "exec"), names)
        return names

    def test_python(self):
        names = self.run_blocks("python")
        self.assertEqual(set(names["watch"].tensors), set(halflab.read_gradients("run.halflab").tensors))
        title = pathlib.Path("out.html").read_text(encoding="utf-8").split("<title>")[1].split("</title>")[0]
        self.assertIn("FP16 loses gradients", title)
        self.assertTrue(pathlib.Path("page.html").is_file())

    @unittest.skipUnless(has_module("lightning"), "needs lightning")
    def test_the_callback_for_lightning(self):
        import lightning
        from lightning.pytorch.plugins import MixedPrecision

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 1)

            def training_step(self, batch, _):
                return nn.functional.mse_loss(self.layer(batch[0]).float(), batch[1])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.01)

        callback = self.run_blocks("python lightning")["Watch"]()
        data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
        quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
        precision = MixedPrecision("16-mixed", device="cpu", scaler=scaler)
        trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], plugins=[precision], **quiet)
        trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4))
        self.assertEqual(len(callback.watch.steps), 16)
        self.assertGreater(len(callback.watch.skips), 2)
        self.assertTrue(pathlib.Path("out.html").is_file())

    @unittest.skipUnless(has_module("transformers") and has_module("accelerate"), "needs transformers and accelerate")
    def test_the_callback_for_transformers(self):
        import transformers

        sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50)
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**sizes))
        data = [{"input_ids": torch.randint(50, (8,)), "labels": row % 2} for row in range(32)]
        callback = self.run_blocks("python transformers")["Watch"]()
        options = transformers.TrainingArguments(
            "out", max_steps=6, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True
        )
        trainer = transformers.Trainer(model=model, args=options, train_dataset=data, callbacks=[callback])
        callback.trainer = trainer
        with contextlib.redirect_stdout(None):
            trainer.train()
        self.assertEqual(len(callback.watch.steps), 6)
        self.assertTrue(pathlib.Path("out.html").is_file())


if __name__ == "__main__":
    unittest.main()
