"""Stepping a learned model: how long one Euler-Maruyama step of one member takes, from 1 to 100 000 members.

All contenders integrate the same equation with the same step and draw their own noise; peers outside JAX evaluate the
bare network, without the Gaussian tails beyond the data that ours has.
"""

from functools import partial

import numpy as np

from .harness import OURS, Report, attempt, compare, ready
from .models import Parts, numpy_network, ring_model, torch_device, torch_network, wells_model

STEP = 0.005


def run(quick: bool) -> Report:
    report = Report()
    wells = Parts(wells_model(20_000 if quick else 100_000))
    for members in (1, 100) if quick else (1, 100, 1000, 10_000, 100_000):
        peers = PEERS if members <= 1000 else ()
        work = 2e3 if quick else 1e6 if members >= 1000 else 1e5
        report.results += compare_steppers("MLP", wells, members, work, peers)
    ring = Parts(ring_model(8_000 if quick else 20_000))
    for members in (1,) if quick else (1, 128, 1024, 8192):
        peers = PEERS[:-1] if members in (1, 1024) else ()
        work = 2e2 if quick else 1e3 if members == 1 else 5e3
        report.results += compare_steppers("U-Net", ring, members, work, peers)
    report.results += compare_inference(ring, 64 if quick else 1024)
    if not quick:
        at, unet = "MLP, 1000 members", "U-Net, 1024 members"
        report.promise_ratio("simulation against diffrax, 1000 members", at, "diffrax (VirtualBrownianTree)", 10)
        report.promise_ratio("simulation against torchsde, 1000 members", at, "torchsde", 3)
        for members in (1, 1000, 100_000):
            report.promise_ratio(
                f"simulation against a hand-written scan (MLP, {members} members)",
                f"MLP, {members} members",
                "hand-written lax.scan",
                1,
            )
        report.promise_ratio("simulation against a hand-written scan (U-Net)", unet, "hand-written lax.scan", 1)
        report.promise_ratio(
            "U-Net inference against PyTorch eager", "U-Net inference, 1024 states", "PyTorch eager", 1.5
        )
    return report


def compare_steppers(name: str, parts: Parts, members: int, work: float, peers: tuple):
    """Member-steps per second of all contenders; `work` member-steps in each run, but at least 10 steps."""
    steps = int(np.clip(work / members, 10, 5000))
    contenders = {
        label: attempt(lambda build=build: build(parts, members, steps))
        for label, build in ((OURS, ours), ("hand-written lax.scan", plain_scan), *peers)
    }
    return compare(
        f"{name}, {members} members",
        contenders,
        work=members * steps,
        per="member-step",
        sizes={"members": members, "steps": steps, "dimension": parts.dimension},
    )


def ours(parts: Parts, members: int, steps: int):
    import jax

    from effective_langevin.model.simulation import standard_equation
    from effective_langevin.simulate import EulerMaruyama, integrate

    advance = EulerMaruyama().advance(standard_equation(parts.model, members), STEP)
    start = parts.initial(members)
    options = {"frames": 1, "save_every": steps, "step": STEP, "key": jax.random.key(0), "bound": 1e3}
    return lambda: integrate(advance, start, **options)


