#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Small models of the package transformers for hub.cpp: their files as hubs have them in hub/NAME, and the logits and the greedy continuation of a prompt
in hub.safetensors. GPT-2 is one file with the names, and the masks, of the first one that was published; LLaMA is two files in bf16 with an index.

    python3 tests/golden/hub.py      # needs torch, numpy, safetensors and transformers
"""
import copy
import shutil

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from write_golden import HERE, Draw, stored, write_safetensors

CONTEXT, PROMPT = 24, 7


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=37, n_positions=CONTEXT, n_embd=12, n_layer=2, n_head=3, attn_implementation="eager"))


def llama():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=41, max_position_embeddings=CONTEXT, hidden_size=16, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=False, attn_implementation="eager"))


def write_gpt2(model, folder):
    state = {name.removeprefix("transformer."): t.float().contiguous() for name, t in model.state_dict().items() if name != "lm_head.weight"}
    for layer in range(2):
        state[f"h.{layer}.attn.bias"] = torch.ones(CONTEXT, CONTEXT).tril().view(1, 1, CONTEXT, CONTEXT)
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def write_llama(model, folder):
    copy.deepcopy(model).bfloat16().save_pretrained(folder, max_shard_size="8KB")  # which would round the frequencies of the positions, too
    for other in folder.glob("*config.json"):
        other.unlink()


def run(name, make, write):
    draw = Draw("hub " + name)
    model = make().double().eval()
    draw.parameters(model)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16())
    model.tie_weights()
    folder = HERE / "hub" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write(model, folder)
    vocabulary = model.config.vocab_size
    tokens = draw.ids(vocabulary, CONTEXT)
    with torch.no_grad():
        yield "tokens", tokens
        yield "logits", model(tokens[None]).logits[0]
        text = tokens[:PROMPT].tolist()
        while len(text) < CONTEXT:
            last = model(torch.tensor([text])).logits[0, -1]
            first, second = last.topk(2).values
            assert first - second > 1e-3  # or float32 could choose another
            text.append(int(last.argmax()))
        yield "greedy", torch.tensor(text)


def main():
    torch.set_num_threads(1)
    cases = {"gpt2": (gpt2, write_gpt2), "llama": (llama, write_llama)}
    write_safetensors(HERE / "hub.safetensors", {f"{name}/{what}": stored(what, t) for name, case in cases.items() for what, t in run(name, *case)})


if __name__ == "__main__":
    main()
