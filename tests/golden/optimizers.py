# SPDX-License-Identifier: BSL-1.0
"""Optimizers by the names and settings of pipe: PyTorch's own, and those that it lacks by their published formulas."""
from unittest import mock

import torch
from torch import optim

MUON_RATES = ["original", "match_rms_adamw", "spectral_unclamped"]


class Lion(optim.Optimizer):
    """Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2."""

    def __init__(self, groups, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay})
        self.closest = 1.0  # of all directions that are not 0: the smallest, relative to the largest of its tensor

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                direction = beta1 * m + (1 - beta1) * w.grad
                w -= group["lr"] * (direction.sign() + group["weight_decay"] * w)
                m.copy_(beta2 * m + (1 - beta2) * w.grad)
                sizes = direction[direction != 0].abs()
                self.closest = min(self.closest, float(sizes.min() / sizes.max()))


class LAMB(optim.Optimizer):
    """You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2, its phi being the identity."""

    def __init__(self, groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                state = self.state[w]
                m = state.setdefault("m", torch.zeros_like(w))
                v = state.setdefault("v", torch.zeros_like(w))
                m.copy_(beta1 * m + (1 - beta1) * w.grad)
                v.copy_(beta2 * v + (1 - beta2) * w.grad**2)
                m_hat, v_hat = m / (1 - beta1**self.steps), v / (1 - beta2**self.steps)
                update = m_hat / (v_hat.sqrt() + group["eps"]) + group["weight_decay"] * w
                w -= group["lr"] * w.norm() / update.norm() * update


class Muon:
    """torch.optim.Muon for the weights of contractions, AdamW for all else.

    PyTorch runs the Newton-Schulz iteration in bfloat16. Unless `rounds`, the very same code runs in float64.
    """

    def __init__(self, matrices, tables, vectors, others, rounds=False, **settings):
        decay = others.pop("weight_decay", 0.01)
        self.matrices = optim.Muon(matrices, **settings)
        self.others = optim.AdamW(
            [{"params": tables, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}], **others)
        self.rounds = rounds

    def zero_grad(self):
        self.matrices.zero_grad()
        self.others.zero_grad()

    def step(self):
        with mock.patch.object(torch, "bfloat16", torch.bfloat16 if self.rounds else torch.float64):
            self.matrices.step()
        self.others.step()


def torch_settings(settings):
    """pipe's names of settings -> PyTorch's."""
    s = settings
    renamed = {"learning_rate": "lr", "epsilon": "eps", "threshold": "d", "newton_schulz_steps": "ns_steps",
               "learning_rate_decay": "lr_decay"}
    out = {renamed.get(k, k): v for k, v in s.items() if k not in ("beta1", "beta2", "a", "b", "c")}
    if "beta1" in s:
        out["betas"] = (s["beta1"], s["beta2"])
    if "epsilon1" in s:
        out["eps"] = (out.pop("epsilon1"), out.pop("epsilon2"))
    if "a" in s:
        out["ns_coefficients"] = (s["a"], s["b"], s["c"])
    if "adjust" in s:
        out["adjust_lr_fn"] = MUON_RATES[out.pop("adjust")]
    if "nesterov" in out:
        out["nesterov"] = bool(out["nesterov"])
    return out


def make(kind, settings, model, tables):
    """An optimizer of the model's parameters. Matrices and tables decay, vectors do not; `tables` names the tables."""
    named = dict(model.named_parameters())
    vectors = [p for p in named.values() if p.dim() == 1]
    if kind.startswith("Muon"):
        others = torch_settings({k[7:]: v for k, v in settings.items() if k.startswith("others.")})
        return Muon([p for n, p in named.items() if p.dim() == 2 and n not in tables], [named[n] for n in tables], vectors,
                    others, kind == "MuonInBfloat16",
                    **torch_settings({k: v for k, v in settings.items() if not k.startswith("others.")}))
    s = torch_settings(settings)
    groups = [{"params": [p for p in named.values() if p.dim() > 1]}, {"params": vectors, "weight_decay": 0.0}]
    if kind == "Adafactor":  # its default depends on the type: that of float32, as in pipe
        s.setdefault("eps", (torch.finfo(torch.float32).eps, 1e-3))
    if kind == "NAdam":
        s["decoupled_weight_decay"] = True
    if kind == "CenteredRMSprop":
        s["centered"] = True
    kinds = {"SGD": optim.SGD, "Adam": optim.Adam, "AdamW": optim.AdamW, "NAdam": optim.NAdam, "Adafactor": optim.Adafactor,
             "RMSprop": optim.RMSprop, "CenteredRMSprop": optim.RMSprop, "Adagrad": optim.Adagrad, "Adamax": optim.Adamax,
             "Lion": Lion, "LAMB": LAMB}
    return kinds[kind](groups, **s)
