"""The sampling rules against a float64 reference in numpy, and their boundary cases (R1-R5, R8, R9 of the engine)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.engine.draw import Draw, draw, gumbel_max
from maskwright.engine.penalties import add_bias
from maskwright.engine.rng import Stream, derive, fresh_seed
from maskwright.engine.sampling import BiasError, DeadConstraintError, NonFiniteLogitsError, Sampling
from maskwright.engine.truncation import keep_min_p, keep_top_k, keep_top_p, log_mass, truncate


def bitmask(allowed: list[list[int]], size: int) -> torch.Tensor:
    rows = np.zeros((len(allowed), (size + 31) // 32), dtype=np.uint32)
    for row, ids in enumerate(allowed):
        for i in ids:
            rows[row, i // 32] |= np.uint32(1 << (i % 32))
    return torch.from_numpy(rows.view(np.int32))


def reference(logits: np.ndarray, sampling: Sampling, allowed: list[int]) -> np.ndarray:
    """The distribution that a draw must follow: one row, float64, written for reading."""
    x = np.full(len(logits), -np.inf)
    x[allowed] = logits.astype(np.float64)[allowed]
    for token, bias in sampling.logit_bias.items():
        x[token] += bias
    x = x / sampling.temperature
    by_rank = sorted(range(len(x)), key=lambda i: (-x[i], i))
    kept = [i for i in by_rank if x[i] > -np.inf]
    if sampling.top_k:
        kept = kept[: sampling.top_k]
    p = np.exp(x - x.max())
    mass, nucleus = 0.0, []
    for i in kept:
        if mass >= sampling.top_p * p[kept].sum() and sampling.top_p < 1:
            break
        nucleus.append(i)
        mass += p[i]
    kept = [i for i in nucleus if p[i] >= sampling.min_p * p[nucleus[0]]]
    out = np.zeros(len(x))
    out[kept] = p[kept] / p[kept].sum()
    return out


def ours(logits: np.ndarray, sampling: Sampling, allowed: list[int]) -> np.ndarray:
    row = torch.full((1, len(logits)), -math.inf)
    row[0, allowed] = add_bias(torch.from_numpy(logits).unsqueeze(0), sampling.logit_bias)[0, allowed]
    return torch.softmax(truncate(row, sampling, sampling.order[3:]).double(), -1)[0].numpy()


def probabilities(*p: float) -> torch.Tensor:
    return torch.tensor([p]).log()


def kept_ids(logits: torch.Tensor) -> list[int]:
    return torch.nonzero(logits[0] > -math.inf).flatten().tolist()


@pytest.mark.parametrize("seed", range(200))
def test_R01_pipeline_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 3000))
    logits = (rng.normal(size=size) * rng.choice([0.3, 2, 8])).astype(np.float32)
    allowed = sorted(rng.choice(size, rng.integers(1, size + 1), replace=False).tolist())
    sampling = Sampling(
        temperature=float(rng.choice([0.3, 0.7, 1.0, 1.5])),
        top_k=int(rng.choice([0, 1, 5, 40])),
        top_p=float(rng.choice([0.1, 0.5, 0.9, 0.97, 1.0])),
        min_p=float(rng.choice([0.0, 0.02, 0.1])),
        logit_bias={int(i): float(rng.normal()) for i in rng.choice(size, 2, replace=False)},
    )
    want, got = reference(logits, sampling, allowed), ours(logits, sampling, allowed)
    assert np.flatnonzero(want).tolist() == np.flatnonzero(got).tolist()
    np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(
    ("p", "top_p", "count"),
    [
        ([0.6, 0.25, 0.1, 0.05], 0.8, 2),
        ([0.4, 0.3, 0.2, 0.1], 0.5, 2),
        ([0.4, 0.3, 0.2, 0.1], 0.39, 1),
        ([0.4, 0.3, 0.2, 0.1], 0.41, 2),
        ([0.4, 0.3, 0.2, 0.1], 0.71, 3),
        ([0.4, 0.3, 0.2, 0.1], 0.95, 4),
        ([0.25, 0.25, 0.25, 0.25], 0.25, 1),  # equality: the line is reached, nothing more is needed
        ([0.25, 0.25, 0.25, 0.25], 0.5, 2),
        ([0.25, 0.25, 0.25, 0.25], 0.75, 3),
        ([0.25, 0.25, 0.25, 0.25], 0.7501, 4),
        ([0.97, 0.01, 0.01, 0.01], 1e-9, 1),
        ([0.4, 0.3, 0.2, 0.1], 1.0, 4),
    ],
)
def test_R02_top_p_keeps_the_token_that_crosses(p: list[float], top_p: float, count: int) -> None:
    assert kept_ids(keep_top_p(probabilities(*p), top_p)) == list(range(count))


def test_R02_a_nucleus_larger_than_the_first_guess() -> None:
    kept = keep_top_p(torch.zeros(2, 5000), 0.9001)
    assert (kept > -math.inf).sum(-1).tolist() == [4501, 4501]
    assert kept_ids(kept) == list(range(4501))


@pytest.mark.parametrize(
    ("values", "k", "kept"),
    [
        ([1.0, 3.0, 2.0, 0.0], 2, [1, 2]),
        ([1.0, 2.0, 2.0, 2.0], 2, [1, 2]),  # ties by lowest id
        ([5.0, 5.0, 5.0, 5.0], 3, [0, 1, 2]),
        ([2.0, 1.0, 2.0, 1.0], 3, [0, 1, 2]),
        ([1.0, -math.inf, 0.0, -math.inf], 3, [0, 2]),  # fewer allowed than k
        ([1.0, 2.0, 3.0, 4.0], 99, [0, 1, 2, 3]),
        ([1.0, 2.0, 3.0, 4.0], 1, [3]),
    ],
)
def test_R03_top_k_keeps_exactly_k(values: list[float], k: int, kept: list[int]) -> None:
    assert kept_ids(keep_top_k(torch.tensor([values]), k)) == kept


def test_R04_min_p() -> None:
    p = probabilities(0.5, 0.3, 0.15, 0.04, 0.01)
    assert kept_ids(keep_min_p(p, 0.1)) == [0, 1, 2]
    assert kept_ids(keep_min_p(p, 0.0)) == [0, 1, 2, 3, 4]
    assert kept_ids(keep_min_p(p, 1.0)) == [0]


def test_R05_temperature_zero_takes_the_first_greatest() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [3.0, 1.0, 3.0, 3.0]])
    drawn = draw(logits, Sampling(temperature=0), None, [Stream(0)] * 2, [0, 0])
    assert [d.token for d in drawn if isinstance(d, Draw)] == [1, 0]


def test_R05_small_temperature_draws_the_greatest() -> None:
    logits = torch.tensor([[0.0, 0.1, 0.2, 0.15]]).expand(1000, 4)
    drawn = draw(logits, Sampling(temperature=1e-4), None, [Stream(3)] * 1000, list(range(1000)))
    assert {d.token for d in drawn if isinstance(d, Draw)} == {2}


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -0.1},
        {"temperature": math.inf},
        {"temperature": math.nan},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"top_k": -1},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"logit_bias": {3: math.inf}},
        {"logit_bias": {3: math.nan}},
        {"logit_bias": {-1: 0.0}},
    ],
)
def test_R05_bad_values_raise(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Sampling(**bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"top_k is 1\.5"):
        Sampling(top_k=1.5)  # type: ignore[arg-type]


def test_sampling_is_a_value() -> None:
    a, b = Sampling(logit_bias={5: 1, 2: -3}), Sampling(logit_bias={2: -3.0, 5: 1.0})
    assert a == b
    assert hash(a) == hash(b)
    assert list(a.logit_bias) == [2, 5]


def test_bias_of_an_unknown_token_raises() -> None:
    with pytest.raises(ValueError, match="token 9"):
        add_bias(torch.zeros(1, 4), {9: 1.0})


def chi_square_is_plausible(counts: np.ndarray, p: np.ndarray) -> bool:
    """Pearson's test at about 1e-4: the statistic has mean k and variance 2k (Wilson-Hilferty's normal quantile)."""
    support = p > 0
    assert counts[~support].sum() == 0
    expected, k = p[support] * counts.sum(), int(support.sum()) - 1
    if k == 0:
        return True
    statistic = ((counts[support] - expected) ** 2 / expected).sum()
    return bool((statistic / k) ** (1 / 3) < 1 - 2 / (9 * k) + 3.7 * math.sqrt(2 / (9 * k)))


@pytest.mark.parametrize("seed", range(5))
def test_R08_draws_follow_the_distribution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, n = rng.normal(size=50).astype(np.float32), 20_000
    allowed = sorted(rng.choice(50, 30, replace=False).tolist())
    sampling = Sampling(temperature=0.8, top_k=20, top_p=0.95, min_p=0.02, logit_bias={3: 1.0, 7: -0.5})
    rows = torch.from_numpy(logits).expand(n, 50)
    drawn = draw(rows, sampling, bitmask([allowed], 50).expand(n, -1), [Stream(seed)] * n, list(range(n)))
    counts = np.bincount([d.token for d in drawn if isinstance(d, Draw)], minlength=50)
    assert counts.sum() == n
    p = reference(logits, sampling, allowed)
    assert chi_square_is_plausible(counts, p)
    # The test can fail: the same counts are no sample of the distribution at another temperature.
    wrong = reference(logits, Sampling(1.0, 20, 0.95, 0.02, {3: 1.0, 7: -0.5}), allowed)
    assert counts[wrong == 0].any() or not chi_square_is_plausible(counts, wrong)


rows_of_logits = st.lists(
    st.one_of(st.sampled_from([-math.inf, 1e30, -1e30, 0.0, 3.3e38, -3.3e38, math.nan]), st.floats(-50, 50, width=32)),
    min_size=2,
    max_size=70,
)


@settings(max_examples=300, deadline=None)
@given(
    rows_of_logits,
    st.data(),
    st.sampled_from([0.0, 1e-9, 1e-4, 0.7, 1.0, 1e9]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([1e-9, 0.5, 1.0]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.booleans(),
)
def test_R09_an_allowed_token_or_a_named_error(values, data, temperature, top_k, top_p, min_p, narrow) -> None:  # type: ignore[no-untyped-def]
    allowed = data.draw(st.sets(st.integers(0, len(values) - 1)))
    logits = torch.tensor([values])
    if narrow:
        logits = logits.to(torch.bfloat16)
    (drawn,) = draw(
        logits,
        Sampling(temperature, top_k, top_p, min_p),
        bitmask([sorted(allowed)], len(values)),
        [Stream(1)],
        [0],
    )
    possible = [i for i in allowed if logits[0, i] > -math.inf]
    if not bool((logits < math.inf).all()):  # NaN, or a bfloat16 of 3.3e38, which rounds to infinity
        assert isinstance(drawn, NonFiniteLogitsError)
    elif not allowed:
        assert isinstance(drawn, DeadConstraintError)
    elif not possible:
        assert isinstance(drawn, NonFiniteLogitsError)
    else:
        assert isinstance(drawn, Draw)
        assert drawn.token in possible
        assert math.isfinite(drawn.logprob)
        assert math.isfinite(drawn.kept)
        assert drawn.kept <= 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_R09_each_failure_has_its_name_and_stays_in_its_row(temperature: float) -> None:
    nan, inf = math.nan, math.inf
    rows = [[0, nan, 0], [0, inf, 1], [-inf, -inf, 0], [1, 1, 5], [1, 2, 3], [0, 1, 9]]
    masks = bitmask([[0, 2], [0, 2], [0, 1], [2], [], [0, 1]], 3)
    sampling = Sampling(temperature=temperature, logit_bias={2: -inf})
    drawn = draw(torch.tensor(rows), sampling, masks, [Stream(0)] * 6, [0] * 6)
    kinds = [type(d) for d in drawn]
    assert kinds == [
        NonFiniteLogitsError,
        NonFiniteLogitsError,
        NonFiniteLogitsError,
        BiasError,
        DeadConstraintError,
        Draw,
    ]


def test_R07_bias_never_revives_a_masked_token() -> None:
    logits = torch.zeros(500, 4)
    drawn = draw(
        logits,
        Sampling(logit_bias={0: 1e30, 2: -math.inf}),
        bitmask([[1, 2, 3]], 4).expand(500, -1),
        [Stream(5)] * 500,
        list(range(500)),
    )
    assert {d.token for d in drawn if isinstance(d, Draw)} == {1, 3}


def test_R10_probabilities_and_kept_mass() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    for temperature, at in ((0.5, 0.5), (0.0, 1.0)):
        p = torch.softmax(logits[0].double() / at, -1)
        (drawn,) = draw(logits, Sampling(temperature), bitmask([[0, 2]], 4), [Stream(5)], [0])
        assert isinstance(drawn, Draw)
        assert drawn.logprob == pytest.approx(math.log(p[drawn.token]), abs=1e-6)
        assert drawn.kept == pytest.approx(math.log(p[0] + p[2]), abs=1e-6)
    (drawn,) = draw(logits, Sampling(), bitmask([[0, 1, 2, 3]], 4), [Stream(5)], [0])
    assert isinstance(drawn, Draw)
    assert drawn.kept == 0


def test_log_mass_of_an_empty_row() -> None:
    assert log_mass(torch.tensor([[-math.inf, -math.inf], [0.0, 0.0]])).tolist() == [-math.inf, math.log(2)]


def test_R11_a_draw_depends_on_its_address_alone() -> None:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(17, 300)).astype(np.float32))
    streams, positions = [Stream(9, i) for i in range(17)], [3 * i for i in range(17)]
    together = gumbel_max(logits, streams, positions).tolist()
    alone = [gumbel_max(logits[i : i + 1], streams[i : i + 1], positions[i : i + 1]).item() for i in range(17)]
    assert together == alone
    order = list(reversed(range(17)))
    shuffled = gumbel_max(logits[order], [streams[i] for i in order], [positions[i] for i in order]).tolist()
    assert shuffled == together[::-1]
    assert len(set(together)) > 10


def test_a_mask_changes_a_draw_only_where_it_forbids_the_winner() -> None:
    logits = torch.zeros(1, 100)
    for position in range(50):
        (free,) = gumbel_max(logits, [Stream(1)], [position]).tolist()
        masked = logits.clone()
        masked[0, [i for i in range(100) if i % 3 and i != free]] = -math.inf
        assert gumbel_max(masked, [Stream(1)], [position]).tolist() == [free]


def test_uniforms_are_open_reproducible_and_uncorrelated() -> None:
    values = Stream(7).uniforms(0, 8)
    # Written once and kept: the same seed gives the same tokens in every later version (R13).
    np.testing.assert_allclose(values[:4], [0.36942921, 0.79742077, 0.36583908, 0.08657719], atol=1e-8)
    assert (values[:5] == Stream(7).uniforms(0, 5)).all()
    many = np.stack([Stream(7, r).uniforms(p, 2000) for r in range(3) for p in range(3)])
    assert many.min() > 0
    assert many.max() < 1
    correlations = np.corrcoef(many) - np.eye(9)
    assert np.abs(correlations).max() < 0.1


def test_derived_seeds() -> None:
    assert derive(5, 0) == 5
    assert len({derive(5, i) for i in range(100)} | {derive(6, i) for i in range(100)}) == 200
    assert derive(5, 3) == 7264271326362633432
    assert 0 <= fresh_seed() < 2**63
