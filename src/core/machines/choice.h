// One of finitely many texts: as raw bytes, or as the decoded content of a JSON string.
#pragma once

#include <string>
#include <vector>

#include "../char_decoder.h"
#include "../program.h"

namespace mw {

// A trie of the texts, and for each of its nodes the fewest tokens to some end.
class TextTrie {
 public:
  explicit TextTrie(const std::vector<std::string>& texts);
  const TokenTrie& trie() const { return trie_; }
  TrieNode child(TrieNode n, uint8_t b) const { return trie_.child(n, b); }
  bool ends(TrieNode n) const { return trie_.has_tokens(n) || (n == TokenTrie::kRoot && has_empty_); }
  // Moves by the UTF-8 of a code point; kNoNode where no text goes on so.
  TrieNode advance(TrieNode n, uint32_t code_point) const;
  bool any_child_in(TrieNode n, uint32_t lo, uint32_t hi) const;
  // Calls f(code point, node behind it) for each character that may come next, until it says true.
  template <class F>
  bool any_next_char(TrieNode n, F f) const {
    struct At {
      TrieNode node;
      Sub sub;
    };
    std::vector<At> stack{{n, 0}};
    while (!stack.empty()) {
      const At at = stack.back();
      stack.pop_back();
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) {
        const Decoded d = decode_utf8(at.sub, trie_.byte(c));
        if (d.kind == Decoded::Partial) stack.push_back({c, d.value});
        else if (d.kind == Decoded::Char && f(d.value, c)) return true;
      }
    }
    return false;
  }

 private:
  TokenTrie trie_;
  bool has_empty_ = false;
};

class ChoiceMachine final : public Machine {
 public:
  ChoiceMachine(const std::vector<std::string>& texts, const Vocab& vocab);
  static State start() { return TokenTrie::kRoot; }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override;
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  uint32_t cost(Request&, State s) const override;

 private:
  TextTrie texts_;
  const Vocab* vocab_;
  mutable std::once_flag once_;
  mutable std::vector<uint32_t> costs_;
};

// States: cursor above, Sub below; kQuote before the opening quote, kClosed after the closing one.
class ChoiceStringMachine final : public Machine {
 public:
  ChoiceStringMachine(const std::vector<std::string>& texts, bool any_escapes, const Vocab& vocab);
  static State start() { return kQuote; }
  State next(Request&, State s, uint8_t b) const override;
  Accept accept(Request&, State s) const override;
  bool more(Request&, State s) const override { return s != kClosed; }
  int candidates(Request&, State s, std::span<uint8_t> out) const override;
  uint32_t cost(Request&, State s) const override;

 private:
  void prepare_costs() const;
  static constexpr State kQuote = State{1} << 62, kClosed = State{1} << 61;
  static constexpr State pack(TrieNode n, Sub sub) { return (State{n} << kSubBits) | sub; }

  TextTrie texts_;
  bool any_escapes_;
  const Vocab* vocab_;
  mutable std::once_flag once_;
  mutable std::vector<uint32_t> costs_;
};

}  // namespace mw
