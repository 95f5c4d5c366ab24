"""The follower: ages grow with the clock, silence makes nodes stale, and models may change underneath."""

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.telemetry.follow import Follower
from app.telemetry.snapshot import Loads, Node, Reading, Snapshot
from tests.unit.telemetry.pages import SPEC


class Setting:
    def __init__(self, models=None):
        self.clock = ManualClock()
        self.models = {"m": SPEC} if models is None else models
        self.views = []
        self.metrics = Metrics()
        self.follower = Follower([self.views.append], self.clock, self.metrics, lambda: self.models, stale_ms=1000)

    def receive(self, generation=1, *, age_ms=0.0, kv=0.5, loads=None):
        self.follower.receive(
            Snapshot(
                generation, (Node("a", ("m",), readings={"m": Reading(kv_ratio=kv, waiting=1)}, age_ms=age_ms),), loads=loads or Loads()
            )
        )

    def counted(self):
        read = self.metrics.registry.get_sample_value
        return [read("sluice_config_loads_total", {"file": "engines", "result": result}) for result in ("ok", "refused")]

    @property
    def live(self):
        return self.views[-1].models["m"].readings["live"]


def test_an_answer_is_published_at_once():
    """A snapshot becomes a view when it arrives, taken at the reader's own time."""
    one = Setting()
    one.clock.advance(40)
    one.receive()

    assert (one.live, one.views[-1].taken_ms, one.follower.generation) == (1, 40.0, 1)


def test_silence_makes_nodes_stale_after_a_second():
    """Nothing is heard any more: at 1 s after the page the node is gone, not before."""
    one = Setting()
    one.receive(age_ms=100.0)
    published = len(one.views)

    one.clock.advance(899)
    one.follower.tick()
    assert len(one.views) == published
    one.clock.advance(1)
    one.follower.tick()

    assert one.live == 0
    assert one.views[-1].generation == 2


def test_a_stale_view_is_published_once():
    """After the last node is gone time changes nothing more."""
    one = Setting()
    one.receive()
    one.clock.advance(1000)
    one.follower.tick()
    published = len(one.views)
    one.clock.advance(60_000)
    one.follower.tick()

    assert len(one.views) == published


def test_one_fresh_page_brings_a_node_back():
    """A node that was stale is live again with the first fresh page."""
    one = Setting()
    one.receive()
    one.clock.advance(1200)
    one.follower.tick()
    one.receive(2)

    assert one.live == 1


def test_generations_grow_though_the_process_restarted():
    """The telemetry process counts anew after a restart; the views' own generation never steps back."""
    one = Setting()
    one.receive(900, kv=0.1)
    one.receive(1, kv=0.2)
    one.receive(2, kv=0.3)

    assert [view.generation for view in one.views] == [1, 2, 3]
    assert one.follower.generation == 2


def test_changed_models_are_published_without_an_answer():
    """A model that models.yaml gained is in the view with the next tick."""
    one = Setting()
    one.receive()
    one.models = {"m": SPEC, "n": SPEC.model_copy(update={"id": "n"})}
    one.follower.tick()

    assert one.views[-1].models["n"].readings == {"live": 0, "known": 0, "frozen": 0, "avoided": 0}


def test_before_the_first_answer_nothing_is_live():
    """A follower that never heard anything says that no node is live or known."""
    one = Setting()
    one.follower.tick()

    assert one.views[-1].models["m"].readings == {"live": 0, "known": 0, "frozen": 0, "avoided": 0}


def test_what_became_of_the_engines_file_is_told_and_counted():
    """Loads are counted as the process counts them, from its first answer on, a restart of it included; views tell the problem."""
    one = Setting()
    one.receive(loads=Loads(ok=7, refused=2))
    assert one.counted() == [0, 0]

    one.receive(2, loads=Loads(ok=7, refused=4, problem="kind"))
    assert (one.counted(), one.views[-1].loads.problem) == ([0, 2], "kind")
    one.receive(3, loads=Loads(ok=8, refused=4))
    one.receive(4, loads=Loads(ok=8, refused=4))
    assert (one.counted(), one.views[-1].loads.problem) == ([1, 2], None)
    one.receive(1, loads=Loads(ok=1, refused=1, problem="kind"))
    assert one.counted() == [2, 3]


def test_a_refused_file_is_no_news_to_decisions():
    """Only what the engines say makes a new generation, which is what questions are asked anew for."""
    one = Setting()
    one.receive()
    one.receive(2, loads=Loads(refused=1, problem="kind"))

    assert [view.generation for view in one.views] == [1, 1]
