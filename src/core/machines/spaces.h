// White space inside containers: what the object and array machines share.
#pragma once

#include <span>

#include "../mask.h"
#include "../white_space.h"
#include "machine.h"

namespace mw {

// Appends the white space bytes that may follow to a list of candidates; -1 where they do not fit.
inline int list_spaces(Whitespace policy, uint32_t state, std::span<uint8_t> out, int n) {
  for (uint8_t b : {uint8_t{' '}, uint8_t{'\n'}, uint8_t{'\t'}, uint8_t{'\r'}}) {
    if (next_space(policy, state, b) == kSpaceDead) continue;
    if (static_cast<size_t>(n) == out.size()) return -1;
    out[static_cast<size_t>(n++)] = b;
  }
  return n;
}

// Where white space may come: all of its tokens at once, and the rest of the machine (state `rest`, which takes no more of
// it) over the merged trie of what follows a run. Only at the root; false where there is nothing to gain.
inline bool walk_spaces(Walker& w, Whitespace policy, TrieNode node, const Item& item, uint32_t space, State rest) {
  if (node != TokenTrie::kRoot || !w.takes_sets() || !space_may_follow(policy, space)) return false;
  SpaceBase& base = w.vocab().bases().space(static_cast<int>(policy), space);
  const Item over{rest, item.machine, item.rest};
  if (w.admits(w.costs() ? w.request().item_cost(item) : 0)) w.add(base.stay);
  w.follow_exits(base.exits, {}, over);
  w.walk_here(node, over);
  return true;
}

}  // namespace mw
