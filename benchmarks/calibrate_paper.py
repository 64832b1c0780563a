"""Fit the paper's machine to the paper's table: six latencies, one share of the roofline per type.

The catalogue's ``i9-flex170`` gives peaks, bandwidths, links and overheads from public sources.
What is fitted is how much of the roofline (Williams et al. 2009) the ops of a type reach on a
device: ``Convolution``, ``MatMul`` and all others; on the CPU ``Add`` too, without which no share
in range makes ResNet-50 slower than Inception-V3, which has more FLOP. A weak prior pulls every
share to one half, and the residuals say what is left. Prints them, and writes the catalogue's file.

    python benchmarks/calibrate_paper.py [--write]

Source of the latencies: Duan et al., arXiv 2405.14185, CPU-only and GPU-only. Not known from the
paper: BERT's number of tokens (``models.BERT_TOKENS``) and the batch size (1 here).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from models import paper_model
from situs.costs import roofline
from situs.graph import Graph
from situs.hardware import Cluster, Device, catalogue, cluster_to_toml

NAME = "paper-i9-flex170"
PAPER_S = {
    "CPU": {"inception-v3": 12.8e-3, "resnet-50": 16.0e-3, "bert-base": 6.38e-3},
    "GPU.1": {"inception-v3": 12.0e-3, "resnet-50": 7.81e-3, "bert-base": 2.68e-3},
}
TYPES = {"CPU": ("Add", "Convolution", "MatMul", "*"), "GPU.1": ("Convolution", "MatMul", "*")}
_PRIOR_SHARE = 0.5
# One unit of log share weighs as much as a residual of 1 %.
_PRIOR_WEIGHT = 0.01
_LEAST, _MOST = 0.02, 0.95


def _seconds(graph: Graph, device: Device) -> float:
    """Simulated latency of the whole graph on one device, s."""
    return float(roofline(graph, Cluster((device,))).seconds.sum())


def _with_shares(device: Device, shares: np.ndarray) -> Device:
    pairs = zip(TYPES[device.name], (float(f"{share:.3g}") for share in shares), strict=True)
    return replace(device, efficiency=1.0, type_efficiency=tuple(sorted(pairs)))


def fit(device: Device, graphs: dict[str, Graph]) -> Device:
    """The device with the shares that fit the paper's latencies best."""
    paper, types = PAPER_S[device.name], TYPES[device.name]

    def residuals(log_share: np.ndarray) -> np.ndarray:
        shares = np.exp(log_share)
        fitted = replace(device, type_efficiency=tuple(zip(types, map(float, shares), strict=True)))
        errors = [_seconds(graphs[name], fitted) / paper[name] - 1 for name in paper]
        return np.concatenate([errors, _PRIOR_WEIGHT * (log_share - np.log(_PRIOR_SHARE))])

    start = np.full(len(types), np.log(_PRIOR_SHARE))
    found = least_squares(residuals, start, bounds=(np.log(_LEAST), np.log(_MOST)))
    return _with_shares(device, np.exp(found.x))


def calibrated(graphs: dict[str, Graph]) -> Cluster:
    """The paper's two devices, fitted, with the catalogue's link between them."""
    described = catalogue("i9-flex170")
    devices = []
    for name in PAPER_S:
        device = fit(described.devices[described.index(name)], graphs)
        public = device.source.split("; efficiency")[0]
        devices.append(
            replace(
                device,
                source=f"{public}; type_efficiency fitted by benchmarks/calibrate_paper.py to the "
                "latencies of Duan et al., arXiv 2405.14185; overheads are assumptions",
            )
        )
    links = tuple(k for k in described.links if {k.source, k.target} == set(PAPER_S))
    return Cluster(tuple(devices), links, NAME)


def main() -> None:
    """Fit, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the catalogue's file")
    arguments = parser.parse_args()
    graphs = {name: paper_model(name).graph for name in PAPER_S["CPU"]}
    cluster = calibrated(graphs)
    rows = []
    print(f"{'device':8}{'network':15}{'paper, ms':>10}{'simulated, ms':>15}{'residual':>10}")
    for device in cluster.devices:
        for name, paper_s in PAPER_S[device.name].items():
            seconds = _seconds(graphs[name], device)
            residual = seconds / paper_s - 1
            print(
                f"{device.name:8}{name:15}{paper_s * 1e3:10.2f}{seconds * 1e3:15.2f}"
                f"{residual:+10.1%}"
            )
            rows.append(
                {
                    "device": device.name,
                    "network": name,
                    "paper_s": paper_s,
                    "simulated_s": seconds,
                    "residual": residual,
                }
            )
    text = cluster_to_toml(cluster)
    print(f"\n{text}")
    Path("benchmarks/results/calibrate_paper.json").write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.write:
        Path(f"src/situs/hardware/catalogue/{NAME}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