def plain_scan(parts: Parts, members: int, steps: int):
    """What one would write down first: one scan, one draw of normals per step."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    @eqx.filter_jit
    def run(drift, factor, x, key):
        def step(x, key):
            kick = jnp.sqrt(2 * STEP) * jax.random.normal(key, x.shape) @ factor.T
            return x + STEP * jax.vmap(drift)(x) + kick, None

        return jax.lax.scan(step, x, jax.random.split(key, steps))[0]

    start = jnp.asarray(parts.initial(members))
    return lambda: np.asarray(run(parts.equation.drift, parts.equation.noise, start, jax.random.key(0)))


def numpy_steps(parts: Parts, members: int, steps: int):
    network, phi, factor = numpy_network(parts.score), parts.phi.T, np.sqrt(2 * STEP) * parts.factor.T

    def run():
        rng, x = np.random.default_rng(0), parts.initial(members)
        for _ in range(steps):
            x = x + STEP * network(x) @ phi + rng.standard_normal(x.shape, np.float32) @ factor
        return x

    return run


def torch_steps(parts: Parts, members: int, steps: int, compiled: bool = False):
    import torch

    device = torch_device()
    network = torch_network(parts.score).to(device).eval()
    phi = torch.tensor(parts.phi, device=device).T
    factor = float(np.sqrt(2 * STEP)) * torch.tensor(parts.factor, device=device).T

    def step(x):
        return x + STEP * network(x) @ phi + torch.randn_like(x) @ factor

    move = torch.compile(step) if compiled else step

    def run():
        x = torch.tensor(parts.initial(members), device=device)
        with torch.no_grad():
            for _ in range(steps):
                x = move(x)
        return x.cpu()

    return run


def torchsde_steps(parts: Parts, members: int, steps: int):
    import torch
    import torchsde

    device = torch_device()
    network = torch_network(parts.score).to(device).eval()
    phi = torch.tensor(parts.phi, device=device).T
    factor = float(np.sqrt(2.0)) * torch.tensor(parts.factor, device=device)

    class Equation:
        noise_type, sde_type = "general", "ito"

        def f(self, t, y):
            return network(y) @ phi

        def g(self, t, y):
            return factor.expand(len(y), *factor.shape)

    def run():
        start, times = torch.tensor(parts.initial(members), device=device), torch.tensor([0.0, steps * STEP])
        with torch.no_grad():
            return torchsde.sdeint(Equation(), start, times.to(device), dt=STEP, method="euler")[-1].cpu()

    return run


def diffrax_steps(parts: Parts, members: int, steps: int):
    import diffrax
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    duration, size = steps * STEP, parts.dimension

    @eqx.filter_jit
    def run(drift, factor, starts, keys):
        def one(start, key):
            brownian = diffrax.VirtualBrownianTree(0.0, duration, tol=STEP / 2, shape=(size,), key=key)
            terms = diffrax.MultiTerm(
                diffrax.ODETerm(lambda t, y, args: drift(y)),
                diffrax.ControlTerm(lambda t, y, args: jnp.sqrt(2.0) * factor, brownian),
            )
            solution = diffrax.diffeqsolve(
                terms, diffrax.Euler(), 0.0, duration, STEP, start, saveat=diffrax.SaveAt(t1=True), max_steps=2 * steps
            )
            return solution.ys[-1]

        return jax.vmap(one)(starts, keys)

    starts, keys = jnp.asarray(parts.initial(members)), jax.random.split(jax.random.key(0), members)
    return lambda: ready(run(parts.equation.drift, parts.equation.noise, starts, keys))


PEERS = (
    ("PyTorch eager", torch_steps),
    ("PyTorch compiled", partial(torch_steps, compiled=True)),
    ("diffrax (VirtualBrownianTree)", diffrax_steps),
    ("torchsde", torchsde_steps),
    ("NumPy", numpy_steps),
)


def compare_inference(parts: Parts, states: int):
    """One pass over many states: ours is the whole score with its calibration and tails, theirs the bare network."""
    import jax.numpy as jnp

    from effective_langevin.execution.batches import evaluate_batch

    x = parts.initial(states)

    def eager():
        import torch

        other, there = torch_network(parts.score)[0].to(torch_device()).eval(), torch.tensor(x, device=torch_device())

        def run():
            with torch.no_grad():
                return other(there).cpu()

        ours = np.asarray(evaluate_batch(parts.score.network, jnp.asarray(x)))
        apart = np.abs(run().numpy() - ours).max()
        assert apart < 1e-3, f"the networks differ by {apart}"
        return run

    contenders = {OURS: lambda: parts.score.over(x), "PyTorch eager": attempt(eager)}
    return compare(
        f"U-Net inference, {states} states",
        contenders,
        repeats=15,
        work=states,
        per="state",
        sizes={"states": states},
    )
