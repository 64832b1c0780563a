"""Devices, links and clusters. Nothing here probes the machine."""

from situs.hardware.catalogue import catalogue, catalogue_names
from situs.hardware.cluster import Cluster, cluster_from_toml, cluster_to_toml, load_cluster
from situs.hardware.device import Device, Link

__all__ = [
    "Cluster",
    "Device",
    "Link",
    "catalogue",
    "catalogue_names",
    "cluster_from_toml",
    "cluster_to_toml",
    "load_cluster",
]
