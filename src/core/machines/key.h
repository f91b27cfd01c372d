// A key of an object: a JSON string whose content a regex matches, and no key that was typed before.
#pragma once

#include "../char_decoder.h"
#include "../program.h"
#include "../records.h"
#include "../typed_index.h"

namespace mw {

// States: bit 62 = before the opening quote, with the list of typed keys below; bit 61 = closed, with the value to hand
// over, a typed key's handle + 1; else the handle of a KeyCursor << 20 | Sub.
class KeyMachine final : public Machine {
 public:
  // Keys of one kind are told apart; languages of different kinds have no string in common.
  // `restricted`: the automaton is not that of the regex, but of what the vocabulary can spell.
  KeyMachine(std::shared_ptr<Automaton> automaton, uint32_t kind, bool any_escapes, bool restricted, const Vocab& vocab);
  static State start() { return kQuote; }
  State enter(Request& r, State start, uint32_t given) const override;
  State next(Request& r, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override { return !is_closed(s); }
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request& r, State s) const override;
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;
  const KeyMachine* key() const override { return this; }
  // Whether the vocabulary can spell some of its keys only, and not without end.
  bool may_run_out() const;

  uint32_t kind() const { return kind_; }
  // Tokens of a key that comes when so many `others` of its kind were typed beside those of a list.
  uint32_t fresh_cost(Request& r, uint32_t list, uint32_t others) const;
  // A list with one more key of this kind, of which no more is known.
  uint32_t with_unknown(Records& k, uint32_t list) const { return k.add_typed(list, k.typed_key({kUnknownText, kind_})); }

 private:
  static constexpr uint64_t kFewKeys = 6, kShortKeys = 3;
  static constexpr State kQuote = State{1} << 62, kClosed = State{1} << 61;
  static bool is_closed(State s) { return (s & kClosed) != 0; }
  static bool is_inside(State s) { return s < kClosed; }
  static Sub sub_of(State s) { return static_cast<Sub>(s & kSubMask); }
  static KeyCursor cursor(Records& k, State s) { return k.cursor(static_cast<uint32_t>(s >> kSubBits)); }
  static State pack(Records& k, const KeyCursor& c, Sub sub) { return (State{k.cursor(c)} << kSubBits) | sub; }
  static State closed(Records& k, TextId text, uint32_t kind) { return kClosed | (State{k.typed_key({text, kind})} + 1); }
  Transport transport() const { return any_escapes_ ? Transport::JsonAny : Transport::JsonMinimal; }

  // --- typed keys
  using Typed = TypedIndex::Node;
  const Typed* typed_under(Request& r, const KeyCursor& at) const;
  bool takes(Records& k, const TypedKey& key) const;
  bool lives(Request& r, const KeyCursor& at) const;
  bool any_lives_in(Request& r, const KeyCursor& at, uint32_t lo, uint32_t hi) const;
  KeyCursor after(Request& r, KeyCursor at, uint32_t code_point) const;
  State close(Request& r, const KeyCursor& at) const;
  std::vector<uint32_t> next_typed(Request& r, const KeyCursor& at) const;
  template <class Near, class Off>
  bool any_next(Request& r, const KeyCursor& at, uint32_t lo, uint32_t hi, Near near, Off off) const;
  // --- searches over ways to the end
  const std::vector<std::string>& few(bool costs) const;
  bool may_matter(Request& r, const KeyCursor& at, Sub sub, bool costs) const;
  // --- masks
  class NearFinder;
  void add_base(Walker& w, TrieNode node, const Item& item, const KeyCursor& at) const;
  // --- closing costs
  uint32_t bytes_beyond(DfaState d, uint32_t n) const;
  uint32_t cost_between(Request& r, const KeyCursor& at) const;
  uint32_t cost_inside(Request& r, const KeyCursor& at, Sub sub) const;

  std::shared_ptr<Automaton> automaton_;
  RegexDfa& dfa_;
  RegexBases& bases_;
  uint32_t kind_;
  bool any_escapes_;
  bool restricted_;
  mutable std::once_flag few_once_;
  mutable std::vector<std::string> few_[2];  // [1]: where costs count
};

}  // namespace mw
