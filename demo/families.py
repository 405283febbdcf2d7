"""The two demos: the architecture, the release of RoboBrain's words, the picture and the directory of each."""

import json
import os

import model as first_model
import model3
from batches import BUCKETS, BUCKETS_25, TEXTS, TEXTS_FEW, Encoder, patches_of, patches_of_cells
from release import FIRST, SECOND

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "model", "tokenizer.json")       # both have the same


class Family:
    def __init__(self, folder, module, release, patches, buckets, texts, former=None):
        self.folder, self.conf, self.vision = os.path.join(HERE, folder), module.CONFIG, module.Vision
        self.name, self.release, self.patches = self.conf["family"], release, patches
        self.buckets, self.texts = buckets, texts
        self.former = former            # the family whose weights teach this one's; it meets every look at once

    def encoder(self):
        return Encoder(TOKENIZER, self.release)

    def model(self):
        return first_model.Model(*self.encoder().prefix(), self.conf, self.vision)


QWEN2_5_VL = Family("model", first_model, FIRST, patches_of, BUCKETS, TEXTS)
QWEN3_VL = Family("model-3", model3, SECOND, patches_of_cells, BUCKETS_25, TEXTS_FEW, QWEN2_5_VL)
FAMILIES = {family.name: family for family in (QWEN2_5_VL, QWEN3_VL)}


def family_of(folder):
    """The family of a checkpoint directory."""
    with open(os.path.join(folder, "config.json")) as f:
        return FAMILIES[json.load(f)["model_type"]]
