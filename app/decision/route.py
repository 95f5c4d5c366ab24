"""Where a request runs: on the node that needs a probe, else on the one that the gateway chose, else on the best."""

from typing import Protocol

from app.decision.request import DecideRequest
from app.telemetry.view import ModelView


class Probes(Protocol):
    """Which nodes need one request to show whether they live, although nothing else would be sent there."""

    def due(self, model: str) -> str | None:
        """Name of a node of the model that needs a probe now; nearly always None. Asked once a request, so it is a look-up."""

    def take(self, node: str, model: str) -> bool:
        """True for exactly one caller, who then sends the probe or gives it back."""

    def give_back(self, node: str, model: str) -> None:
        """The request that took the probe does not start, so another may."""


def take_due(probes: Probes, model: str) -> str | None:
    """The node that this request probes; None where none is due, or another request was faster."""
    node = probes.due(model)
    return node if node is not None and probes.take(node, model) else None


def node_for(request: DecideRequest, model: ModelView) -> str | None:
    """The node that the gateway named where it is live and no rule avoids it, else the best one.

    It is the view's own name, never the request's equal one: leases keep it, and all of a node share one text.
    """
    if request.node is not None and request.node in model.nodes:
        return model.nodes[model.nodes.index(request.node)]
    return model.best_node()
