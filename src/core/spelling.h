// Vocabularies that lack the single bytes: a text may be continued by bytes and yet by no sequence of tokens.
#pragma once

#include <stdexcept>

#include "request.h"

namespace mw {

// Thrown where the search would take too long. What the first mask of a constraint needs covers most of what later ones do.
struct SpellingLimit : std::length_error {
  SpellingLimit()
      : std::length_error("whether this vocabulary, which lacks single bytes, can spell the texts takes too long to decide") {}
};

// Whether, with a token ending here, some sequence of tokens completes the text. Only for vocabularies that are not
// byte-complete; exact, memoised by configuration.
bool can_be_spelled(Request& request, const Item& end);
bool can_be_spelled(Request& request, ConfigId config);

// Tokens to the end of the text, each of which lowers the cost: the fewest if the vocabulary is small, else the fewest of
// those that no others spell. kNoCost: there are none.
uint32_t spelling_cost(Request& request, ConfigId config);

// The count that stands for n of so many steps as there may be between `least` and `most`. A way through more steps than
// there are nodes in the trie meets one twice, and what lies between may be left out or repeated; so larger counts are
// alike, if between the bounds there is room to do so. Where costs count, nothing may be repeated.
inline uint64_t forget_count(uint64_t n, uint64_t least, uint64_t most, const Forget& f) {
  if (f.horizon > most || most - least < f.horizon) return n;
  if (n < least) return f.costs || least - n <= f.horizon ? n : least - f.horizon;
  return most - n >= f.horizon ? least : n;
}

}  // namespace mw
