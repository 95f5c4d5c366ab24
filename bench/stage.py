"""The stage of a run: which servers stand, started when a row first needs them and cleared away with what they wrote."""

import contextlib
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench import joined, questions, registry
from bench.load import Load
from bench.rules import SHIPPED, folder_of
from bench.servers import Server, Sluice, fastapi_route, opa_alone, stand_in

SHORT_LEASES = {"lease": {"ttl_ms": 2000}}
"""A load as fast as the service answers would fill the bound of lease records with leases that nobody settles."""
BLOCKS, SEQUENCES = 4_000_000, 1_000_000
"""Of each engine: so many that the leases of such a load find room for their tokens and places in the batch."""
CROWD = 100_000


class Stage:
    """Servers by what they are for. All loads are drawn from the same tenants and models."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        self.folder.chmod(0o711)  # the database's user must reach its data
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)

    @cached_property
    def engines(self) -> list[Server]:
        """One stand-in engine for each model."""
        return [self.keep(stand_in(model, self.folder / f"{model}.log", "--blocks", str(BLOCKS))) for model in questions.MODELS]

    @cached_property
    def sluice(self) -> Sluice:
        """Sluice with the rules that come with it, and the hot tenants."""
        return self._stack.enter_context(self.new_sluice("Sluice"))

    @cached_property
    def crowded(self) -> Sluice:
        """Sluice with CROWD tenants beside the hot ones: far more than the memo holds answers."""
        return self._stack.enter_context(self.new_sluice(f"Sluice with {CROWD} tenants", numbered=CROWD))

    @cached_property
    def opa(self) -> Server:
        """OPA alone with the same rules."""
        return self.keep(self.new_opa(SHIPPED))

    @cached_property
    def fastapi(self) -> Server:
        """The bare route."""
        return self.keep(fastapi_route(self.folder / "fastapi.log"))

    def keep(self, server: Server) -> Server:
        """End `server` with the stage."""
        return self._stack.enter_context(server)

    def new_sluice(
        self,
        name: str,
        *,
        hot: int = questions.HOT_TENANTS,
        rules: int | None = None,
        numbered: int = 0,
        settings: Mapping[str, Any] = SHORT_LEASES,
        engines: Sequence[Mapping[str, Any]] | None = None,
    ) -> Sluice:
        """Another Sluice with the hot tenants, `numbered` further ones, and `rules` rules (None: those that come with it).

        It polls `engines`, and the two of the stage where none are named.
        """
        folder = self.new_folder()
        polled = self.polled() if engines is None else engines
        count = rules or len(list((SHIPPED / "rules").iterdir()))
        policy = folder_of(count, folder / "rego")
        with contextlib.ExitStack() as on_failure:
            sluice = on_failure.enter_context(Sluice(name, folder / "var", policy=policy, engines=polled, settings=settings))
            for number, tenant in enumerate(questions.hot_tenants(hot)):
                sluice.call("PUT", f"/quotas/{tenant}", questions.quota(number))
            if numbered:
                registry.load_numbered(sluice, numbered)
            sluice.wait_until_idle()
            on_failure.pop_all()
        return sluice

    def new_opa(self, rules: Path) -> Server:
        """Another OPA alone, with the rules of a folder."""
        folder = self.new_folder()
        return opa_alone(joined.joined(rules, folder), folder / "opa.log")

    def polled(self) -> list[dict[str, Any]]:
        """The stand-in engines as settings name them."""
        pairs = zip(self.engines, questions.MODELS, strict=True)
        return [
            {"name": model, "url": f"http://127.0.0.1:{engine.port}", "models": [model], "max_num_seqs": SEQUENCES}
            for engine, model in pairs
        ]

    def new_folder(self) -> Path:
        """An empty folder that goes with the stage."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir(mode=0o711)
        return folder


def decide(sluice: Sluice, tenants: list[str], **how: Any) -> Load:
    """Decisions for `tenants`, drawn by Zipf's law."""
    drawn, weights = questions.pairs(tenants)
    bodies = tuple(questions.request(tenant, model) for tenant, model in drawn)
    return Load(sluice.port, "/decide", bodies, weights, sluice.credential(), **how)


def ask_opa(opa: Server, tenants: list[str], **how: Any) -> Load:
    """The same questions for OPA alone."""
    drawn, weights = questions.pairs(tenants)
    return Load(opa.port, joined.PATH, tuple(questions.question(tenant, model) for tenant, model in drawn), weights, **how)


def call_route(route: Server, tenants: list[str], **how: Any) -> Load:
    """The same requests for the bare route."""
    drawn, weights = questions.pairs(tenants)
    return Load(route.port, "/decide", tuple(questions.request(tenant, model) for tenant, model in drawn), weights, **how)
