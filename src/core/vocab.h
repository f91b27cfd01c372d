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
inline uint32_t add_cost(uint32_t a, uint32_t b) { return a + b >= kNoCost ? kNoCost : a + b; }

// A vocabulary prepared for masks: its trie, its bases, and how text is cut into the fewest tokens.
class Vocab {
 public:
  // kinds[i]: 0 text, otherwise never matches text.
  Vocab(const std::vector<std::string>& tokens, std::vector<uint8_t> kinds, std::vector<TokenId> eos);
  // All tokens in one text, and how long each is. `image` is what to_image made of the same vocabulary, with the same key, or
  // anything else, which is then not used; it must outlive this object.
  Vocab(std::string blob, std::span<const uint32_t> lengths, std::vector<uint8_t> kinds, std::vector<TokenId> eos,
        std::span<const char> image, std::string_view key);
  Vocab(const Vocab&) = delete;
  Vocab& operator=(const Vocab&) = delete;

  std::string to_image(std::string_view key);
  bool is_from_image() const { return from_image_; }

  size_t size() const { return kinds_.size(); }
  const TokenTrie& trie() const { return trie_; }
  BaseStore& bases() { return bases_; }
  bool is_text(TokenId t) const { return t < kinds_.size() && kinds_[t] == 0 && offsets_[t] != offsets_[t + 1]; }
  std::string_view bytes(TokenId t) const { return std::string_view(blob_).substr(offsets_[t], offsets_[t + 1] - offsets_[t]); }
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
  void build();

  std::string blob_;
  std::vector<uint32_t> offsets_;
  std::vector<uint8_t> kinds_;
  std::vector<TokenId> eos_;
  TokenTrie trie_;
  void look_at_bytes();

  bool from_image_ = false, byte_complete_ = false, character_closed_ = false, printable_ascii_ = false;
  std::vector<std::pair<uint32_t, uint32_t>> lacking_;
  bool single_[256] = {};  // bytes that are tokens
  uint64_t serial_;
  BaseStore bases_;
  mutable std::once_flag irreducible_once_;
  mutable TokenTrie irreducible_;
};

}  // namespace mw
