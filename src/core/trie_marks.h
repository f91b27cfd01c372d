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

  void build(const TokenTrie& trie);
  Place place(TrieNode n) const { return static_cast<Place>(places_[n]); }
  // Characters begun on the path from the root.
  uint32_t chars(TrieNode n) const { return chars_[n]; }
  // The nodes that end a character beyond ASCII, ascending.
  struct Beyond {
    TrieNode node;
    uint32_t code_point;
  };
  std::span<const Beyond> beyond() const { return beyond_; }
  // The nodes that a byte leads to, ascending.
  std::span<const TrieNode> with_byte(uint8_t b) const {
    return std::span(by_byte_).subspan(begin_[b], begin_[b + 1u] - begin_[b]);
  }

 private:
  std::vector<uint8_t> places_;
  std::vector<uint32_t> chars_;
  std::vector<Beyond> beyond_;
  std::vector<TrieNode> by_byte_;
  std::array<uint32_t, 257> begin_{};
};

}  // namespace mw
