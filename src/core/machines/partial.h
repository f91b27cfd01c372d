// Characters that are half read inside a regex: what the machines of strings and keys share.
#pragma once

#include "../char_decoder.h"
#include "../regex_dfa.h"

namespace mw {

// Where it does not matter which character comes out of `sub`, one of those for which it does not matter either.
inline Sub forget_in(RegexDfa& dfa, DfaState d, Sub sub, bool any_escapes) {
  const Sub other = representative(sub, any_escapes);
  if (other == sub) return sub;
  const auto next = [&](Sub partial) {
    CharSpan r[2];
    const int n = partial_ranges(partial, r);
    const DfaState first = dfa.uniform_successor(d, r[0].lo, r[0].hi);
    return n == 1 || dfa.uniform_successor(d, r[1].lo, r[1].hi) == first ? first : 0;
  };
  const DfaState to = next(sub);
  return to != 0 && to == next(other) ? other : sub;
}

}  // namespace mw
