// A JSON string: any content with length bounds in code points, or content that a regex matches.
#pragma once

#include "../char_decoder.h"
#include "../program.h"

namespace mw {

// States: bit 62 = before the opening quote, bit 61 = closed, else count << 20 | Sub. The count stops at what can matter.
class StringMachine final : public Machine {
 public:
  StringMachine(uint64_t min_length, uint64_t max_length, bool any_escapes)  // max kNoMax: none
      : min_(min_length), max_(max_length), any_escapes_(any_escapes) {}
  static constexpr uint64_t kNoMax = ~uint64_t{0};
  static State start() { return kQuote; }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override { return s != kClosed; }
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request&, State s) const override { return s < kClosed; }
  bool endless(Request&, State s) const override { return s != kClosed && max_ == kNoMax; }
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;

 private:
  static constexpr State kQuote = State{1} << 62, kClosed = State{1} << 61;
  static constexpr uint64_t count(State s) { return s >> kSubBits; }
  uint64_t counted(uint64_t n) const { return max_ == kNoMax && n > min_ ? min_ : n; }
  State body(uint64_t n, Sub sub) const { return (counted(n) << kSubBits) | sub; }
  uint32_t cost_of_characters(const Vocab& vocab, uint64_t n) const;
  uint32_t most_for_characters(const Vocab& vocab, uint64_t n) const;  // for n or fewer
  void count_tokens(const Vocab& vocab) const;
  void add_with_costs(Walker& w, StringBase& base, const Item& item, uint64_t room) const;

  uint64_t min_, max_;
  bool any_escapes_;
  mutable std::once_flag once_;
  mutable std::vector<uint32_t> costs_, most_;  // of n characters, and of n or fewer; n <= min_
};

// States: bit 62 / 61 as above, else dfa << 20 | Sub.
class RegexStringMachine final : public Machine {
 public:
  RegexStringMachine(std::shared_ptr<Automaton> automaton, bool any_escapes, const Vocab& vocab);
  static State start() { return kQuote; }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override { return s != kClosed; }
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request&, State s) const override { return s < kClosed && (s & kSubMask) == 0; }
  bool endless(Request&, State s) const override;
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;

 private:
  static constexpr State kQuote = State{1} << 62, kClosed = State{1} << 61;
  static constexpr State pack(DfaState d, Sub sub) { return (State{d} << kSubBits) | sub; }
  Transport transport() const { return any_escapes_ ? Transport::JsonAny : Transport::JsonMinimal; }

  std::shared_ptr<Automaton> automaton_;
  RegexDfa& dfa_;
  RegexBases& bases_;
  bool any_escapes_;
};

// Raw text that a regex matches, as a whole constraint, a number, a literal. States: dfa << 20 | Sub.
class RegexMachine final : public Machine {
 public:
  RegexMachine(std::shared_ptr<Automaton> automaton, const Vocab& vocab);
  State start() const { return State{dfa_.start()} << kSubBits; }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override;
  bool walk_base(Walker& w, TrieNode node, const Item& item) const override;
  bool has_base(Request&, State s) const override { return (s & kSubMask) == 0; }
  bool endless(Request&, State s) const override;
  uint32_t cost(Request& r, State s) const override;
  State forget(Request& r, State s, const Forget& f) const override;

 private:
  std::shared_ptr<Automaton> automaton_;
  RegexDfa& dfa_;
  RegexBases& bases_;
};

}  // namespace mw
