// Masks inside a key where other keys are allowed: the base of the string body stands for all texts, and the few tokens
// that complete a name (or repeat a key) are repaired (specs: prototype, design point 6).
#include <algorithm>

#include "../mask.h"
#include "../request.h"
#include "object.h"

namespace mw {

// All trie nodes behind a closing quote that does not end an other key: follows the vocabulary only as long as the text
// may become such a key.
void ObjectMachine::find_ends(Request& r, const TokenTrie& trie, TrieNode node, State s, bool deep,
                              std::vector<NamedEnd>& out) const {
  const auto step = [&](TrieNode c, uint8_t b) {
    if (b == '"' && low(s) == 0) {
      if (!closes_as_other(r, s)) out.push_back({c, close_key(r, s), deep});
      return;
    }
    const State next = next_in_key(r, s, b);
    if (next != kDead && may_become_forbidden(r, next)) find_ends(r, trie, c, next, true, out);
  };
  const TokenTrie& names = trie_.trie();
  if (phase(s) == Key && low(s) == 0 && names.child_count(cursor(s)) <= 16 &&
      r.records().object(record(s)).others == 0) {
    const auto take = [&](uint8_t b) {
      const TrieNode c = trie.child(node, b);
      if (c != kNoNode) step(c, b);
    };
    for (TrieNode c = names.first_child(cursor(s)), e = c + names.child_count(cursor(s)); c < e; ++c)
      if (names.byte(c) != '"' && names.byte(c) != '\\') take(names.byte(c));
    take('"');
    take('\\');
    return;
  }
  for (TrieNode c = trie.first_child(node), e = c + trie.child_count(node); c < e; ++c) step(c, trie.byte(c));
}

// No token that ends inside the key costs more to finish than this: a character may be cut (11 bytes), and the text may
// be a forbidden key, from where a character more is due.
uint32_t ObjectMachine::dearest_end(Request& r, const Item& item) const {
  Records& k = r.records();
  const uint32_t rec = key_record(k, item.state);
  const Item other{outside(k, rec, kUnknownText, 0), item.machine, item.rest};
  return add_cost(r.item_cost(other), 2 + 11);
}

// Close to the token budget: tokens on the way to a name, and single bytes, each with its own cost. They suffice to close
// the key.
void ObjectMachine::walk_near_budget(Walker& w, TrieNode node, const Item& item) const {
  w.note_dropped();
  const TokenTrie& trie = w.trie();
  for (TrieNode c = trie.first_child(node), e = c + trie.child_count(node); c < e; ++c) {
    const State s = next_in_key(w.request(), item.state, trie.byte(c));
    if (s == kDead) continue;
    const Item end{s, item.machine, item.rest};
    if (!in_key(s)) {
      w.reach(c, end);
      continue;
    }
    w.emit(trie.tokens(c), end);
    if (phase(s) == Key) walk_near_budget(w, c, end);
  }
}

void ObjectMachine::add_key_tokens(Walker& w, StringBase& base, CharRange range) const {
  if (range.lo == 0) {
    w.add(base.all);
    return;
  }
  w.add(base.stay.all());
  w.add(base.cut.all());
  w.add(base.close.between(range.lo, range.hi));
}

bool ObjectMachine::walk_key(Walker& w, TrieNode node, const Item& item) const {
  Request& r = w.request();
  Records& k = r.records();
  const ObjectRecord rec = k.object(key_record(k, item.state));
  if (!w.takes_sets() || !others_allowed(rec)) return false;
  if (w.costs() && !w.fits(dearest_end(r, item))) {
    walk_near_budget(w, node, item);
    return true;
  }
  std::vector<NamedEnd> ends;
  if (may_become_forbidden(r, item.state)) find_ends(r, w.trie(), node, item.state, false, ends);
  std::vector<TokenId> removed;
  CharRange range;
  for (const NamedEnd& e : ends) {
    if (e.deep) w.trie().collect(e.node, removed);
    else range.lo = 1;
  }
  StringBase& base = w.vocab().bases().string(node, low(item.state), spec_.any_escapes);
  const int outer = w.open_part(std::move(removed));
  add_key_tokens(w, base, range);
  const uint32_t after = k.object(after_other(k, rec, kUnknownText));
  w.follow_exits(base.exits, range, {pack(AfterKey, kOther, after, 0), item.machine, item.rest});
  w.close_part(outer);
  for (const NamedEnd& e : ends)
    if (e.state != kDead) w.reach(e.node, {e.state, item.machine, item.rest});
  return true;
}

}  // namespace mw
