"""The machine that a device map is for: catalogue figures under the devices' own names.

What accelerate does with a module depends on the map: with a GPU in it, modules on ``cpu`` and
``disk`` run on one GPU, the *main device*, and their weights are copied there for every call;
without one, ``cpu`` runs its modules itself. Each case is a cluster of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from situs.errors import ParameterError
from situs.hardware import Cluster, Device, Link, catalogue
from situs.torch.memory import CPU, DISK, OFFLOAD

# No machine of the catalogue describes its disk. Simulated: one NVMe drive, PCI Express 4.0 x4.
DISK_BYTES_PER_S = 5e9
DISK_LATENCY_S = 1e-4


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices that one case of a map may use.

    Attributes:
        cluster: Its devices, named as in the map, and links for activations.
        limits: Bytes per device.
        main: The device that runs offloaded modules, or None where nothing is offloaded.
        streamed: Seconds per byte and per call to bring weights to ``main``, by device; a device
            that is not in it runs its own modules.
    """

    cluster: Cluster
    limits: tuple[float, ...]
    main: str | None
    streamed: dict[str, tuple[float, float]]


def machines(limits: dict[str, int], described: Cluster | str) -> list[Machine]:
    """The cases that ``limits`` allow: accelerators alone, with offload, and the host alone."""
    source = catalogue(described) if isinstance(described, str) else described
    accelerators = [name for name in limits if name not in OFFLOAD]
    offload = [name for name in (CPU, DISK) if name in limits]
    found = []
    if accelerators:
        found.append(_machine(limits, source, accelerators, None, []))
        if offload:
            found += [
                _machine(limits, source, accelerators, main, offload)
                for main in _distinct(accelerators, limits, source)
            ]
    if CPU in limits:
        disk = [name for name in offload if name == DISK]
        found.append(_machine(limits, source, [CPU], CPU if disk else None, disk))
    if not found:
        raise ParameterError("max_memory: disk alone runs nothing; add a device such as cpu=16GiB")
    return found


def described(limits: dict[str, int], source: Cluster | str) -> Cluster:
    """The devices of ``limits`` with the figures of a described machine, none of them streamed."""
    cluster = catalogue(source) if isinstance(source, str) else source
    return _machine(limits, cluster, list(limits), None, []).cluster


def _distinct(names: list[str], limits: dict[str, int], source: Cluster) -> list[str]:
    """One device of each kind that could be the main device."""
    kinds = {(limits[n], replace(_figures(n, source), name="x")): n for n in reversed(names)}
    return list(kinds.values())


def _machine(
    limits: dict[str, int],
    source: Cluster,
    running: list[str],
    main: str | None,
    offload: list[str],
) -> Machine:
    names = [*running, *offload]
    devices = [_figures(name, source) for name in running]
    streamed: dict[str, tuple[float, float]] = {}
    for name in offload:
        assert main is not None
        devices.append(replace(_figures(main, source), name=name, boundary_s=0.0))
        latency_s = per_byte = 0.0
        if main != CPU:
            way = _between(CPU, main, source)
            latency_s, per_byte = way.latency_s, 1.0 / way.bytes_per_s
        if name == DISK:
            latency_s, per_byte = latency_s + DISK_LATENCY_S, per_byte + 1.0 / DISK_BYTES_PER_S
        streamed[name] = latency_s, per_byte
    links = []
    for a in names:
        for b in names:
            if a == b:
                continue
            # Activations of offloaded modules are on the main device.
            x, y = (main if n in offload and main is not None else n for n in (a, b))
            alike = Link(a, b) if x == y else _between(x, y, source)
            links.append(replace(alike, source=a, target=b))
    return Machine(
        Cluster(tuple(devices), tuple(links), f"{source.name} (simulated)"),
        tuple(float(limits[name]) for name in names),
        main if offload else None,
        streamed,
    )


def _figures(name: str, source: Cluster) -> Device:
    """The described device of that name, or of its kind."""
    wanted = "cpu" if name.partition(":")[0] == CPU else "gpu"
    same = [d for d in source.devices if d.name.lower() == name.lower()]
    kind = [d for d in source.devices if d.kind == wanted]
    if not same and not kind:
        raise ParameterError(
            f"machine {source.name!r} describes no {wanted} to model {name} with; "
            "choose another with machine="
        )
    return replace((same or kind)[0], name=name)


def _between(a: str, b: str, source: Cluster) -> Link:
    """The described link, or that of the first pair of the same kinds."""
    kinds = tuple(_figures(name, source).kind for name in (a, b))
    by_name = {d.name: d for d in source.devices}
    described = [k for k in source.links if (k.source.lower(), k.target.lower()) == (a, b)]
    alike = [k for k in source.links if (by_name[k.source].kind, by_name[k.target].kind) == kinds]
    if described or alike:
        return (described or alike)[0]
    if kinds == ("cpu", "cpu"):  # A copy within host memory: read and written.
        return Link(a, b, 0.0, _figures(a, source).memory_bytes_per_s / 2)
    if "cpu" not in kinds:  # No direct link is described: through host memory.
        first, second = _between(a, CPU, source), _between(CPU, b, source)
        rate = 1.0 / (1.0 / first.bytes_per_s + 1.0 / second.bytes_per_s)
        return Link(a, b, first.latency_s + second.latency_s, rate)
    raise ParameterError(
        f"machine {source.name!r} describes no link between {a} and {b}; "
        "choose another with machine="
    )
