"""Network architectures: frozen descriptions that build networks, functions of one state."""

from .forms import freeze, scale
from .mlp import MLP, Layers
from .network import AbstractNetwork, NetworkStrategy, OnCircles, OnGrid, Residual, Sum
from .storage import describe_network, rebuild_network
from .unet import UNet, UNet1D
