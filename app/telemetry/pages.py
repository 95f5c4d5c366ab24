"""Reads the pages of an engine by its table of names: over ranks, and over models that share a page.

What holds for every engine: KV is the largest over data-parallel ranks, counts add up over them; tensor, pipeline and expert
ranks are slices of the same scheduler and count once. A value that is NaN, infinite, negative or out of range is unknown, and
so is whatever it would be a part of.

When down: the reading is unknown (None), never 0; what an unknown signal means for a node is decided in build_view.py.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from app.estimators.counters import MOST, Total
from app.telemetry.exposition import MOST_SERIES, Exposition, Series
from app.telemetry.names import Mean, Names, Product, Shape, Value
from app.telemetry.snapshot import Reading
from app.telemetry.unknown import all_known

SLICE_LABELS = frozenset(["tp_rank", "pp_rank", "moe_ep_rank"])
"""Series that differ in these alone say the same thing several times: the largest counts."""

Rank = tuple[str, ...]
Ranks = Mapping[Rank, float | None]
"""A value for each rank; None where it is impossible."""
Part = tuple[Rank, frozenset[tuple[str, str]]]
"""What a series is of: its rank, and the labels beside it that split what the rank tells, such as a reason or a version."""
Combine = Callable[[float, float], float]
Told = dict[str, list[tuple[Series, Part, float]]]
"""Samples of one model by the name of their series."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Running totals behind a mean, by rank."""

    mean: Mean
    totals: Mapping[Rank, Total]


@dataclass(frozen=True, slots=True)
class PageReading:
    """What one page says about one model."""

    reading: Reading
    """What holds at the moment of the page: KV, counts and tokens."""
    iteration: Counted | None = None
    ttft: Counted | None = None
    progress: tuple[float | None, ...] = field(default=(), repr=False)
    """Every gauge and counter of the model that was read: equal on two pages when nothing moved between them."""


