// Masks of positions: how they differ from those of their configurations.
#include <algorithm>

#include "uniqueness.h"

namespace mw {

const Uniqueness::Repair* Uniqueness::repair(const Position& at, const MaskRecord& record) {
  const auto known = repairs_.find(key(at));
  if (known != repairs_.end()) return &known->second;
  Repair made;
  settle_doubts(at, record, made);
  find_removed(at, made);
  if (request_.lacks_nodes()) return nullptr;
  return &(repairs_[key(at)] = std::move(made));
}

Uniqueness::Repair Uniqueness::repair_within(const Position& at, const MaskRecord& record, uint32_t limit) {
  Repair made;
  limit_ = limit;
  settle_doubts(at, record, made);
  find_removed(at, made);
  limit_ = kNoCost;
  return made;
}

void Uniqueness::settle_doubts(const Position& at, const MaskRecord& record, Repair& out) {
  for (TokenId t : record.doubts) {
    const Position to = advance(at, request_.vocab().bytes(t));
    const bool fits = to.config != Request::kNoConfig && (limit_ >= kNoCost || cost(to) <= limit_);
    request_.take_doubt();
    if (request_.lacks_nodes()) return;
    (fits ? out.add : out.remove).push_back(t);
  }
}

// Follows the vocabulary as long as some stack is not free, or one has died of what was written: in what lies behind that,
// each token is tried.
void Uniqueness::find_removed(const Position& at, Repair& out) {
  const Config& c = request_.config(at.config);
  const Place start{c.items, c.accepting, at.recording};
  if (all_free(start)) return;
  const TokenTrie& trie = request_.vocab().trie();
  std::vector<Near> stack{{TokenTrie::kRoot, start, false}};
  while (!stack.empty() && !request_.lacks_nodes()) {
    const Near near = std::move(stack.back());
    stack.pop_back();
    if (near.lost) {
      for (TrieNode n = trie.first_child(near.node), e = n + trie.child_count(near.node); n < e; ++n)
        look_at(near, n, stack, out);
      continue;
    }
    for (uint8_t b : near_bytes(near)) {
      const TrieNode n = trie.child(near.node, b);
      if (n != kNoNode) look_at(near, n, stack, out);
    }
  }
}

void Uniqueness::look_at(const Near& near, TrieNode child, std::vector<Near>& stack, Repair& out) {
  const TokenTrie& trie = request_.vocab().trie();
  refused_ = false;
  Place to = step(near.place, trie.byte(child));
  request_.take_doubt();
  const bool lost = near.lost || refused_;
  if (to.items.empty() && !to.accepting) {
    if (lost) trie.collect(child, out.remove);
    return;
  }
  if (!lost && all_free(to)) return;
  if (trie.has_tokens(child)) {
    const auto tokens = trie.tokens(child);
    if (!any_fits(to)) out.remove.insert(out.remove.end(), tokens.begin(), tokens.end());
    else if (limit_ < kNoCost) out.add.insert(out.add.end(), tokens.begin(), tokens.end());
  }
  if (trie.child_count(child) > 0) stack.push_back({child, std::move(to), lost});
}

// The bytes after which some stack may be not free yet, or dead.
std::vector<uint8_t> Uniqueness::near_bytes(const Near& near) {
  const Recording r = recorder_.recording(near.place.recording);
  if (r.mode != Recording::String || r.sub != 0) return bytes_from(near.place.items, near.place.recording, true);
  std::vector<uint8_t> out{'"', '\\'};
  for (const Item& item : near.place.items)
    if (concerns(item)) is_free_at(item, near.place.recording, false, &out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace mw
