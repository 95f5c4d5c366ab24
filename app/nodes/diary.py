"""What happened to nodes, in the log: one line when a node gets no more requests although its page is fresh, one when it does again."""

import structlog

from app.telemetry.view import NodeModel, View

log = structlog.get_logger()


class Diary:
    """Remembers who was shut out and why."""

    def __init__(self) -> None:
        self._shut_out: dict[NodeModel, str] = {}

    def see(self, view: View) -> None:
        """Say what has changed since the last view."""
        now = {(state.node, state.model): state for state in view.nodes if state.shut_out}
        for key, state in now.items():
            if self._shut_out.get(key) != state.shut_out:
                rules = [one["rule"] for one in state.standing.avoided_by] if state.shut_out == "avoided" else None
                log.warning("node.shut_out", node=key[0], model=key[1], why=state.shut_out, **({"rules": rules} if rules else {}))
        live = {(state.node, state.model) for state in view.nodes if not state.why}
        for node, model in (self._shut_out.keys() - now.keys()) & live:
            log.info("node.open", node=node, model=model)
        self._shut_out = {key: state.shut_out for key, state in now.items()}
