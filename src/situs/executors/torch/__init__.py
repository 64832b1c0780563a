"""PyTorch as an engine: exported models run op by op on its devices."""

from situs.executors.torch.devices import torch_cluster
from situs.executors.torch.running import TorchExecutor, TorchModel

__all__ = ["TorchExecutor", "TorchModel", "torch_cluster"]
