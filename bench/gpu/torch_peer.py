#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What this machine's PyTorch takes for the same work, compiled by torch.compile: GPT-2 124M and the narrow MLP of narrow_mlp.cu.

Each is compiled in several ways (MODES), the likely best first, and prints `figure NAME_by_MODE VALUE` as soon as it is known; bench/gpu.sh
takes the best. A way that fails is a line of output. With --compile-only nothing is measured, but the compiler's caches
(TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR) are filled. Without PyTorch, or a GPU that it can use, it says so and ends with 77.
"""
import argparse
import contextlib
import gc
import statistics
import sys

try:
    import torch
    from torch.nn import attention, functional
except ImportError:
    print("there is no PyTorch")
    sys.exit(77)

VOCABULARY, CONTEXT, WIDTH, HEADS, BLOCKS = 50304, 1024, 768, 12, 12
# The mode of torch.compile, and whether attention is cuDNN's. reduce-overhead and max-autotune replay CUDA graphs.
MODES = {
    "default": ("default", False),
    "default_cudnn": ("default", True),
    "graphs": ("reduce-overhead", False),
    "max_autotune": ("max-autotune", False),
    "max_autotune_cudnn": ("max-autotune", True),
}


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
    """Median of many, by events; none of no runs."""
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
    return statistics.median(times) if times else None


def gpt2(dtype, micro_batches, samples, mode, is_compiled_only):
    """Tokens per second."""
    torch.manual_seed(1)
    model = Gpt2().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    loss_of = torch.compile(model, mode=mode)
    if mode != "default":  # a graph's outputs are overwritten by the next one: gradients are added to memory of ours
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
    tokens = torch.randint(0, 50257, (micro_batches, samples, CONTEXT), device="cuda")
    labels = tokens.roll(-1, 2)

    def step():
        optimizer.zero_grad(set_to_none=mode == "default")  # graphs expect gradients where they were
        for x, y in zip(tokens, labels):
            torch.compiler.cudagraph_mark_step_begin()
            with torch.autocast("cuda", dtype, enabled=dtype is not torch.float32):
                loss = loss_of(x, y) / micro_batches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()

    time = seconds(step, 2, 0) if is_compiled_only else seconds(step, 4, 10)
    return time and micro_batches * samples * CONTEXT / time


def narrow_mlp(dtype, mode, is_compiled_only):
    """Microseconds of a forward and backward."""
    layers = [layer for _ in range(5) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())][:-1]
    model = torch.nn.Sequential(*layers).to("cuda", dtype)
    loss_of = torch.compile(lambda x, y: functional.mse_loss(model(x), y), mode=mode)
    x, y = (torch.rand(1 << 17, 64, device="cuda", dtype=dtype) for _ in range(2))

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        for p in model.parameters():
            p.grad = None
        loss_of(x, y).backward()

    time = seconds(step, 2, 0) if is_compiled_only else seconds(step, 10, 30)
    return time and 1e6 * time


def attempt(name, work, is_cudnn):
    """Prints a figure, if there is one, or why there is none."""
    torch._dynamo.reset()
    try:
        kernels = attention.sdpa_kernel(attention.SDPBackend.CUDNN_ATTENTION) if is_cudnn else contextlib.nullcontext()
        with kernels:
            value = work()
        print(f"figure {name} {value:.0f}" if value else f"compiled {name}", flush=True)
    except Exception as error:  # of whatever compiler is below: the next way may work
        print(f"without {name}: {str(error).strip().splitlines()[:1]}", flush=True)
    gc.collect()
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile-only", action="store_true")
    compile_only = parser.parse_args().compile_only
    if not torch.cuda.is_available():
        print("PyTorch has no GPU here")
        return 77
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}", flush=True)
    # By what they tell per second: a first figure of everything in bf16, better ways of it, the other formats.
    figures = [(mode, "bf16", batch) for mode in MODES for batch in ("", "_4x32")] + \
        [(mode, name, "") for name in ("fp32", "tf32") for mode in ("default", "graphs")]
    for way, name, batch in figures:
        mode, is_cudnn = MODES[way]
        dtype = torch.bfloat16 if name == "bf16" else torch.float32
        torch.set_float32_matmul_precision("highest" if name == "fp32" else "high")
        micro_batches, samples = (4, 32) if batch else (2, 8)
        attempt(f"torch_gpt2_tokens_per_second_{name}{batch}_by_{way}",
                lambda: gpt2(dtype, micro_batches, samples, mode, compile_only), is_cudnn)
        if not batch and not is_cudnn:
            attempt(f"torch_narrow_mlp_us_{name}_by_{way}", lambda: narrow_mlp(dtype, mode, compile_only), False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
