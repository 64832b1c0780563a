"""``situs inspect``: what a model consists of."""

from __future__ import annotations

from dataclasses import asdict

from situs import api
from situs.cli.output import Json, Model, Shape, parse_shapes, print_json, print_pairs
from situs.graph import stats


def inspect(model: Model, shape: Shape = None, json: Json = False) -> None:
    """Show a model's ops, tensors, depth, weights and FLOP, as Situs places it.

    Example: situs inspect model.onnx --shape 1,3,224,224
    """
    graph = api.load_graph(model, parse_shapes(shape))
    s = stats(graph)
    inputs = [graph.op_names[i] for i in range(graph.num_ops) if graph.is_input[i]]
    outputs = [graph.op_names[i] for i in range(graph.num_ops) if graph.is_output[i]]
    if json:
        record = asdict(s) | {"op_types": dict(s.op_types)}
        names = {"model": graph.name, "fingerprint": graph.fingerprint}
        print_json(names | {"input_names": inputs, "output_names": outputs} | record)
        return
    print_pairs(
        {
            "model": graph.name,
            "fingerprint": graph.fingerprint,
            "ops": f"{s.ops} in {s.units} units that are kept together",
            "edges": f"{s.edges} over {s.tensors} tensors",
            "inputs": ", ".join(inputs),
            "outputs": ", ".join(outputs),
            "depth": f"{s.depth} (widest level: {s.width} ops)",
            "weights": f"{s.constant_bytes / 2**20:.2f} MiB",
            "activations": f"{s.activation_bytes / 2**20:.2f} MiB in all",
            "work": f"{s.flop / 1e9:.3f} GFLOP per request (estimated)",
            "op types": ", ".join(f"{name} {count}" for name, count in s.op_types),
        }
    )
