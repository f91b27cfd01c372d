"""The mask by its definition: which tokens may come next.

A token is allowed iff its bytes are text, and after it some *sequence of tokens* ends in a complete text; the
end-of-sequence tokens are allowed iff the text is complete, and after one of them only they are. Everything here is
decided token by token, without any precomputation over the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskwright.reference.language import EMPTY, Node, derive
from maskwright.reference.spelling import Spelling

FINISHED = None  # the state after an end-of-sequence token
State = Node | None


class Oracle:
    """What a matcher for a language and a vocabulary has to answer.

    Args:
        language: the complete texts.
        tokens: the bytes of each token; its index is its id.
        eos_ids: the tokens that end a text.
        special_ids: tokens that are never text, whatever their bytes.
    """

    def __init__(
        self, language: Node, tokens: Sequence[bytes], eos_ids: Iterable[int], special_ids: Iterable[int] = ()
    ) -> None:
        self.language = language
        self.tokens = list(tokens)
        self.eos_ids = frozenset(eos_ids)
        not_text = self.eos_ids | frozenset(special_ids)
        self.text_ids = [i for i, token in enumerate(self.tokens) if token and i not in not_text]
        self.spelling = Spelling(self.tokens[i] for i in self.text_ids)

    def start(self) -> State:
        """The state before the first token."""
        return self.language

    def advance(self, state: State, token: int) -> State:
        """The state after an allowed token.

        Raises:
            ValueError: the token is not allowed.
        """
        if token not in self.mask(state):
            raise ValueError(f"token {token} is not allowed")
        return FINISHED if token in self.eos_ids or state is None else derive(state, self.tokens[token])

    def after(self, prefix: Iterable[int]) -> State:
        """The state after a sequence of allowed tokens."""
        state = self.start()
        for token in prefix:
            state = self.advance(state, token)
        return state

    def mask(self, state: State) -> set[int]:
        """The allowed tokens."""
        if state is None:
            return set(self.eos_ids)
        after = {token: derive(state, token) for token in self.spelling.tokens}
        allowed = {token for token, rest in after.items() if rest is not EMPTY and self.spelling.can_finish(rest)}
        ends = set(self.eos_ids) if state.nullable else set()
        return ends | {i for i in self.text_ids if self.tokens[i] in allowed}

    def allowed(self, prefix: Iterable[int]) -> set[int]:
        """The tokens allowed after a sequence of allowed tokens."""
        return self.mask(self.after(prefix))

    def is_accepting(self, state: State) -> bool:
        """Whether the text is complete and not ended yet."""
        return state is not None and state.nullable

    def min_tokens(self, state: State) -> int | None:
        """The least number of tokens before the text is complete; None where there is no way.

        Exact, but for texts that would have to use a key of an object twice: then a lower bound.
        """
        return 0 if state is None else self.spelling.tokens_left(state)

    def mask_within(self, state: State, max_tokens: int) -> set[int]:
        """The allowed tokens after which a way is left to end with `max_tokens` tokens in all, by `min_tokens`."""
        allowed = self.mask(state)
        if state is None:
            return allowed  # no text is left to be finished
        fits = {i for i in allowed & self.eos_ids if max_tokens >= 1}
        for i in allowed - self.eos_ids:
            rest = self.min_tokens(derive(state, self.tokens[i]))
            if rest is not None and rest + 2 <= max_tokens:
                fits.add(i)
        return fits
