"""A stand-in GPU: how much of its memory the engine holds, and the page of the DCGM exporter that would tell it."""

from dataclasses import dataclass

from app.simulator.exposition import family

RESERVED_MIB = 512
"""What driver and firmware keep for themselves; no engine gets it."""
DEFAULT_UUID = "GPU-00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Device:
    """One card with one engine on it. The defaults are those of a model of 8 billion parameters in two bytes each."""

    memory_mib: int
    preallocates: bool = True
    """Whether the engine takes its whole cache as it starts. Else it takes the memory of the blocks in use, and may run out of it."""
    weights_mib: int = 15_360
    kv_kib_per_token: float = 128.0
    """2 (keys and values) · 32 layers · 8 KV heads · 128 dimensions · 2 bytes."""
    uuid: str = DEFAULT_UUID

    def __post_init__(self) -> None:
        for name in ("memory_mib", "weights_mib", "kv_kib_per_token"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be greater than 0")
        if not self.holds(0):
            least_mib = self.weights_mib + RESERVED_MIB
            raise ValueError(f"memory_mib: expected {least_mib} or more, for the weights and the {RESERVED_MIB} MiB that the driver keeps")

    def engine_mib(self, tokens: int) -> float:
        """What an engine takes with memory for so many tokens of cache."""
        return self.weights_mib + tokens * self.kv_kib_per_token / 1024

    def holds(self, tokens: int) -> bool:
        """Whether the card has room for the weights and so many tokens of cache."""
        return self.engine_mib(tokens) <= self.memory_mib - RESERVED_MIB

    def render(self, used_mib: float) -> bytes:
        """The exporter's page, in whole MiB."""
        labels = {"gpu": "0", "UUID": self.uuid, "device": "nvidia0", "modelName": "Stand-in GPU", "Hostname": "stand-in"}
        used = int(used_mib)
        shown = {"USED": used, "FREE": self.memory_mib - RESERVED_MIB - used, "RESERVED": RESERVED_MIB}
        return "".join(family(f"DCGM_FI_DEV_FB_{name}", "gauge", labels, mib) for name, mib in shown.items()).encode()
