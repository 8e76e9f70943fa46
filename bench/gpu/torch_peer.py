#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What this machine's PyTorch takes for the same work, compiled by torch.compile: GPT-2 124M and the narrow MLP of narrow_mlp.cu.

Prints `figure NAME VALUE` lines. Without PyTorch, or a GPU that it can use, it says so and ends with 77.
"""
import statistics
import sys

try:
    import torch
    from torch.nn import functional
except ImportError:
    print("there is no PyTorch")
    sys.exit(77)

VOCABULARY, CONTEXT, WIDTH, HEADS, BLOCKS = 50304, 1024, 768, 12, 12
MICRO_BATCHES, SAMPLES = 2, 8


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.norm2 = torch.nn.LayerNorm(WIDTH)
        self.widen = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).view(x.shape[0], CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        x = x + self.mix(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.positions = torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, tokens, labels):
        x = self.embedding(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def seconds(step, warm_up, runs):
    """Median of many, by events."""
    for _ in range(warm_up):
        step()
    times = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(1e-3 * begin.elapsed_time(end))
    return statistics.median(times)


def gpt2(dtype):
    torch.manual_seed(1)
    model = Gpt2().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    loss_of = torch.compile(model)
    tokens = torch.randint(0, 50257, (MICRO_BATCHES, SAMPLES, CONTEXT), device="cuda")
    labels = tokens.roll(-1, 2)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for x, y in zip(tokens, labels):
            with torch.autocast("cuda", dtype, enabled=dtype is not torch.float32):
                loss = loss_of(x, y) / MICRO_BATCHES
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()

    return MICRO_BATCHES * SAMPLES * CONTEXT / seconds(step, 4, 10)


def narrow_mlp(dtype):
    layers = [layer for _ in range(5) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())][:-1]
    model = torch.nn.Sequential(*layers).to("cuda", dtype)
    loss_of = torch.compile(lambda x, y: functional.mse_loss(model(x), y), mode="max-autotune-no-cudagraphs")
    x, y = (torch.rand(1 << 17, 64, device="cuda", dtype=dtype) for _ in range(2))

    def step():
        for p in model.parameters():
            p.grad = None
        loss_of(x, y).backward()

    return 1e6 * seconds(step, 10, 30)


def main():
    if not torch.cuda.is_available():
        print("PyTorch has no GPU here")
        return 77
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    for name, dtype, matmul in (
            ("bf16", torch.bfloat16, "high"), ("fp32", torch.float32, "highest"), ("tf32", torch.float32, "high")):
        torch.set_float32_matmul_precision(matmul)
        torch._dynamo.reset()
        print(f"figure torch_gpt2_tokens_per_second_{name} {gpt2(dtype):.0f}", flush=True)
        print(f"figure torch_narrow_mlp_us_{name} {narrow_mlp(dtype):.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
