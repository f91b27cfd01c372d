#include "token_trie.h"

#include <algorithm>
#include <numeric>

namespace mw {

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

class TokenTrie::Builder {
 public:
  // The strings in ascending order, and the id of each.
  Builder(std::span<const std::string_view> sorted, std::span<const TokenId> ids) : sorted_(sorted), ids_(ids) {
    const size_t n = count_nodes();
    nodes.reserve(n);
    bytes.reserve(n);
    parents.reserve(n);
    nodes.emplace_back();
    bytes.push_back(0);
    parents.push_back(kNoNode);
  }

  void run() {
    std::vector<Job> jobs{{kRoot, 0, static_cast<uint32_t>(sorted_.size()), 0}};
    while (!jobs.empty()) {
      Job job = jobs.back();
      jobs.pop_back();
      uint32_t own = job.lo;
      while (own < job.hi && sorted_[own].size() == job.depth) ++own;
      if (own > job.lo) set_tokens(job.node, ids_.subspan(job.lo, own - job.lo));
      job.lo = own;
      if (job.lo < job.hi) add_children(job, jobs);
    }
    settle_ends();
  }

  std::vector<Node> nodes;
  std::vector<uint8_t> bytes;
  std::vector<TrieNode> ends, parents;
  std::vector<Range> lists;
  std::vector<TokenId> duplicates;

 private:
  struct Job {
    TrieNode node;
    uint32_t lo, hi, depth;
  };

  // The root, and of each string what it does not share with the one before.
  size_t count_nodes() const {
    size_t n = 1;
    std::string_view before;
    for (const std::string_view s : sorted_) {
      n += static_cast<size_t>(s.end() - std::mismatch(s.begin(), s.end(), before.begin(), before.end()).first);
      before = s;
    }
    return n;
  }

  void set_tokens(TrieNode n, std::span<const TokenId> ids) {
    if (ids.size() == 1) {
      nodes[n].token = static_cast<int32_t>(ids[0]);
      return;
    }
    lists.push_back({static_cast<uint32_t>(duplicates.size()), static_cast<uint32_t>(ids.size())});
    duplicates.insert(duplicates.end(), ids.begin(), ids.end());
    nodes[n].token = -static_cast<int32_t>(lists.size() - 1) - 2;
  }

  // Appends the children of a node as one block and leaves a job for each, the last on top: so each child's own
  // descendants follow the block in order, and the descendants of the node are contiguous.
  void add_children(const Job& job, std::vector<Job>& jobs) {
    const auto first = static_cast<TrieNode>(nodes.size());
    const size_t jobs_before = jobs.size();
    for (uint32_t i = job.lo; i < job.hi;) {
      const auto b = static_cast<uint8_t>(sorted_[i][job.depth]);
      uint32_t j = i + 1;
      while (j < job.hi && static_cast<uint8_t>(sorted_[j][job.depth]) == b) ++j;
      jobs.push_back({static_cast<TrieNode>(nodes.size()), i, j, job.depth + 1});
      nodes.emplace_back();
      bytes.push_back(b);
      parents.push_back(job.node);
      i = j;
    }
    std::reverse(jobs.begin() + static_cast<std::ptrdiff_t>(jobs_before), jobs.end());
    nodes[job.node].first = first;
    nodes[job.node].count = static_cast<uint32_t>(nodes.size()) - first;
  }

  // Children have larger indices than their parents, so one pass from the back does.
  void settle_ends() {
    ends.resize(nodes.size());
    for (size_t n = nodes.size(); n-- > 0;) {
      const Node& node = nodes[n];
      ends[n] = static_cast<TrieNode>(n + 1);
      if (node.count == 0) continue;
      ends[n] = node.first + node.count;
      for (TrieNode c = node.first, last = node.first + node.count; c < last; ++c)
        if (nodes[c].count) ends[n] = std::max(ends[n], ends[c]);
    }
  }

  std::span<const std::string_view> sorted_;
  std::span<const TokenId> ids_;
};

void TokenTrie::build(std::span<const std::string_view> strings, std::span<const TokenId> ids) {
  const std::vector<Keyed> order = sort_strings(strings, ids);
  std::vector<std::string_view> sorted(order.size());
  std::vector<TokenId> sorted_ids(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sorted[i] = strings[order[i].index];
    sorted_ids[i] = ids[order[i].index];
  }
  Builder made(sorted, sorted_ids);
  made.run();
  nodes_ = FlatArray(std::move(made.nodes));
  bytes_ = FlatArray(std::move(made.bytes));
  ends_ = FlatArray(std::move(made.ends));
  parents_ = FlatArray(std::move(made.parents));
  lists_ = FlatArray(std::move(made.lists));
  duplicates_ = FlatArray(std::move(made.duplicates));
  index_root();
}

void TokenTrie::index_root() {
  std::fill(std::begin(root_), std::end(root_), kNoNode);
  for (TrieNode c = nodes_[0].first; c < nodes_[0].first + nodes_[0].count; ++c) root_[bytes_[c]] = c;
}

void TokenTrie::save(image::Writer& out) const {
  out.put(nodes_.all());
  out.put(bytes_.all());
  out.put(ends_.all());
  out.put(parents_.all());
  out.put(lists_.all());
  out.put(duplicates_.all());
}

bool TokenTrie::load(image::Reader& in, size_t n_ids) {
  nodes_ = FlatArray(in.take<Node>());
  bytes_ = FlatArray(in.take<uint8_t>());
  ends_ = FlatArray(in.take<TrieNode>());
  parents_ = FlatArray(in.take<TrieNode>());
  lists_ = FlatArray(in.take<Range>());
  duplicates_ = FlatArray(in.take<TokenId>());
  if (!in.good() || !is_sound(n_ids)) return false;
  index_root();
  return true;
}

// Whether all indices lie inside the arrays.
bool TokenTrie::is_sound(size_t n_ids) const {
  const size_t n = nodes_.size();
  if (n == 0 || bytes_.size() != n || ends_.size() != n || parents_.size() != n) return false;
  for (size_t i = 0; i < n; ++i) {
    const Node& node = nodes_[i];
    if (node.count > 0 && (node.first <= i || node.first > n || node.count > n - node.first)) return false;
    if (node.token >= 0 && static_cast<size_t>(node.token) >= n_ids) return false;
    if (node.token < kNoToken && static_cast<size_t>(-(node.token + 2)) >= lists_.size()) return false;
    if (ends_[i] > n || (node.count > 0 && ends_[i] < node.first + node.count) || (i > 0 && parents_[i] >= i)) return false;
  }
  const auto inside = [&](const Range& r) { return r.begin <= duplicates_.size() && r.count <= duplicates_.size() - r.begin; };
  return std::all_of(lists_.begin(), lists_.end(), inside) &&
         std::all_of(duplicates_.begin(), duplicates_.end(), [&](TokenId t) { return t < n_ids; });
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
