"""A step of denoising training: U-Net (batch 528, 32 points, base 16) and MLP (batch 1024, 2 variables).

The peer is PyTorch with the same network, Adam and the same loss; ours has clipped gradients and averaged weights too.
"""

import numpy as np

from .harness import OURS, Report, attempt, compare, ready
from .models import torch_device, torch_mlp, torch_unet

LEVEL = 0.2
REPEATS = 7


def run(quick: bool) -> Report:
    import jax

    import effective_langevin as el

    report, rng = Report(), np.random.default_rng(0)
    ring = np.asarray(np.cumsum(rng.normal(size=(20_000, 32)), axis=1) / 6, np.float32)
    plane = rng.normal(size=(20_000, 2)).astype(np.float32)
    steps = 2 if quick else 4
    unet = el.UNet1D().build(32, key=jax.random.key(0))
    mlp = el.MLP().build(2, key=jax.random.key(0))
    shapes = [layer.weight.shape for layer in mlp.layers]
    report.results += compare_training("U-Net, batch 528", unet, lambda: torch_unet(unet), ring, 528, steps)
    report.results += compare_training("MLP, batch 1024", mlp, lambda: torch_mlp(shapes), plane, 1024, 10 * steps)
    report.promise_ratio("U-Net training against PyTorch eager", "U-Net, batch 528", "PyTorch eager", 1.0)
    if jax.default_backend() != "cpu":
        ours = report.find("U-Net, batch 528", OURS)
        report.promise(
            "U-Net training step, batch 528", "<= 0.5 ms", f"{1e3 * ours.seconds:.2f} ms", ours.seconds <= 5e-4
        )
    return report


def compare_training(case: str, network, peer, samples: np.ndarray, batch: int, steps: int):
    contenders = {
        OURS: ours(network, samples, batch, steps),
        "PyTorch eager": attempt(lambda: torch_training(peer(), samples, batch, steps, compiled=False)),
        "PyTorch compiled": attempt(lambda: torch_training(peer(), samples, batch, steps, compiled=True)),
    }
    results = compare(
        case, contenders, repeats=REPEATS, work=steps, per="step", sizes={"batch": batch, "dimension": samples.shape[1]}
    )
    for result in results:
        run = contenders[result.contender]
        if result.seconds:
            result.accuracy = f"loss {run():.3f} after {(REPEATS + 2) * steps} steps"
    return results


def ours(network, samples: np.ndarray, batch: int, steps: int):
    """Epochs of the package's own compiled loop, one after the other."""
    import jax
    import jax.numpy as jnp

    from effective_langevin.estimate.score.denoising import Denoising
    from effective_langevin.estimate.score.training import Schedule, _run_epoch, flatten_weights
    from effective_langevin.estimate.symmetry import NoSymmetry

    schedule = Schedule(epochs=1000, steps_per_epoch=steps, learning_rate=1e-3)
    weights, form = flatten_weights(network)
    memory = {"state": (weights, weights, weights, schedule.optimiser().init(weights)), "epoch": 0}
    data = (jnp.asarray(samples), jnp.float32(LEVEL))
    objective = Denoising(NoSymmetry(), batch, antithetic=False)

    def run() -> float:
        key = jax.random.fold_in(jax.random.key(0), memory["epoch"])
        memory["state"], losses = ready(_run_epoch(memory["state"], form, objective, data, key, schedule))
        memory["epoch"] += 1
        return float(losses.mean())

    return run


def torch_training(network, samples: np.ndarray, batch: int, steps: int, compiled: bool):
    import torch

    device = torch_device()
    network = network.to(device)
    data = torch.tensor(samples, device=device)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    def loss_of(x, z):
        return 0.5 * ((network(x + LEVEL * z) - z) ** 2).sum(1).mean()

    evaluate = torch.compile(loss_of) if compiled else loss_of

    def run() -> float:
        losses = []
        for _ in range(steps):
            x = data[torch.randint(len(data), (batch,), device=device)]
            loss = evaluate(x, torch.randn_like(x))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    return run
