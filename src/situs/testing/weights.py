"""Random weights for models whose own weights are constant or missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from situs.importers import load_model

if TYPE_CHECKING:
    import openvino as ov

_FILTERS = {
    "Convolution": 1,
    "GroupConvolution": 2,
    "ConvolutionBackpropData": 2,
    "GroupConvolutionBackpropData": 3,
}
"""First axis of an op's filter whose extents multiply to the inputs of one output element."""

_BRANCH_GAIN = 0.25  # Of a residual branch, so that 50 layers do not amplify what enters them.
_LOGIT_SPREAD = 2.0  # Standard deviation before the softmax: neither flat nor saturated.


def randomize_weights(model: ov.Model, seed: int = 0) -> ov.Model:
    """Return a folded copy whose outputs vary with the input.

    Filters and matrices become He-normal, per-channel scales uniform in 0.8..1.2, per-channel
    shifts normal with a standard deviation of 0.1; scalars and integer constants stay. One run in
    ``f32`` on a normal input then fixes the scale of the last weights (by a power of two), so that
    a network without normalisation is neither flat nor saturated at its end.

    Args:
        model: Any model with static inputs; it is left as it is.
        seed: Same seed, same weights.

    Raises:
        ModelError: If an input's shape is open.

    Source: He et al., "Delving deep into rectifiers", ICCV 2015, eq. 10; filters over more than
    one channel are centred as in Huang et al., "Centered weight normalization", ICCV 2017, eq. 3.
    """
    prepared = load_model(model).model
    rng = np.random.default_rng(seed)
    last: Any = None
    for node in prepared.get_ordered_ops():
        kind = node.get_type_name()
        for port, constant in _float_constants(node):
            values = _draw(kind, port, node, constant, rng)
            if values is not None:
                new = _replace(constant, values)
                if kind in _FILTERS or kind == "MatMul":
                    last = new
    if last is not None:
        _scale_end(prepared, last, rng)
    return prepared


def _float_constants(node: Any) -> list[tuple[int, Any]]:
    """Ports of ``node`` that real-valued constants of over one element feed, compressed or not."""
    found = []
    for port, value in enumerate(node.input_values()):
        source = value.get_node()
        if source.get_type_name() == "Convert":
            source = source.input_value(0).get_node()
        kind = source.get_type_name()
        if kind != "Constant" or math.prod(source.get_output_shape(0)) <= 1:
            continue
        if source.get_output_element_type(0).get_type_name() in ("f32", "f16"):
            found.append((port, source))
    return found


def _draw(
    kind: str, port: int, node: Any, constant: Any, rng: np.random.Generator
) -> np.ndarray | None:
    shape = tuple(constant.get_output_shape(0))
    if kind in _FILTERS:
        if port != 1:
            return None
        fan_in = math.prod(shape[_FILTERS[kind] :])
        if "Backprop" in kind:
            fan_in = shape[_FILTERS[kind] - 2] * math.prod(shape[_FILTERS[kind] :])
    elif kind == "MatMul":
        transposed = node.get_attributes()["transpose_b" if port else "transpose_a"]
        fan_in = shape[-2 if (port == 1) != bool(transposed) and len(shape) > 1 else -1]
    elif kind in ("Multiply", "Divide") or (kind == "BatchNormInference" and port in (1, 4)):
        scale = rng.uniform(0.8, 1.2, shape).astype(np.float32)
        return scale * np.float32(_BRANCH_GAIN) if _ends_branch(node) else scale
    elif kind in ("Add", "Subtract") or (kind == "BatchNormInference" and port in (2, 3)):
        return np.asarray(0.1 * rng.standard_normal(shape, dtype=np.float32))
    else:
        return None
    values = rng.standard_normal(shape, dtype=np.float32)
    gain = 2.0
    if kind in ("Convolution", "GroupConvolution") and fan_in > 8 and shape[_FILTERS[kind]] > 1:
        # Centred filters do not see the mean of what ReLU leaves, which is much the same for every
        # input and drowns the rest after some layers. The gain makes up for the variance lost.
        values -= values.mean(axis=tuple(range(_FILTERS[kind], len(shape))), keepdims=True)
        gain = 2.0 / (1.0 - 1.0 / math.pi)
    values *= np.float32(math.sqrt(gain / max(1, fan_in)))
    return values


def _ends_branch(node: Any) -> bool:
    """Whether ``node`` is the last scale of a residual branch: an Add of two activations reads it.

    Branches of full size make a deep residual network chaotic: it then multiplies the rounding of
    its first layers by hundreds, and no comparison of outputs could be tight.
    """
    while len(targets := list(node.output(0).get_target_inputs())) == 1:
        node = targets[0].get_node()
        if node.get_type_name() != "Add":
            return False
        if not any(v.get_node().get_type_name() == "Constant" for v in node.input_values()):
            return True
    return False


def _replace(constant: Any, values: np.ndarray) -> Any:
    import openvino as ov

    dtype = constant.data.dtype
    new = ov.op.Constant(values.astype(dtype, copy=False), shared_memory=False)
    new.set_friendly_name(constant.get_friendly_name())
    constant.output(0).replace(new.output(0))
    return new


def _scale_end(model: ov.Model, weights: Any, rng: np.random.Generator) -> None:
    import openvino as ov

    probe = model.clone()
    ends = [n for n in probe.get_ordered_ops() if n.get_type_name() in ("Softmax", "LogSoftmax")]
    end = ends[-1] if ends else probe.get_results()[0]
    tap = ov.Model([end.input_value(0)], probe.get_parameters(), "probe")
    compiled = ov.Core().compile_model(tap, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    values = compiled([random_input(port, rng) for port in tap.inputs])[0]
    spread = float(np.std(values))
    if not math.isfinite(spread) or spread <= 0:
        return  # Nothing to go by: no elements, or an end that these weights do not reach.
    # A power of two is the same on every machine, whatever the last bits of the run.
    factor = 2.0 ** round(math.log2(_LOGIT_SPREAD / spread))
    _replace(weights, weights.data * np.float32(factor))


def random_input(port: Any, rng: np.random.Generator) -> np.ndarray:
    """A random array for a model's static input: normal if it is real, else 0 or 1."""
    shape = tuple(port.get_shape())
    dtype = port.get_element_type().to_dtype()
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)
