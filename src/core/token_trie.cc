#include "token_trie.h"

#include <algorithm>
#include <numeric>

namespace mw {

void TokenTrie::set_tokens(TrieNode n, std::span<const TokenId> ids) {
  if (ids.size() == 1) {
    nodes_[n].token = static_cast<int32_t>(ids[0]);
    return;
  }
  lists_.push_back({static_cast<uint32_t>(duplicates_.size()), static_cast<uint32_t>(ids.size())});
  duplicates_.insert(duplicates_.end(), ids.begin(), ids.end());
  nodes_[n].token = -static_cast<int32_t>(lists_.size() - 1) - 2;
}

// Appends the children of a node as one block and leaves a job for each, the last on top: so each child's own
// descendants follow the block in order, and the descendants of the node are contiguous.
void TokenTrie::add_children(const Job& job, std::span<const std::string_view> sorted, std::vector<Job>& jobs) {
  const auto first = static_cast<TrieNode>(nodes_.size());
  const size_t jobs_before = jobs.size();
  for (uint32_t i = job.lo; i < job.hi;) {
    const auto b = static_cast<uint8_t>(sorted[i][job.depth]);
    uint32_t j = i + 1;
    while (j < job.hi && static_cast<uint8_t>(sorted[j][job.depth]) == b) ++j;
    jobs.push_back({static_cast<TrieNode>(nodes_.size()), i, j, job.depth + 1});
    nodes_.emplace_back();
    bytes_.push_back(b);
    ends_.push_back(0);
    parents_.push_back(job.node);
    i = j;
  }
  std::reverse(jobs.begin() + static_cast<std::ptrdiff_t>(jobs_before), jobs.end());
  nodes_[job.node].first = first;
  nodes_[job.node].count = static_cast<uint32_t>(nodes_.size()) - first;
}

namespace {

// The first bytes of a string as a number, so that most comparisons need not look at the string.
uint64_t leading_bytes(std::string_view s) {
  uint64_t key = 0;
  for (size_t i = 0; i < sizeof key; ++i) key = key << 8 | (i < s.size() ? static_cast<uint8_t>(s[i]) : 0u);
  return key;
}

struct Keyed {
  uint64_t key;
  uint32_t index;
};

// Spreads the strings over the values of their first two bytes and leaves the end of each share in `ends`: what is then
// sorted fits into a cache. (A whole vocabulary: 12 ms instead of 50.)
std::vector<Keyed> spread(std::span<const Keyed> keyed, std::vector<uint32_t>& ends) {
  std::vector<uint32_t> at(1u << 16);
  for (const Keyed& k : keyed) ++at[k.key >> 48];
  std::exclusive_scan(at.begin(), at.end(), at.begin(), 0u);
  std::vector<Keyed> out(keyed.size());
  for (const Keyed& k : keyed) out[at[k.key >> 48]++] = k;
  ends = std::move(at);
  return out;
}

// The non-empty strings in ascending order, equal ones by their ids.
std::vector<Keyed> sort_strings(std::span<const std::string_view> strings, std::span<const TokenId> ids) {
  constexpr size_t kMany = 10000;
  std::vector<Keyed> order;
  order.reserve(strings.size());
  for (uint32_t i = 0; i < strings.size(); ++i)
    if (!strings[i].empty()) order.push_back({leading_bytes(strings[i]), i});
  std::vector<uint32_t> ends{static_cast<uint32_t>(order.size())};
  if (order.size() > kMany) order = spread(order, ends);
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    std::sort(order.begin() + begin, order.begin() + end, [&](const Keyed& a, const Keyed& b) {
      if (a.key != b.key) return a.key < b.key;
      const int c = strings[a.index].compare(strings[b.index]);
      return c != 0 ? c < 0 : ids[a.index] < ids[b.index];
    });
    begin = end;
  }
  return order;
}

}  // namespace

void TokenTrie::build(std::span<const std::string_view> strings, std::span<const TokenId> ids) {
  const std::vector<Keyed> order = sort_strings(strings, ids);
  std::vector<std::string_view> sorted(order.size());
  std::vector<TokenId> sorted_ids(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sorted[i] = strings[order[i].index];
    sorted_ids[i] = ids[order[i].index];
  }
  nodes_.assign(1, Node{});
  bytes_.assign(1, 0);
  ends_.assign(1, 0);
  parents_.assign(1, kNoNode);
  std::vector<Job> jobs{{kRoot, 0, static_cast<uint32_t>(sorted.size()), 0}};
  while (!jobs.empty()) {
    Job job = jobs.back();
    jobs.pop_back();
    uint32_t own = job.lo;
    while (own < job.hi && sorted[own].size() == job.depth) ++own;
    if (own > job.lo) set_tokens(job.node, std::span(sorted_ids).subspan(job.lo, own - job.lo));
    job.lo = own;
    if (job.lo < job.hi) add_children(job, sorted, jobs);
  }
  // Children have larger indices than their parents, so one pass from the back settles the ends.
  for (size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    ends_[n] = static_cast<TrieNode>(n + 1);
    if (node.count) {
      const TrieNode last = node.first + node.count - 1;
      ends_[n] = node.first + node.count;
      for (TrieNode c = node.first; c <= last; ++c)
        if (nodes_[c].count) ends_[n] = std::max(ends_[n], ends_[c]);
    }
  }
  std::fill(std::begin(root_), std::end(root_), kNoNode);
  for (TrieNode c = nodes_[0].first; c < nodes_[0].first + nodes_[0].count; ++c) root_[bytes_[c]] = c;
}

void TokenTrie::collect(TrieNode n, std::vector<TokenId>& out) const {
  const auto add = [&](TrieNode m) {
    const auto t = tokens(m);
    out.insert(out.end(), t.begin(), t.end());
  };
  add(n);
  if (nodes_[n].count == 0) return;
  for (TrieNode m = nodes_[n].first; m < ends_[n]; ++m) add(m);
}

void TokenTrie::path(TrieNode n, std::vector<uint8_t>& out) const {
  const size_t begin = out.size();
  for (; n != kRoot; n = parents_[n]) out.push_back(bytes_[n]);
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
}

}  // namespace mw
