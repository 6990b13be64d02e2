# SPDX-License-Identifier: Apache-2.0
"""bert_nano in PyTorch, among nets_torch.NETS once this is imported. Not in nets_torch.py: the report cpu-2026 was run with that file as it is."""
import nets_torch


class BertNano(nets_torch.BertTiny):
    """The same of few words: for tests."""
    WORDS = 2546


nets_torch.NETS["bert_nano"] = BertNano
