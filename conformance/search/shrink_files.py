"""Shrinking of files: the smallest recipe that still shows a divergence, in bytes, in edits and in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from conformance.cases.build import build
from conformance.errors import ConfigurationError
from conformance.search.file_coupled import extent, followed, is_coupled
from conformance.search.file_documents import Recipe
from conformance.search.file_measure import Measure, measured, too_large
from conformance.search.file_simpler import (
    absorbed,
    between,
    edges_below,
    number_at,
    number_places,
    plainer,
    shorter_texts,
    with_number,
)
from conformance.search.file_smaller import afresh, fewer_parts, less_edited, shorter
from conformance.search.file_spots import Place, plain_recipe


class Candidate(NamedTuple):
    """A recipe, the file that it builds, and how large both are."""

    recipe: Recipe
    data: bytes
    measure: Measure

    @classmethod
    def of(cls, recipe: Recipe) -> Candidate:
        """Build and measure. Raises ConfigurationError where it does not build."""
        data = build(recipe).data
        return cls(recipe, data, measured(recipe, len(data)))


Shows = Callable[[Sequence[Candidate]], Sequence[bool]]

# Candidates of one exchange, and exchanges in all: an ordinary file takes some twenty.
CANDIDATES = 200
ROUNDS = 500


def shrink(recipe: Mapping[str, Any], shows: Shows, *, rounds: int = ROUNDS, candidates: int = CANDIDATES) -> Recipe:
    """Give the smallest recipe found that ``shows`` what ``recipe`` shows; itself, in plain mappings, if none is smaller.

    ``shows`` is given up to ``candidates`` at a time (few, where each takes long), and tells for each whether it still shows
    it. What is smaller has fewer bytes; of as many bytes, fewer patches; of as many of those, fewer parts, smaller numbers and
    plainer texts. It ends where nothing that is left out or made simpler still shows it, or after ``rounds`` exchanges. The same
    answers give the same result. Raises ConfigurationError where ``recipe`` does not build.
    """
    shrinker = _Shrinker(Candidate.of(plain_recipe(recipe)), shows, rounds, candidates)
    while shrinker.passed():
        pass
    return shrinker.best.recipe


def _less(recipe: Recipe, _size: int) -> Iterator[Recipe]:
    return chain(less_edited(recipe), afresh(recipe), fewer_parts(recipe), absorbed(recipe))


def _plainer(recipe: Recipe, _size: int) -> Iterator[Recipe]:
    return chain(plainer(recipe), shorter_texts(recipe))


_STAGES: tuple[Callable[[Recipe, int], Iterator[Recipe]], ...] = (_less, shorter, _plainer)


class _Shrinker:
    """The smallest recipe so far, and what was tried: nothing is put to ``shows`` twice."""

    def __init__(self, whole: Candidate, shows: Shows, rounds: int, size: int) -> None:
        self.best = whole
        self.shows = shows
        self.rounds = rounds
        self.size = size
        self.tried: set[bytes] = set()

    def passed(self) -> bool:
        """Go through all stages, each until nothing in it helps; tell whether anything did."""
        before = self.best.measure
        for stage in _STAGES:
            while self.rounds > 0 and self._improved(stage(self.best.recipe, self.best.measure.nbytes)):
                pass
        for place in number_places(self.best.recipe):
            self._lessen(place)
        return self.rounds > 0 and self.best.measure < before

    def _lessen(self, place: Place) -> None:
        """Make one number smaller: to an edge, then, between this and the edge below that does not show it, by bisection."""
        self._improved(self._with_numbers(place, edges_below(number_at(self.best.recipe, place))))
        number = number_at(self.best.recipe, place)
        low = max(edges_below(number), default=number)
        while self.rounds > 0 and (points := between(low, number)):
            self._improved(self._with_numbers(place, points))
            number = number_at(self.best.recipe, place)
            low = max((point for point in points if point < number), default=low)

    def _with_numbers(self, place: Place, numbers: Sequence[int]) -> Iterator[Recipe]:
        best = self.best.recipe
        return (recipe for number in numbers for recipe in with_number(best, place, number))

    def _improved(self, recipes: Iterator[Recipe]) -> bool:
        """Put recipes to ``shows``; take the smallest of the first batch in which one shows it."""
        candidates = self._smaller(recipes)
        while self.rounds > 0 and (batch := list(islice(candidates, self.size))):
            self.rounds -= 1
            showing = [each for each, shown in zip(batch, self.shows(batch), strict=True) if shown]
            if showing:
                self.best = min(showing, key=lambda each: each.measure)
                return True
        return False

    def _smaller(self, candidates: Iterator[Recipe]) -> Iterator[Candidate]:
        """Give those that were not tried yet, build, and are smaller; where a cut or a length has to follow, also as it does."""
        best = self.best.recipe
        sizes = extent(best, self.best.measure.nbytes) if is_coupled(best) else None
        for candidate in candidates:
            yield from self._new(candidate)
            if sizes and is_coupled(candidate) and not too_large(candidate):
                with suppress(ConfigurationError):
                    for recipe in followed(candidate, best, sizes):
                        yield from self._new(recipe)

    def _new(self, recipe: Recipe) -> Iterator[Candidate]:
        key = msgspec.json.encode(recipe)
        if key not in self.tried:
            self.tried.add(key)
            with suppress(ConfigurationError):  # what is patched may be gone, or the file be shorter than where it is cut
                if not too_large(recipe) and (candidate := Candidate.of(recipe)).measure < self.best.measure:
                    yield candidate
