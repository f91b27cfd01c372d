"""The methods of the lookahead sampler by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from maskwright.engine.lookahead.base import check_request

if TYPE_CHECKING:
    from maskwright.engine.lookahead.settings import Lookahead
    from maskwright.engine.model import LanguageModel
    from maskwright.engine.outcome import Outcome
    from maskwright.engine.request import Request
    from maskwright.engine.requests import Rules
    from maskwright.engine.sampling import Sampling

    Run = Callable[[LanguageModel, Sequence[Request], Rules, Sampling, Lookahead], list[Outcome]]

__all__ = ["run"]

# The module of each method, here; its `run` takes (model, requests, rules, sampling, settings) and gives one outcome
# per request, in order. The samples of a prompt are next to each other and share all but their streams.
_MODULES: Final = {"exact": "exact", "certified": "certified", "smc": "smc", "asap": "asap", "reject": "reject"}


def run(model: LanguageModel, requests: Sequence[Request], how: Rules, sampling: Sampling) -> list[Outcome]:
    """Runs requests by the method of ``how.lookahead``.

    Raises:
        GenerationError: a request that lookahead is not defined for, before any is run; a budget that ends
            (BudgetError).
        UnsatisfiableError: the model gives probability 0 to every valid output.
    """
    settings = how.lookahead
    assert settings is not None
    for request in requests:
        check_request(request, sampling, settings)
    module = import_module(f"{__package__}.{_MODULES[settings.method]}")
    method: Run = module.run
    return method(model, requests, how, sampling, settings)
