"""Device maps for PyTorch models: which module goes on which device, in the form of accelerate."""

from situs.importers.torch.blocks import Blocks, Request, module_blocks
from situs.importers.torch.ops import TorchImported, import_exported, import_module
from situs.torch.device_map import DeviceMap, Prediction, device_map, map_blocks
from situs.torch.memory import parse_memory
from situs.torch.placing import OpPlacement, place_ops
from situs.torch.serving import llama_cpp_arguments, vllm_settings

__all__ = [
    "Blocks",
    "DeviceMap",
    "OpPlacement",
    "Prediction",
    "Request",
    "TorchImported",
    "device_map",
    "import_exported",
    "import_module",
    "llama_cpp_arguments",
    "map_blocks",
    "module_blocks",
    "parse_memory",
    "place_ops",
    "vllm_settings",
]
