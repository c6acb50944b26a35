"""The two models that the speed benchmarks step, and the same networks in NumPy and PyTorch."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

import effective_langevin as el
from effective_langevin.model.simulation import standard_equation


def wells_model(samples: int = 100_000) -> el.LangevinModel:
    """A KGMM network of the two-dimensional wells, hidden layers 128 and 64."""
    series = el.systems.AsymmetricWells().simulate(samples / 100 * 0.05, dt=0.05, members=100, seed=0)
    return el.fit(series, score=el.KGMM(noise_level=0.05, steps=1000), seed=1)


def ring_model(samples: int = 40_000, epochs: int = 1, epoch_samples: int = 10_560) -> el.LangevinModel:
    """A U-Net model of the Kuramoto-Sivashinsky equation at 32 points; hardly trained, which costs the same to step."""
    system = el.systems.KuramotoSivashinsky(grid=64, stride=2)
    series = system.simulate(samples / 200, dt=1.0, members=200, seed=0, step=0.2, burn_in=300.0)
    score = el.DenoisingScore(el.UNet1D(), noise_level=0.2, batch=528, epochs=epochs, epoch_samples=epoch_samples)
    return el.fit(series, score=score, symmetry=el.TranslationsAndReflections(parity=-1), seed=1)


class Parts:
    """What any other package needs of a model: Phi, noise factor, starting states (all standardised), the network."""

    def __init__(self, model: el.LangevinModel):
        self.model = model
        # Others get the network as it was trained, not in the form in which we step it.
        self.equation = eqx.tree_at(lambda e: e.drift.score, standard_equation(model), model.score.function)
        self.phi = np.asarray(self.equation.drift.phi)
        self.factor = np.asarray(self.equation.noise)
        self.states = np.asarray(model.standardizer.to_standard(model.states), np.float32)
        self.score = model.score.function

    @property
    def dimension(self) -> int:
        return len(self.phi)

    def initial(self, members: int) -> np.ndarray:
        return self.states[np.random.default_rng(0).integers(0, len(self.states), members)]


def numpy_network(score: Any):
    """The network of an MLP model in NumPy, (member, var) -> (member, var)."""
    layers = [(np.asarray(layer.weight).T.copy(), np.asarray(layer.bias)) for layer in score.network.layers]
    gain = np.asarray(score.gain).T

    def network(x: np.ndarray) -> np.ndarray:
        for weight, bias in layers[:-1]:
            x = x @ weight + bias
            x = x / (1 + np.exp(-x))
        return (x @ layers[-1][0] + layers[-1][1]) @ gain

    return network


def torch_network(score: Any):
    """The network of a model in PyTorch; MLP, or U-Net with a Gaussian part beside it."""
    import torch

    network = score.network
    gain = torch.nn.Linear(len(score.low), len(score.low), bias=False)
    gain.weight.data = torch.tensor(np.asarray(score.gain))
    if hasattr(network, "layers"):
        inner = torch_mlp([layer.weight.shape for layer in network.layers])
        linears = [module for module in inner if isinstance(module, torch.nn.Linear)]
        for module, layer in zip(linears, network.layers):
            module.weight.data = torch.tensor(np.asarray(layer.weight))
            module.bias.data = torch.tensor(np.asarray(layer.bias))
        return torch.nn.Sequential(inner, gain)
    inner = torch_unet(network.network)
    linear = torch.tensor(np.asarray(network.linear)).T
    return torch.nn.Sequential(_torch_residual(inner, linear), gain)


def torch_mlp(shapes: list[tuple[int, int]]):
    """Linear layers with swish between them; weights as PyTorch draws them."""
    import torch

    modules: list = []
    for outputs, inputs in shapes:
        modules += [torch.nn.Linear(inputs, outputs), torch.nn.SiLU()]
    return torch.nn.Sequential(*modules[:-1])


def _torch_residual(inner, linear):
    import torch

    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner
            self.register_buffer("linear", linear)

        def forward(self, x):
            return x @ self.linear + self.inner(x)

    return Residual()


def torch_unet(network: Any):
    """The U-Net of `el.UNet1D` in PyTorch, with the same weights."""
    import torch
    from torch.nn import functional

    def convolution(ours, inputs: int):
        outputs, taps = len(ours.bias), ours.weight.shape[0] // inputs
        options = {"stride": 2} if ours.stride > 1 else {"padding": taps // 2, "padding_mode": "circular"}
        module = torch.nn.Conv1d(inputs, outputs, taps, **(options if taps > 1 else {}))
        module.weight.data = torch.tensor(
            np.asarray(ours.weight).reshape(taps, inputs, outputs).transpose(2, 1, 0).copy()
        )
        module.bias.data = torch.tensor(np.asarray(ours.bias))
        return module

    def block(ours, inputs: int):
        first, second = ours.convolutions
        return torch.nn.Sequential(
            convolution(first, inputs), torch.nn.SiLU(), convolution(second, len(first.bias)), torch.nn.SiLU()
        )

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            widths = [len(b.convolutions[1].bias) for b in network.encoder]
            above = [len(network.bottleneck.convolutions[1].bias), *widths[:0:-1]]
            self.encoder = torch.nn.ModuleList(block(b, w) for b, w in zip(network.encoder, [1, *widths]))
            self.down = torch.nn.ModuleList(convolution(c, w) for c, w in zip(network.down, widths))
            self.bottleneck = block(network.bottleneck, widths[-1])
            self.decoder = torch.nn.ModuleList(
                block(b, up + w) for b, up, w in zip(network.decoder, above, reversed(widths))
            )
            self.out = convolution(network.out, widths[0])

        def forward(self, x):
            h, skips = x[:, None], []
            for encode, down in zip(self.encoder, self.down):
                h = encode(h)
                skips.append(h)
                h = down(h)
            h = self.bottleneck(h)
            for decode, skip in zip(self.decoder, reversed(skips)):
                h = decode(torch.cat([functional.interpolate(h, scale_factor=2, mode="nearest"), skip], 1))
            return self.out(h)[:, 0]

    return Net()


def torch_device():
    import torch

    return torch.device("cuda" if jax.default_backend() != "cpu" and torch.cuda.is_available() else "cpu")
