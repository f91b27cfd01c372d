// Byte tries over sorted strings: the vocabulary, the names of an object, the members of an enum.
//
// Layout (specs: prototype, design point 1): the children of a node are contiguous, and so are all its descendants,
// [first, end); bytes lie in an array of their own so that a child is found by scanning a few adjacent bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "bitset.h"
#include "image.h"

namespace mw {

using TrieNode = uint32_t;
inline constexpr TrieNode kNoNode = 0xffffffffu;

class TokenTrie {
 public:
  static constexpr TrieNode kRoot = 0;

  // strings[i] has id ids[i]; equal strings share a node. Empty strings are left out.
  void build(std::span<const std::string_view> strings, std::span<const TokenId> ids);
  // Into an image, and out of one that stays where it is; false where it holds no trie over so many ids.
  void save(image::Writer& out) const;
  bool load(image::Reader& in, size_t n_ids);

  size_t size() const { return nodes_.size(); }
  TrieNode first_child(TrieNode n) const { return nodes_[n].first; }
  uint32_t child_count(TrieNode n) const { return nodes_[n].count; }
  uint8_t byte(TrieNode n) const { return bytes_[n]; }
  TrieNode end(TrieNode n) const { return ends_[n]; }  // one past the last descendant
  uint32_t descendants(TrieNode n) const { return nodes_[n].count ? ends_[n] - nodes_[n].first : 0; }
  TrieNode parent(TrieNode n) const { return parents_[n]; }

  TrieNode child(TrieNode n, uint8_t b) const {
    if (n == kRoot) return root_[b];
    const Node& node = nodes_[n];
    if (node.count == 0) return kNoNode;
    const void* hit = std::memchr(bytes_.data() + node.first, b, node.count);
    if (hit == nullptr) return kNoNode;
    return static_cast<TrieNode>(static_cast<const uint8_t*>(hit) - bytes_.data());
  }
  bool has_tokens(TrieNode n) const { return nodes_[n].token != kNoToken; }
  // The ids of the strings that end at this node.
  std::span<const TokenId> tokens(TrieNode n) const {
    const int32_t t = nodes_[n].token;
    if (t == kNoToken) return {};
    if (t >= 0) return {reinterpret_cast<const TokenId*>(&nodes_[n].token), 1};
    const Range r = lists_[static_cast<size_t>(-(t + 2))];
    return {duplicates_.data() + r.begin, r.count};
  }
  // All token ids at and below a node.
  void collect(TrieNode n, std::vector<TokenId>& out) const;
  // The bytes on the path from the root.
  void path(TrieNode n, std::vector<uint8_t>& out) const;

 private:
  static constexpr int32_t kNoToken = -1;
  struct Node {
    uint32_t first = 0;
    uint32_t count = 0;
    int32_t token = kNoToken;  // >= 0 the id, <= -2 a list of duplicates
  };
  struct Range {
    uint32_t begin, count;
  };
  class Builder;
  bool is_sound(size_t n_ids) const;
  void index_root();

  FlatArray<Node> nodes_;
  FlatArray<uint8_t> bytes_;
  FlatArray<TrieNode> ends_;
  FlatArray<TrieNode> parents_;
  FlatArray<Range> lists_;
  FlatArray<TokenId> duplicates_;
  TrieNode root_[256];
};

}  // namespace mw
