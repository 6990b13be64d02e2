# SPDX-License-Identifier: Apache-2.0
"""BERT by the official models' own run_pretraining.py, which times nothing: a callback of ours prints its steps as NVIDIA's program for TensorFlow 1 does."""
import datetime
import glob
import json
import os
import sys
import tempfile
import time

import tensorflow as tf
from absl import app
from official.legacy.bert import model_training_utils, run_pretraining

STEPS, BATCH, SEQUENCE, PREDICTIONS = 10, 2, 128, 20
BASE = dict(vocab_size=30522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, hidden_act="gelu", hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1, max_position_embeddings=512, type_vocab_size=2, initializer_range=0.02)


def say(text):
    print("DLL", datetime.datetime.now(), "-", text, flush=True)


class Timer(tf.keras.callbacks.Callback):
    def __init__(self, sequences):
        super().__init__()
        self.sequences, self.times, self.begun = sequences, [], 0

    def on_batch_begin(self, batch, logs=None):
        self.begun = time.monotonic()

    def on_batch_end(self, batch, logs=None):
        self.times.append(time.monotonic() - self.begun)
        if logs["loss"] != logs["loss"]:
            raise SystemExit("the loss is not a number")
        if batch > 0:  # theirs begins with the second too: the first holds the start
            say(f"Iteration: {batch + 1}  throughput_train : {self.sequences / self.times[-1]:.3f} seq/s total_loss : {logs['loss']:.4f}")

    def on_train_end(self, logs=None):
        say(f" throughput_train : {self.sequences * (len(self.times) - 1) / sum(self.times[1:]):.3f} seq/s")


def main():
    records = os.path.join(sys.argv[1], "training", "part-*")
    if not glob.glob(records):
        sys.exit(f"{records}: no TFRecords are there")
    ranks, folder = int(os.environ["WORLD_SIZE"]), tempfile.mkdtemp()
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(BASE, out)
    options = dict(input_files=records, bert_config_file=out.name, model_dir=folder, max_seq_length=SEQUENCE, max_predictions_per_seq=PREDICTIONS, num_gpus=0,
                   distribution_strategy="multi_worker_mirrored" if ranks > 1 else "one_device", train_batch_size=BATCH * ranks, num_steps_per_epoch=STEPS,
                   num_train_epochs=1, steps_per_loop=1, optimizer_type="lamb", learning_rate=7.5e-4, warmup_steps=2000)
    say("PARAMETER " + "  ".join(f"{name}: {value}" for name, value in dict(options, train_batch_size=BATCH, num_train_steps=STEPS, num_accumulation_steps=1).items()))
    train = run_pretraining.run_bert_pretrain
    run_pretraining.run_bert_pretrain = lambda strategy: train(strategy, [Timer(BATCH * ranks)])
    model_training_utils._save_checkpoint = lambda *_args: None
    app.run(run_pretraining.main, ["run_pretraining.py", *(f"--{name}={value}" for name, value in options.items())])


main()
