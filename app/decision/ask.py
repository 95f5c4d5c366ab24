"""From a request to the question that rules see: sections only, no token counts, no request ids, no milliseconds."""

from functools import lru_cache

from app.approvals.approvals import Known
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.decision.request import DecideRequest
from app.policy.policy import Generation
from app.policy.question import EMPTY, Question, Section
from app.quota.registry import Tenant

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Asker:
    """Builds questions, and keeps the sections that many requests share, so that each is encoded once."""

    def __init__(self, clock: Clock, approvals: Known) -> None:
        self._clock = clock
        self._approvals = approvals
        self._models: dict[str, tuple[ModelSpec, Section]] = {}
        self._times: dict[str, Section] = {}
        self._minute: tuple[int, int] = (-1, -1)

    def ask(self, request: DecideRequest, tenant: Tenant | None, spec: ModelSpec | None, generation: Generation) -> Question:
        """The question of one request; an unknown tenant or model is an empty section, which the rule `known` refuses."""
        return Question(
            tenant=tenant.section if tenant else EMPTY,
            model=self._model(spec) if spec else EMPTY,
            readings=generation.readings.get(spec.id, EMPTY) if spec else EMPTY,
            subject=self.subject(request),
            request=_request(request.action, request.priority, request.purpose, request.stream),
            time=self._time(tenant) if tenant else EMPTY,
        )

    def subject(self, request: DecideRequest) -> Section:
        """What is told of the subject, and of the approval that the request names, where it is one of the tenant's that we know."""
        subject = request.subject
        facts = {"roles": sorted(set(subject.roles)), "attributes": subject.attributes} if subject else {}
        if request.approval_id is not None:
            approval = self._approvals.facts(request.tenant, request.approval_id, subject.id if subject else None)
            if approval is not None:
                facts["approval"] = approval
        return Section.of(facts) if facts else EMPTY

    def _model(self, spec: ModelSpec) -> Section:
        kept = self._models.get(spec.id)
        if kept is None or kept[0] is not spec:
            kept = self._models[spec.id] = (spec, Section.of(spec.facts()))
        return kept[1]

    def _time(self, tenant: Tenant) -> Section:
        now = self._clock.utcnow()
        minute = (now.toordinal(), now.hour * 60 + now.minute)
        if minute != self._minute:
            self._minute = minute
            self._times.clear()
        section = self._times.get(tenant.quota.zone)
        if section is None:
            local = now.astimezone(tenant.zoneinfo)
            section = Section.of({"minute": local.minute, "hour": local.hour, "weekday": WEEKDAYS[local.weekday()]})
            self._times[tenant.quota.zone] = section
        return section


@lru_cache(maxsize=1024)
def _request(action: str, priority: str, purpose: str | None, stream: bool) -> Section:
    facts = {"action": action, "priority": priority, "stream": stream}
    if purpose is not None:
        facts["purpose"] = purpose
    return Section.of(facts)
