// What class bases ask of the nodes of a vocabulary's trie again and again, worked out once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "token_trie.h"

namespace mw {

class TrieMarks {
 public:
  // How a node's last byte stands in UTF-8, by its bytes since the last one that begins a character.
  enum Place : uint8_t { kInvalid, kBoundary, kInside };  // no continuation of one; ends a character; within one

  void build(const TokenTrie& trie, size_t vocab_size);
  // As those of the trie.
  void save(image::Writer& out) const;
  bool load(image::Reader& in, const TokenTrie& trie, size_t vocab_size);
  Place place(TrieNode n) const { return static_cast<Place>(places_[n]); }
  // Characters begun on the path from the root.
  uint32_t chars(TrieNode n) const { return chars_[n]; }
  // The same at the end of a token, and the most of any node.
  uint32_t token_chars(TokenId t) const { return token_chars_[t]; }
  uint32_t most_chars() const { return static_cast<uint32_t>(within_.size()) - 1; }
  // Most characters begun below a node, up to 255.
  uint32_t height(TrieNode n) const { return heights_[n]; }
  // The tokens with at most so many characters, and the others.
  std::span<const TokenId> tokens_within(uint32_t chars) const { return by_chars_.all().first(count_within(chars)); }
  std::span<const TokenId> tokens_beyond(uint32_t chars) const { return by_chars_.all().subspan(count_within(chars)); }
  // The nodes that end a character beyond ASCII, ascending.
  struct Beyond {
    TrieNode node;
    uint32_t code_point;
  };
  std::span<const Beyond> beyond() const { return beyond_.all(); }
  // The nodes that a byte leads to, ascending.
  std::span<const TrieNode> with_byte(uint8_t b) const {
    return by_byte_.all().subspan(begin_[b], begin_[b + 1u] - begin_[b]);
  }

 private:
  size_t count_within(uint32_t chars) const { return chars < within_.size() ? within_[chars] : by_chars_.size(); }
  void count_characters(const TokenTrie& trie, size_t vocab_size);
  void index_bytes(const TokenTrie& trie);
  void measure_heights(const TokenTrie& trie);

  FlatArray<uint8_t> places_;
  FlatArray<uint32_t> chars_;
  FlatArray<uint8_t> heights_;
  FlatArray<uint32_t> token_chars_;  // by token
  FlatArray<TokenId> by_chars_;      // tokens in the order of their characters
  FlatArray<uint64_t> within_;       // by number of characters, up to the most there are: tokens of at most so many
  FlatArray<Beyond> beyond_;
  FlatArray<TrieNode> by_byte_;
  std::array<uint32_t, 257> begin_{};
};

}  // namespace mw
