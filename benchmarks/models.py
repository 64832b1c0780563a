"""The three networks of the HSDAG paper, with seeded random weights.

Inception-V3 (Szegedy et al., arXiv 1512.00567, the widths of its usual implementations) and
ResNet-50 (He et al., arXiv 1512.03385) are written here with OpenVINO's own operators, batch
normalisation folded into a bias as OpenVINO's converters do. BERT-base (Devlin et al., arXiv
1810.04805) comes from the ``transformers`` configuration.

Random weights change no shape, no op and no run time that depends on shapes only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from situs.importers import Imported, load_model

# 128 tokens are 22 GFLOP: more than the paper's CPU can do in the 6.38 ms that the paper reports.
BERT_TOKENS = 16
# Nodes and edges of the paper's own graphs, constants included (OpenVINO 2023.3).
PAPER_SIZES = {"inception-v3": (728, 764), "resnet-50": (396, 411), "bert-base": (1009, 1071)}


def _channels(x: Any) -> int:
    output = x if isinstance(x, ov.Output) else x.output(0)
    return int(output.get_shape()[1])


class _Builder:
    """Layers with random weights, named in order."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def _weights(self, *shape: int) -> Any:
        scale = np.float32(np.sqrt(2 / np.prod(shape[1:])))
        return op.constant(self._rng.standard_normal(shape, dtype=np.float32) * scale)

    def conv(
        self,
        x: Any,
        filters: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        same: bool = True,
        relu: bool = True,
    ) -> Any:
        """Convolution, bias, and ReLU."""
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        channels = _channels(x)
        pad = [(height - 1) // 2, (width - 1) // 2] if same else [0, 0]
        weights = self._weights(filters, channels, height, width)
        y = op.convolution(x, weights, [stride, stride], pad, pad, [1, 1])
        y = op.add(y, op.constant(np.zeros((1, filters, 1, 1), dtype=np.float32)))
        return op.relu(y) if relu else y

    def classifier(self, x: Any, classes: int = 1000) -> Any:
        """Global average pool, fully connected layer, soft-max."""
        width = _channels(x)
        y = op.reduce_mean(x, op.constant([2, 3]), False)
        y = op.matmul(y, self._weights(classes, width), False, True)
        y = op.add(y, op.constant(np.zeros((1, classes), dtype=np.float32)))
        return op.softmax(y, 1)


def _max_pool(x: Any, kernel: int, stride: int, pad: int = 0) -> Any:
    return op.max_pool(
        x, [stride] * 2, [1, 1], [pad] * 2, [pad] * 2, [kernel] * 2, "floor", "explicit"
    ).output(0)


def _avg_pool(x: Any) -> Any:
    return op.avg_pool(x, [1, 1], [1, 1], [1, 1], [3, 3], True)


def resnet50(seed: int = 0) -> ov.Model:
    """ResNet-50 on one image of 224 x 224."""
    build = _Builder(seed)
    image = op.parameter([1, 3, 224, 224], np.float32, name="image")
    x = build.conv(image, 64, 7, 2)
    x = _max_pool(x, 3, 2, 1)
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = x if block else build.conv(x, 4 * width, 1, stride, relu=False)
            y = build.conv(x, width)
            y = build.conv(y, width, 3, stride)
            y = build.conv(y, 4 * width, relu=False)
            x = op.relu(op.add(y, shortcut))
    return ov.Model([op.result(build.classifier(x))], [image], "resnet-50")


def inception_v3(seed: int = 0) -> ov.Model:
    """Inception-V3 on one image of 299 x 299, without the auxiliary classifier."""
    build = _Builder(seed)
    conv = build.conv
    image = op.parameter([1, 3, 299, 299], np.float32, name="image")
    x = conv(image, 32, 3, 2, same=False)
    x = conv(conv(x, 32, 3, same=False), 64, 3)
    x = _max_pool(x, 3, 2)
    x = conv(conv(x, 80), 192, 3, same=False)
    x = _max_pool(x, 3, 2)
    for pooled in (32, 64, 64):
        x = _concat(
            conv(x, 64),
            conv(conv(x, 48), 64, 5),
            conv(conv(conv(x, 64), 96, 3), 96, 3),
            conv(_avg_pool(x), pooled),
        )
    x = _concat(
        conv(x, 384, 3, 2, same=False),
        conv(conv(conv(x, 64), 96, 3), 96, 3, 2, same=False),
        _max_pool(x, 3, 2),
    )
    for width in (128, 160, 160, 192):
        long = conv(conv(conv(x, width), width, (7, 1)), width, (1, 7))
        x = _concat(
            conv(x, 192),
            conv(conv(conv(x, width), width, (1, 7)), 192, (7, 1)),
            conv(conv(long, width, (7, 1)), 192, (1, 7)),
            conv(_avg_pool(x), 192),
        )
    x = _concat(
        conv(conv(x, 192), 320, 3, 2, same=False),
        conv(conv(conv(conv(x, 192), 192, (1, 7)), 192, (7, 1)), 192, 3, 2, same=False),
        _max_pool(x, 3, 2),
    )
    for _ in range(2):
        one = conv(x, 384)
        two = conv(conv(x, 448), 384, 3)
        x = _concat(
            conv(x, 320),
            _concat(conv(one, 384, (1, 3)), conv(one, 384, (3, 1))),
            _concat(conv(two, 384, (1, 3)), conv(two, 384, (3, 1))),
            conv(_avg_pool(x), 192),
        )
    return ov.Model([op.result(build.classifier(x))], [image], "inception-v3")


def _concat(*parts: Any) -> Any:
    return op.concat(list(parts), 1)


def bert_base(seed: int = 0, tokens: int = BERT_TOKENS) -> ov.Model:
    """BERT-base on one sentence."""
    import torch
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = BertModel(BertConfig()).eval()
    example = {
        "input_ids": torch.zeros((1, tokens), dtype=torch.int64),
        "attention_mask": torch.ones((1, tokens), dtype=torch.int64),
        "token_type_ids": torch.zeros((1, tokens), dtype=torch.int64),
    }
    model = ov.convert_model(network, example_input=example)
    model.reshape({port: [1, tokens] for port in model.inputs})
    model.set_friendly_name("bert-base")
    return model


PAPER_MODELS: dict[str, Callable[[], ov.Model]] = {
    "inception-v3": inception_v3,
    "resnet-50": resnet50,
    "bert-base": bert_base,
}


def paper_model(name: str, folder: Path = Path("runs") / "models") -> Imported:
    """One of ``PAPER_MODELS`` by name, with its graph; built once, then read from ``folder``."""
    path = folder / f"{name}.xml"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as unfinished:
            written = Path(unfinished) / path.name
            ov.save_model(PAPER_MODELS[name](), written, compress_to_fp16=False)
            # The weights first: a description without them would be taken for a whole model.
            for suffix in (".bin", ".xml"):
                written.with_suffix(suffix).replace(path.with_suffix(suffix))
    return load_model(path)
