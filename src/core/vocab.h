// A vocabulary prepared for masks.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bases.h"
#include "token_trie.h"

namespace mw {

inline constexpr uint32_t kNoCost = 1u << 30;  // cannot be finished (or not by tokens inside the machine)
// What costs count. Bytes are an upper bound of tokens that takes no search: where even they are within the budget, nobody
// has to know how many tokens it takes.
enum class CostUnit : uint8_t { Bytes, Tokens };
inline uint32_t add_cost(uint32_t a, uint32_t b) { return a + b >= kNoCost ? kNoCost : a + b; }

// A vocabulary prepared for masks: its trie, its bases, and how text is cut into the fewest tokens.
class Vocab {
 public:
  // kinds[i]: 0 text, otherwise never matches text.
  Vocab(std::vector<std::string> tokens, std::vector<uint8_t> kinds, std::vector<TokenId> eos);
  Vocab(const Vocab&) = delete;
  Vocab& operator=(const Vocab&) = delete;

  size_t size() const { return tokens_.size(); }
  const TokenTrie& trie() const { return trie_; }
  BaseStore& bases() { return bases_; }
  bool is_text(TokenId t) const { return t < kinds_.size() && kinds_[t] == 0 && !tokens_[t].empty(); }
  const std::string& bytes(TokenId t) const { return tokens_[t]; }
  const std::vector<TokenId>& eos() const { return eos_; }
  bool is_eos(TokenId t) const;
  // Each byte of well-formed UTF-8 is a token of its own: then whatever bytes can be finished, tokens can.
  bool is_byte_complete() const { return byte_complete_; }
  // It lacks whole characters only: the bytes of every token, and all continuation bytes, are tokens of their own. Then
  // exactly the texts without those characters can be spelled, and nothing need be tested token by token. (Models that
  // were trained without some control characters are of this kind.)
  bool is_character_closed() const { return character_closed_; }
  bool has_printable_ascii() const { return printable_ascii_; }
  // The code points that no token sequence spells, as sorted inclusive ranges; only if character-closed.
  const std::vector<std::pair<uint32_t, uint32_t>>& lacking() const { return lacking_; }
  bool can_spell(std::string_view text) const;
  bool has_byte(uint8_t b) const { return single_[b]; }  // as a token of its own
  uint64_t serial() const { return serial_; }
  // The tokens that no others spell, as a trie; made on first use.
  const TokenTrie& irreducible() const;
  // Fewest tokens that spell each suffix of a text; costs[i] for text[i..], kNoCost where there are none.
  std::vector<uint32_t> spelling_costs(std::string_view text) const;

 private:
  std::vector<std::string> tokens_;
  std::vector<uint8_t> kinds_;
  std::vector<TokenId> eos_;
  TokenTrie trie_;
  void look_at_bytes();

  bool byte_complete_ = false, character_closed_ = false, printable_ascii_ = false;
  std::vector<std::pair<uint32_t, uint32_t>> lacking_;
  bool single_[256] = {};  // bytes that are tokens
  uint64_t serial_;
  BaseStore bases_;
  mutable std::once_flag irreducible_once_;
  mutable TokenTrie irreducible_;
};

}  // namespace mw
