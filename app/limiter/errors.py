"""What the limiter raises beside its answers: contradictions between calls, and its own bounds."""

from app.errors import Conflict, SluiceError


class RequestIdReused(Conflict):
    """The same request id came with another body, so the recorded decision does not answer it; nothing was charged."""

    code = "request_id_reused"
    hint = "Use a new request_id for each request; repeat one only to send the very same body again."


class RequestInFlight(Conflict):
    """The same request id is being decided at this moment; nothing was charged a second time."""

    code = "request_in_flight"
    hint = "Send the same body again in a moment: it is then answered from the record."


class LeaseEnded(Conflict):
    """The lease has ended in a way that this call contradicts: a renewal after the end, a cancel after a settle or the reverse."""

    code = "lease_ended"
    hint = "Ask /decide again for new work; settle once, or cancel what never ran."


class LeaseRecordsFull(SluiceError):
    """Lease records have reached their bound and all of them are in flight, so nothing more is admitted for now."""

    code = "lease_records_full"
    status = 503
    exit_code = 6
    hint = "Settle leases when requests end, or raise lease.records_mib."


class Draining(SluiceError):
    """The process is shutting down: leases can still be ended here, but nothing new is admitted."""

    code = "draining"
    status = 503
    exit_code = 6
    hint = "Send the request to another replica, or again when this one is back."
