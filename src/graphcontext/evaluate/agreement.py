"""How far human raters agree beyond chance: Cohen's and Fleiss' kappa."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphcontext.errors import InputError, did_you_mean

WEIGHTS = ("none", "linear", "quadratic")


@dataclass(frozen=True)
class Agreement:
    """The agreement of all raters of one task.

    Args:
        n_raters: who rated anything.
        n_items: items that every rater rated; only these count for ``kappa``.
        name: ``Cohen's kappa`` for two raters, ``Fleiss' kappa`` for more.
        kappa: unweighted, None where it is not defined (fewer than two raters, no shared item, one label alone).
        weighted: quadratic weights, for ordered labels: mean over the pairs of raters, each over the items that
            both rated; None for labels without an order or where no pair has one.
        equal: share of the shared items on which all raters say the same.
    """

    n_raters: int
    n_items: int
    name: str
    kappa: float | None = None
    weighted: float | None = None
    equal: float | None = None


def cohen_kappa(a: Sequence[str], b: Sequence[str], labels: Sequence[str], weights: str = "none") -> float | None:
    r"""Return the agreement of two raters beyond chance (Cohen 1960; weighted: Cohen 1968), at most 1.

    .. math:: \kappa = 1 - \frac{\sum_{ij} w_{ij} o_{ij}}{\sum_{ij} w_{ij} e_{ij}}

    with the shares o of label pairs, those expected from the raters' own label shares e, and weights w of a
    disagreement: 1, \|i − j\| or (i − j)².

    Args:
        a, b: labels of the same items by each rater.
        labels: all that are allowed, in their order.
        weights: ``none``, ``linear`` or ``quadratic``.

    Returns:
        None where nothing is to be expected by chance: no item, or both raters use one and the same label.

    Raises:
        InputError: unequal lengths, a label that is not allowed, an unknown weight.
    """
    if weights not in WEIGHTS:
        raise InputError(f"weights {weights!r} is unknown{did_you_mean(weights, WEIGHTS)}")
    if len(a) != len(b):
        raise InputError(f"two raters need the same items: got {len(a)} and {len(b)}")
    observed = np.zeros((len(labels), len(labels)))
    for left, right in zip(_places(a, labels), _places(b, labels), strict=True):
        observed[left, right] += 1
    if not len(a):
        return None
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / len(a)
    i, j = np.indices(observed.shape)
    weight = {"none": (i != j) * 1.0, "linear": abs(i - j) * 1.0, "quadratic": (i - j) ** 2.0}[weights]
    chance = (weight * expected).sum()
    return None if chance == 0 else float(1 - (weight * observed).sum() / chance)


def fleiss_kappa(counts: np.ndarray) -> float | None:
    r"""Return the agreement of n ≥ 2 raters beyond chance (Fleiss 1971), at most 1.

    .. math:: \kappa = \frac{\bar P - \bar P_e}{1 - \bar P_e}, \quad
              P_i = \frac{\sum_j n_{ij}^2 - n}{n (n - 1)}, \quad \bar P_e = \sum_j p_j^2

    Args:
        counts: how many raters gave item i label j, shape (n_items, n_labels); every item has n ratings.

    Returns:
        None without items, or where all ratings are one label.

    Raises:
        InputError: the items differ in their number of ratings, or have fewer than two.
    """
    table = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    if table.size == 0:
        return None
    per_item = table.sum(axis=1)
    n = per_item[0]
    if n < 2 or (per_item != n).any():
        raise InputError(f"Fleiss' kappa needs one number of ratings, at least 2, for all items; got {set(per_item)}")
    observed = (((table**2).sum(axis=1) - n) / (n * (n - 1))).mean()
    chance = ((table.sum(axis=0) / table.sum()) ** 2).sum()
    return None if np.isclose(chance, 1.0) else float((observed - chance) / (1 - chance))


def agreement(judgements: Mapping[str, Mapping[str, str]], labels: Sequence[str], ordered: bool) -> Agreement:
    """Return the agreement of the raters of one task.

    Args:
        judgements: rater → item → label.
        labels: all that are allowed, in their order.
        ordered: the labels are levels (1–5), so that a near miss is a smaller disagreement.
    """
    raters = {name: given for name, given in sorted(judgements.items()) if given}
    shared = sorted(set.intersection(*(set(given) for given in raters.values()))) if raters else []
    name = "Cohen's kappa" if len(raters) == 2 else "Fleiss' kappa"
    if len(raters) < 2 or not shared:
        return Agreement(len(raters), len(shared) if len(raters) > 1 else 0, name)
    columns = [[given[item] for item in shared] for given in raters.values()]
    if len(raters) == 2:
        kappa = cohen_kappa(*columns, labels)
    else:
        places = np.array([_places(column, labels) for column in columns])  # (n_raters, n_items)
        kappa = fleiss_kappa(np.stack([(places == j).sum(axis=0) for j in range(len(labels))], axis=1))
    equal = sum(len(set(said)) == 1 for said in zip(*columns, strict=True)) / len(shared)
    return Agreement(len(raters), len(shared), name, kappa, _weighted(raters, labels) if ordered else None, equal)


def _weighted(raters: Mapping[str, Mapping[str, str]], labels: Sequence[str]) -> float | None:
    found = []
    for a, b in itertools.combinations(raters.values(), 2):
        both = sorted(set(a) & set(b))
        kappa = cohen_kappa([a[i] for i in both], [b[i] for i in both], labels, "quadratic")
        if kappa is not None:
            found.append(kappa)
    return float(np.mean(found)) if found else None


def _places(given: Sequence[str], labels: Sequence[str]) -> list[int]:
    place = {label: index for index, label in enumerate(labels)}
    for label in given:
        if label not in place:
            raise InputError(f"label {label!r} is unknown{did_you_mean(str(label), labels)}")
    return [place[label] for label in given]
