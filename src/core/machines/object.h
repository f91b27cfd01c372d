// A JSON object: named members in a fixed or any order, other keys, no key twice.
#pragma once

#include <string>
#include <vector>

#include "../char_decoder.h"
#include "../program.h"
#include "../records.h"
#include "choice.h"

namespace mw {

struct ObjectSpec {
  std::vector<std::string> names;  // decoded, UTF-8
  std::vector<NodeId> children;    // kNoChild: the name is forbidden
  std::vector<bool> required;
  NodeId additional = kNoChild;    // for every other key; kNoChild: there are none
  bool any_order = false;
  bool any_escapes = false;
};

// States: phase (4 bits), cursor (20), record (20), Sub or white space (20). The cursor is a node of the trie of names
// while the key's text is a prefix of one; behind a key it is the member's index, kOther for other keys. In phase OtherKey,
// once the text is no such prefix, the 40 bits of both are the handle of a KeyText.
class ObjectMachine final : public Machine {
 public:
  static constexpr uint32_t kMaxNameBytes = (1u << 20) - 8;
  ObjectMachine(ObjectSpec spec, Whitespace ws, const Vocab& vocab);
  static State start() { return pack(Open, 0, 0, 0); }
  State next(Request& r, State s, uint8_t b) const override;
  Accept accept(Request& r, State s) const override;
  bool more(Request&, State s) const override;
  int candidates(Request& r, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request& r, State s) const override;
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;
  void children(std::vector<NodeId>& out) const override;
  bool endless(Request& r, State s) const override;

 private:
  enum Phase : uint64_t { Open, First, Key, OtherKey, AfterKey, Value, AfterValue, AfterComma, Done };
  static constexpr uint32_t kField = (1u << 20) - 1;
  static constexpr uint32_t kOther = kField;
  static constexpr State pack(Phase p, uint32_t cursor, uint32_t record, uint32_t low) {
    return (static_cast<uint64_t>(p) << 60) | (static_cast<uint64_t>(cursor) << 40) |
           (static_cast<uint64_t>(record) << 20) | low;
  }
  static Phase phase(State s) { return static_cast<Phase>(s >> 60); }
  static uint32_t cursor(State s) { return static_cast<uint32_t>(s >> 40) & kField; }
  static uint32_t record(State s) { return static_cast<uint32_t>(s >> 20) & kField; }
  static bool in_key(State s) { return phase(s) == Key || phase(s) == OtherKey; }
  static State outside(Records& k, uint32_t rec, TextId text, Sub sub) {
    return (static_cast<uint64_t>(OtherKey) << 60) | (static_cast<uint64_t>(k.key({rec, text})) << 20) | sub;
  }
  static const KeyText& key_text(const Records& k, State s) { return k.key(static_cast<uint32_t>(s >> 20)); }
  // The record of a state inside a key.
  static uint32_t key_record(const Records& k, State s) {
    return phase(s) == OtherKey ? key_text(k, s).object : record(s);
  }
  static uint32_t low(State s) { return static_cast<uint32_t>(s) & kField; }

  size_t size() const { return spec_.names.size(); }
  // --- which keys may come (object_keys.cc)
  bool name_allowed(const Records& k, const ObjectRecord& r, uint32_t i) const;
  bool others_allowed(const ObjectRecord& r) const;
  bool some_name_under(const Records& k, const ObjectRecord& r, TrieNode n, Sub sub) const;
  bool can_go_on(const Records& k, const ObjectRecord& r) const;
  bool can_close(const Records& k, const ObjectRecord& r) const;
  ObjectRecord after_name(Records& k, ObjectRecord r, uint32_t i) const;
  ObjectRecord after_other(Records& k, ObjectRecord r, TextId text) const;
  int name_at(TrieNode n) const;
  // --- the inside of a key
  State next_in_key(Request& r, State s, uint8_t b) const;
  State enter(Request& r, State s, std::span<const uint8_t> bytes, Sub sub) const;
  State close_key(Request& r, State s) const;
  bool closes_as_other(Request& r, State s) const;
  bool may_become_forbidden(Request& r, State s) const;
  bool may_become_typed(Request& r, State s) const;
  TextId text_of(Request& r, State s) const;
  // --- masks of keys (object_mask.cc)
  bool walk_key(Walker& w, TrieNode node, const Item& item) const;
  struct NamedEnd {
    TrieNode node;  // behind the closing quote of a name (or of a key seen before)
    State state;    // kDead: not allowed here
    bool deep;      // some characters were read first
  };
  class EndFinder;
  uint32_t dearest_end(Request& r, const Item& item) const;
  void walk_near_budget(Walker& w, TrieNode node, const Item& item) const;
  void add_key_tokens(Walker& w, StringBase& base, CharRange range) const;
  // --- closing costs (object_cost.cc)
  void prepare_costs() const;
  uint32_t name_cost(const NodeCosts& p, uint32_t i, size_t from) const;
  uint32_t required_cost(const NodeCosts& p, const Records& k, const ObjectRecord& r) const;
  uint32_t member_cost(const NodeCosts& p, Records& k, const ObjectRecord& r) const;
  uint32_t rest_of_name(const NodeCosts& p, uint32_t i, size_t read, Sub sub) const;
  uint32_t key_cost(Request& r, State s) const;

  ObjectSpec spec_;
  Whitespace ws_;
  const Vocab* vocab_;
  TextTrie trie_;                        // of the names; token ids are indices
  std::vector<uint32_t> by_text_;        // indices of the names, sorted as bytes
  std::vector<uint32_t> text_rank_;      // its inverse
  std::vector<uint32_t> first_under_, end_under_;  // per trie node: the range of by_text_ at and below it
  std::vector<uint32_t> next_required_;  // per index: the first required name from there, size() = none
  std::vector<uint8_t> some_from_;       // per index (fixed order): some name may still come
  uint32_t required_count_ = 0;
  mutable std::once_flag costs_once_;
  mutable std::vector<std::vector<uint32_t>> spelled_;  // per name: costs of the suffixes of ,"name":
};

}  // namespace mw
