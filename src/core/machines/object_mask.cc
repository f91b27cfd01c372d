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

void ObjectMachine::add_key_tokens(Walker& w, StringBase& base, const Item& item, CharRange range) const {
  if (!w.costs()) {
    if (range.lo == 0) {
      w.add(base.all);
      return;
    }
    w.add(base.stay.all());
    w.add(base.cut.all());
    w.add(base.close.between(range.lo, range.hi));
    return;
  }
  // A token may end on the way to a forbidden key, from where a character more is due: one cost for all, not too low.
  Request& r = w.request();
  Records& k = r.records();
  const uint32_t rec = key_record(k, item.state);
  const Item other{outside(k, rec, k.append(0, 0xff), 0), item.machine, item.rest};  // no text holds this byte
  const uint32_t inside = add_cost(r.item_cost(other), 2);
  if (w.admits(inside)) w.add(base.stay.all());
  for (const StringBase::Cut& cut : base.cuts)
    if (w.admits(add_cost(inside, bytes_to_finish(cut.sub)))) w.add(std::span(&cut.token, 1));
  const Item behind{pack(AfterKey, kOther, rec, 0), item.machine, item.rest};
  if (w.admits(r.item_cost(behind))) w.add(base.close.between(range.lo, range.hi));
}

bool ObjectMachine::walk_key(Walker& w, TrieNode node, const Item& item) const {
  Request& r = w.request();
  Records& k = r.records();
  const ObjectRecord rec = k.object(key_record(k, item.state));
  if (!w.takes_sets() || !others_allowed(rec)) return false;
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
  add_key_tokens(w, base, item, range);
  const uint32_t after = k.object(after_other(k, rec, kUnknownText));
  w.follow_exits(base.exits, range, {pack(AfterKey, kOther, after, 0), item.machine, item.rest});
  w.close_part(outer);
  for (const NamedEnd& e : ends)
    if (e.state != kDead) w.reach(e.node, {e.state, item.machine, item.rest});
  return true;
}

}  // namespace mw
