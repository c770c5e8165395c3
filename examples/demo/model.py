"""A small GPT: enough to learn something from Python's sources in two minutes on two cores."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        rows, length, width = x.shape
        shape = (rows, length, 3, self.heads, width // self.heads)
        query, key, value = self.qkv(self.norm1(x)).view(shape).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, window: int, width: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(window, width)
        self.blocks = nn.ModuleList(Block(width, heads=4) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.tokens, self.places):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, inputs: Tensor, labels: Tensor, places: Tensor, documents: Tensor) -> Tensor:
        """Returns the mean loss of each row, [B]; the output matrix is the embedding's. Labels of -100 do not count.

        A token sees those before it in its own document: `documents` has a number of each token's, `places` where it
        is in it.
        """
        same = documents[:, None, :, None] == documents[:, None, None, :]
        visible = same & torch.ones(inputs.shape[1], inputs.shape[1], dtype=torch.bool).tril()
        hidden = self.tokens(inputs) + self.places(places)
        for block in self.blocks:
            hidden = block(hidden, visible)
        hidden = self.norm(hidden)
        logits = hidden @ self.tokens.weight.T
        losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none", ignore_index=-100)
        return losses.sum(1) / (labels != -100).sum(1).clamp(min=1)
