#include "exit_trie.h"

#include <algorithm>
#include <array>

namespace mw {

// Groups the children of all members by byte with a counting sort: linear in their number.
void ExitTrie::fill(Node& node) {
  const auto wanted = [&](uint8_t b) { return &node != &root_ || firsts_.test(b); };
  std::array<uint32_t, 257> begin{};
  for (const Member& m : node.members)
    for (TrieNode c = trie_->first_child(m.node), e = c + trie_->child_count(m.node); c < e; ++c)
      if (wanted(trie_->byte(c))) ++begin[trie_->byte(c) + 1u];
  for (size_t b = 0; b < 256; ++b)
    if (begin[b + 1] > 0) node.bytes.push_back(static_cast<uint8_t>(b));
  for (uint8_t b : node.bytes) {
    Node& child = arena_.emplace_back();
    child.members.reserve(begin[b + 1u]);
    node.children.push_back(&child);
    begin[b + 1u] = static_cast<uint32_t>(node.children.size() - 1);  // from here on: where the byte's child is
  }
  for (const Member& m : node.members)
    for (TrieNode c = trie_->first_child(m.node), e = c + trie_->child_count(m.node); c < e; ++c) {
      if (!wanted(trie_->byte(c))) continue;
      Node& child = *node.children[begin[trie_->byte(c) + 1u]];
      child.members.push_back({c, m.chars});
      for (TokenId t : trie_->tokens(c)) child.tokens.push_back({t, m.chars});
    }
}

ExitTrie::Node& ExitTrie::expand(Node& node) {
  if (!node.expanded.load(std::memory_order_acquire)) {
    const std::scoped_lock lock(mutex_);
    if (!node.expanded.load(std::memory_order_relaxed)) {
      fill(node);
      node.expanded.store(true, std::memory_order_release);
    }
  }
  return node;
}

ExitTrie::Node* ExitTrie::child(const Node& node, uint8_t b) {
  const auto it = std::lower_bound(node.bytes.begin(), node.bytes.end(), b);
  if (it == node.bytes.end() || *it != b) return nullptr;
  return &expand(*node.children[static_cast<size_t>(it - node.bytes.begin())]);
}

}  // namespace mw
