"""Device maps for PyTorch models: which module goes on which device, in the form of accelerate."""

from situs.importers.torch.blocks import Blocks, Request, module_blocks
from situs.torch.device_map import DeviceMap, Prediction, device_map, map_blocks
from situs.torch.memory import parse_memory

__all__ = [
    "Blocks",
    "DeviceMap",
    "Prediction",
    "Request",
    "device_map",
    "map_blocks",
    "module_blocks",
    "parse_memory",
]
