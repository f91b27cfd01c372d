// Masks inside a key where other keys are allowed: the base of the string body stands for all texts, and the few tokens
// that complete a name (or repeat a key) are repaired (specs: prototype, design point 6).
#include <algorithm>
#include <bitset>

#include "../mask.h"
#include "../request.h"
#include "object.h"

namespace mw {

// All vocabulary nodes behind a closing quote that does not end an other key: follows the vocabulary only as long as the
// text may become a name or a key typed before, by the bytes that these go on with and by escapes.
class ObjectMachine::EndFinder {
 public:
  EndFinder(const ObjectMachine& object, Request& r, const TokenTrie& trie, std::vector<NamedEnd>& out)
      : object_(object), r_(r), trie_(trie), out_(out) {}

  void run(TrieNode node, State s) {
    Records& k = r_.records();
    const std::string text = k.text(object_.text_of(r_, s));
    typed_ = &k.sorted_others(k.object(key_record(k, s)).others);
    Range range{0, typed_->size(), 0};
    for (char c : text) range = narrow(range, static_cast<uint8_t>(c));
    stack_.push_back({node, s, range, false});
    while (!stack_.empty()) {
      const At at = stack_.back();
      stack_.pop_back();
      find(at);
    }
  }

 private:
  struct Range {  // typed_[lo, hi) begin with the text so far, of `depth` bytes
    size_t lo, hi, depth;
  };
  struct At {
    TrieNode node;
    State state;
    Range range;
    bool deep;
  };

  Range narrow(const Range& r, uint8_t b) const {
    const auto at = [&](size_t i) { return static_cast<uint8_t>((*typed_)[i][r.depth]); };
    size_t lo = r.lo, hi = r.hi;
    while (lo < hi && ((*typed_)[lo].size() <= r.depth || at(lo) < b)) ++lo;
    size_t end = lo;
    while (end < hi && at(end) == b) ++end;
    return {lo, end, r.depth + 1};
  }

  void find(const At& at) {
    if (sub_mode(low(at.state)) >= Mode::Backslash) {  // inside an escape: any byte may go on
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) step(at, c);
      return;
    }
    std::bitset<256> bytes;
    if (phase(at.state) == Key) {
      const TokenTrie& names = object_.trie_.trie();
      for (TrieNode c = names.first_child(cursor(at.state)), e = c + names.child_count(cursor(at.state)); c < e; ++c)
        bytes[names.byte(c)] = true;
    }
    for (size_t i = at.range.lo; i < at.range.hi; ++i)
      if ((*typed_)[i].size() > at.range.depth) bytes[static_cast<uint8_t>((*typed_)[i][at.range.depth])] = true;
    bytes['"'] = bytes['\\'] = low(at.state) == 0;
    // What follows in the vocabulary is usually less than 256 bytes, deep in it a few.
    for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c)
      if (bytes[trie_.byte(c)]) step(at, c);
  }

  void step(const At& at, TrieNode c) {
    const uint8_t b = trie_.byte(c);
    if (b == '"' && low(at.state) == 0) {
      const bool typed = at.range.lo < at.range.hi && (*typed_)[at.range.lo].size() == at.range.depth;
      const bool named = phase(at.state) == Key && object_.name_at(cursor(at.state)) >= 0;
      if (typed || named) out_.push_back({c, object_.close_key(r_, at.state), at.deep});
      return;
    }
    if (sub_mode(low(at.state)) >= Mode::Backslash && !may_lead_on(at, b)) return;
    const State next = object_.next_in_key(r_, at.state, b);
    if (next == kDead) return;
    const Range range = follow(at, next, b);
    if (phase(next) == Key || range.lo < range.hi) stack_.push_back({c, next, range, true});
  }

  // Whether a byte of an escape leaves a name or typed key to come. (To ask for the state would make a record of the text: there
  // are a hundred ways to go on behind a backslash, and nearly all leave the names.)
  bool may_lead_on(const At& at, uint8_t b) const {
    const Decoded d = decode_json(low(at.state), b, object_.spec_.any_escapes);
    if (d.kind != Decoded::Char) return d.kind == Decoded::Partial;
    if (phase(at.state) == Key && object_.trie_.advance(cursor(at.state), d.value) != kNoNode) return true;
    const Range range = narrow_by(at.range, d.value);
    return range.lo < range.hi;
  }

  Range narrow_by(Range range, uint32_t code_point) const {
    uint8_t bytes[4];
    const int n = encode_utf8(code_point, bytes);
    for (int i = 0; i < n; ++i) range = narrow(range, bytes[i]);
    return range;
  }

  // The keys that still begin with the text: a raw byte moves at once, an escape when its character is complete.
  Range follow(const At& at, State next, uint8_t b) const {
    if (sub_mode(low(next)) >= Mode::Backslash) return at.range;
    if (sub_mode(low(at.state)) < Mode::Backslash) return narrow(at.range, b);
    return narrow_by(at.range, decode_json(low(at.state), b, object_.spec_.any_escapes).value);
  }

  const ObjectMachine& object_;
  Request& r_;
  const TokenTrie& trie_;
  std::vector<NamedEnd>& out_;
  const std::vector<std::string>* typed_ = nullptr;  // nobody else asks for such a list meanwhile
  std::vector<At> stack_;
};

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
  std::vector<std::pair<TrieNode, State>> stack{{node, item.state}};
  while (!stack.empty()) {
    const auto [at, state] = stack.back();
    stack.pop_back();
    for (TrieNode c = trie.first_child(at), e = c + trie.child_count(at); c < e; ++c) {
      const State s = next_in_key(w.request(), state, trie.byte(c));
      if (s == kDead) continue;
      const Item end{s, item.machine, item.rest};
      if (!in_key(s)) {
        w.reach(c, end);
        continue;
      }
      w.emit(trie.tokens(c), end);
      if (phase(s) == Key) stack.emplace_back(c, s);
    }
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
  if (may_become_forbidden(r, item.state)) EndFinder(*this, r, w.trie(), ends).run(node, item.state);
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
