"""Where a request runs: on the node that needs a probe, else on the one that the gateway chose, else on the emptiest."""

from collections.abc import Callable, Iterable
from typing import Protocol

from app.decision.request import DecideRequest
from app.limiter.in_flight import Held
from app.telemetry.view import Choice, ModelView


class Probes(Protocol):
    """Which nodes need one request to show whether they live, although nothing else would be sent there."""

    def due(self, model: str) -> str | None:
        """Name of a node of the model that needs a probe now; nearly always None. Asked once a request, so it is a look-up."""

    def take(self, node: str, model: str) -> bool:
        """True for exactly one caller, who then sends the probe or gives it back."""

    def give_back(self, node: str, model: str) -> None:
        """The request that took the probe does not start, so another may."""


def take_due(probes: Probes, request: DecideRequest, model: ModelView | None) -> str | None:
    """The node that this request probes; None where none is due, another was faster, or the gateway has named a live one."""
    node = probes.due(request.model)
    if node is None or (model is not None and request.node in model.nodes):
        return None
    return node if probes.take(node, request.model) else None


def node_for(request: DecideRequest, model: ModelView, tokens: int, held: Callable[[str], Held]) -> str | None:
    """The node that the gateway named where it is live and no rule avoids it, else the one that suits so many tokens best now.

    By now: a page is up to a poll old, so what was admitted to each node since counts, too, or all that comes within one
    snapshot would go to the same node. It is the view's own name, never the request's equal one: leases keep it, and all
    of a node share one text. `held` is what leases of ours hold on a node.
    """
    if request.node is not None and request.node in model.nodes:
        return model.nodes[model.nodes.index(request.node)]
    if len(model.choices) < 2:
        return next(iter(model.nodes), None)
    return _best(model.choices, tokens, held)


def _best(choices: Iterable[Choice], tokens: int, held: Callable[[str], Held]) -> str | None:
    """The node of the least load by now; `choices` are in the order of their pages.

    What came since only adds to what a page says: once one has room, whoever's page alone says more, and all after it, need no look.
    """
    node, least = None, None
    for choice in choices:
        if least is not None and least < (1,) and (0, *choice.page) > least:
            break
        now = held(choice.node)
        load = choice.load(now.requests, now.tokens, tokens)
        if least is None or load < least:
            node, least = choice.node, load
    return node
