// Masks inside a key: the base of the regex stands for all its texts, and the few tokens on the way to a key typed before are
// repaired, as in object_mask.cc.
#include <algorithm>

#include "../mask.h"
#include "../request.h"
#include "key.h"

namespace mw {

// Follows the vocabulary as long as the text may become a typed key.
class KeyMachine::NearFinder {
 public:
  struct End {
    TrieNode node;
    State state;
  };

  NearFinder(const KeyMachine& key, Request& r, const TokenTrie& trie, bool costs)
      : key_(key), r_(r), trie_(trie), costs_(costs) {}

  void run(TrieNode node, State s) {
    stack_.push_back({node, s});
    while (!stack_.empty()) {
      const End at = stack_.back();
      stack_.pop_back();
      find(at);
    }
  }

  std::vector<TokenId> removed;  // what the base takes and the key does not, or not without a look at its cost
  std::vector<End> ends;         // where tokens end that need one

 private:
  void find(const End& at) {
    if (sub_of(at.state) != 0) {  // few bytes go on; all of them
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) step(at, c);
      return;
    }
    const KeyCursor cursor_ = cursor(r_.records(), at.state);
    const Typed* typed = key_.typed_under(r_, cursor_);
    if (typed == nullptr) return;
    std::vector<uint8_t> bytes = typed->next;
    std::erase_if(bytes, [](uint8_t b) { return b == '"' || b == '\\'; });
    bytes.push_back('\\');
    if (typed->ends) bytes.push_back('"');
    for (uint8_t b : bytes) {
      const TrieNode c = trie_.child(at.node, b);
      if (c != kNoNode) step(at, c);
    }
  }

  void step(const End& at, TrieNode c) {
    const State s = key_.next(r_, at.state, trie_.byte(c));
    if (s == kDead) return trie_.collect(c, removed);
    if (is_closed(s) || !is_near(s)) return;
    stack_.push_back({c, s});
    if (!costs_ || !trie_.has_tokens(c)) return;
    const auto tokens = trie_.tokens(c);
    removed.insert(removed.end(), tokens.begin(), tokens.end());
    ends.push_back({c, s});
  }

  bool is_near(State s) const {
    const KeyCursor at = cursor(r_.records(), s);
    if (sub_of(s) == 0) return key_.typed_under(r_, at) != nullptr;
    const std::vector<uint32_t> next = key_.next_typed(r_, at);
    return partial_is_live(sub_of(s), key_.any_escapes_, [&](uint32_t lo, uint32_t hi) {
      const auto it = std::lower_bound(next.begin(), next.end(), lo);
      return it != next.end() && *it <= hi;
    });
  }

  const KeyMachine& key_;
  Request& r_;
  const TokenTrie& trie_;
  bool costs_;
  std::vector<End> stack_;
};

// Behind a key whose text a base left open, whether a text was typed before is found out token by token.
bool KeyMachine::has_base(Request& r, State s) const {
  if (!is_inside(s) || sub_of(s) != 0) return false;
  const KeyCursor at = cursor(r.records(), s);
  return r.records().known_typed(at.list) == at.list;
}

bool KeyMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  Request& r = w.request();
  if (!w.takes_sets() || !has_base(r, item.state)) return false;
  const KeyCursor at = cursor(r.records(), item.state);
  if (w.costs()) {
    const uint32_t most = dfa_.is_universal(at.dfa) ? kMostToClose : automaton_->widest(*bases_.get(w.vocab().bases(), node, at.dfa, true), w.vocab(), transport());
    if (!w.fits(add_cost(most, r.rest_cost(item.rest)))) return false;
  }
  NearFinder near(*this, r, w.trie(), w.costs());
  if (typed_under(r, at) != nullptr) near.run(node, item.state);
  const int outer = w.open_part(std::move(near.removed));
  add_base(w, node, item, at);
  w.close_part(outer);
  for (const NearFinder::End& end : near.ends) w.emit(w.trie().tokens(end.node), {end.state, item.machine, item.rest});
  return true;
}

void KeyMachine::add_base(Walker& w, TrieNode node, const Item& item, const KeyCursor& at) const {
  const Item over{closed(w.request().records(), kUnknownText, kind_), item.machine, item.rest};
  if (dfa_.is_universal(at.dfa)) {
    StringBase& base = w.vocab().bases().string(node, 0, any_escapes_);
    w.add(base.all);
    w.follow_exits(base.exits, {}, over);
    return;
  }
  const RegexBase& base = w.keep(bases_.get(w.vocab().bases(), node, at.dfa, w.costs()));
  w.add(base.stay);
  for (const TokenSet* set : base.shared) w.add(*set);
  w.add(base.close);
  w.follow_exits(base.exits(w.trie()), {}, over);
}

}  // namespace mw