class Pages:
    """Reads page after page of one engine."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._exposition = Exposition(names.wanted)
        self._no_part = SLICE_LABELS | set(names.model_labels) | set(names.rank_labels)
        self._places: dict[Series, tuple[str, Part]] = {}

    def read(self, body: bytes, content_type: str) -> dict[str, PageReading]:
        """What the page says, by model as it names it; the name is empty where it names none. Raises PageBroken."""
        told = self.told(body, content_type)
        return {model: self.reading(told[model]) for model in sorted(told)}

    def told(self, body: bytes, content_type: str) -> dict[str, Told]:
        """The page's samples by model, for `reading`. Raises PageBroken.

        Those that name no model speak of the page's only one; beside several they are nobody's.
        """
        models: dict[str, Told] = {}
        for series, value in self._exposition.read(body, content_type).items():
            model, part = self._places.get(series) or self._place(series)
            models.setdefault(model, {}).setdefault(series.name, []).append((series, part, value))
        if len(models) > 1 and (unnamed := models.pop("", None)) and len(models) == 1:
            (only,) = models.values()
            for name, its_samples in unnamed.items():
                only.setdefault(name, its_samples)
        return models

    def reading(self, told: Told) -> PageReading:
        """What the samples of one model say."""
        names = self._names
        kv, waiting, running = _whole(
            self._ranks(told, names.kv, most=1.0, combine=max),
            self._ranks(told, names.waiting),
            self._ranks(told, names.running),
        )
        capacity = self._capacity(told, kv)
        free = {rank: _free(capacity.get(rank), ratio) for rank, ratio in kv.items()}
        return PageReading(
            Reading(
                kv_ratio=max(all_known(kv.values()), default=None),
                waiting=_count(waiting),
                running=_count(running),
                capacity_tokens=_count(capacity),
                rank_tokens=int(max(sizes)) if (sizes := all_known(capacity.values())) else None,
                free_tokens=_count(free),
            ),
            iteration=self._counted(told, names.iteration),
            ttft=self._counted(told, names.ttft),
            # NaN is not equal to itself, and so would look like movement.
            progress=tuple(None if math.isnan(value) else value for its_samples in told.values() for *_, value in its_samples),
        )

    def _place(self, series: Series) -> tuple[str, Part]:
        """The model and the part of it that a series speaks of: learnt once, as the exposition learns its lines."""
        if len(self._places) > MOST_SERIES:
            self._places.clear()
        labels = series.labels
        model = next((name for label in self._names.model_labels if (name := labels.get(label))), "")
        part = (self._rank(labels), frozenset(pair for pair in labels.items() if pair[0] not in self._no_part))
        self._places[series] = (model, part)
        return model, part

    def _ranks(self, told: Told, values: Iterable[Value], *, most: float = MOST, combine: Combine = operator.add) -> Ranks:
        """Each rank under the first of `values` that the page has: slices count once, other parts of a rank are combined."""
        for value in values:
            parts: dict[Part, float | None] = {}
            for series, part, number in told.get(value.name, ()):
                if not value.where or _is_where(series.labels, value.where):
                    other = parts.get(part, 0.0)
                    parts[part] = max(other, number) if other is not None and 0 <= number <= most else None
            if parts:
                return _combined(parts, combine)
        return {}

    def _rank(self, labels: Mapping[str, str]) -> Rank:
        return tuple([labels.get(label, "") for label in self._names.rank_labels])

    def _capacity(self, told: Told, kv: Ranks) -> Ranks:
        """Tokens that each rank's cache holds; a cache that names no rank is the shape of each rank's.

        None has a cache of 0 tokens: an engine that has not measured it yet says so.
        """
        for one in self._names.capacity:
            shapes = self._shapes(told, one) if isinstance(one, Shape) else self._product(told, one)
            if shapes:
                shared = shapes.get(self._rank({}))
                return {rank: shapes.get(rank, shared) or None for rank in kv or shapes}
        return {}

    def _shapes(self, told: Told, shape: Shape) -> Ranks:
        shapes: dict[Rank, float | None] = {}
        for series, (rank, _), _ in told.get(shape.name, ()):
            if all(label in series.labels for label in shape.labels):
                tokens = _product_of_labels(series.labels, shape.labels)
                shapes[rank] = tokens if shapes.get(rank, tokens) == tokens else None
        return shapes

    def _product(self, told: Told, product: Product) -> Ranks:
        first, *others = (self._ranks(told, (factor,)) for factor in product.factors)
        tokens = dict(first)
        for factor in others:
            for rank, before in tokens.items():
                by = factor.get(rank)
                tokens[rank] = None if before is None or by is None else before * by
        return tokens

    def _counted(self, told: Told, means: Iterable[Mean]) -> Counted | None:
        """The running totals under the first of `means` that the page has."""
        for mean in means:
            sums, counts = self._ranks(told, (mean.sum,)), self._ranks(told, (mean.count,))
            if sums and counts:
                totals = {
                    rank: Total(its_sum, its_count)
                    for rank, its_sum in sums.items()
                    if its_sum is not None and (its_count := counts.get(rank)) is not None
                }
                return Counted(mean, totals) if len(totals) == len(sums.keys() | counts.keys()) else None
        return None


def _is_where(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    return all(labels.get(label, "") == wanted for label, wanted in where.items())


def _combined(parts: Mapping[Part, float | None], combine: Combine) -> dict[Rank, float | None]:
    ranks: dict[Rank, float | None] = {}
    for (rank, _), value in parts.items():
        other = ranks.get(rank, 0.0)
        ranks[rank] = None if other is None or value is None else combine(other, value)
    return ranks


def _whole(*signals: Ranks) -> list[Ranks]:
    """The signals, without those that lack some of the ranks that another tells: a part of the page is missing."""
    return [{} if any(ranks.keys() < others.keys() for others in signals) else ranks for ranks in signals]


def _count(ranks: Ranks) -> int | None:
    known = all_known(ranks.values())
    return int(sum(known)) if known and all(value.is_integer() for value in known) else None


def _free(capacity: float | None, ratio: float | None) -> float | None:
    return None if capacity is None or ratio is None else float(math.floor(capacity * (1 - ratio)))


def _product_of_labels(labels: Mapping[str, str], factors: Iterable[str]) -> float | None:
    texts = [labels[label] for label in factors]
    if not all(text.isdecimal() and len(text) < 16 for text in texts):
        return None
    tokens = math.prod(map(int, texts))
    return float(tokens) if tokens <= MOST else None
