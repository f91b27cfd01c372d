#include "trie_marks.h"

#include <algorithm>
#include <numeric>

#include "char_decoder.h"

namespace mw {

// Children have larger indices than their parents, so one pass does.
void TrieMarks::build(const TokenTrie& trie, size_t vocab_size) {
  const auto n = static_cast<TrieNode>(trie.size());
  std::vector<Sub> subs(n, 0);
  std::vector<uint8_t> places(n, kBoundary);
  std::vector<uint32_t> chars(n, 0);
  std::vector<Beyond> beyond;
  for (TrieNode c = 1; c < n; ++c) {
    const uint8_t b = trie.byte(c);
    const TrieNode p = trie.parent(c);
    const bool begins = (b & 0xc0) != 0x80;
    chars[c] = chars[p] + (begins ? 1 : 0);
    if (b < 0x80) continue;
    const Decoded d = decode_utf8(begins ? 0 : subs[p], b);
    places[c] = d.kind == Decoded::Char ? kBoundary : d.kind == Decoded::Partial ? kInside : kInvalid;
    if (d.kind == Decoded::Partial) subs[c] = d.value;
    if (d.kind == Decoded::Char) beyond.push_back({c, d.value});
  }
  places_ = FlatArray(std::move(places));
  chars_ = FlatArray(std::move(chars));
  beyond_ = FlatArray(std::move(beyond));
  index_bytes(trie);
  measure_heights(trie);
  count_characters(trie, vocab_size);
}

void TrieMarks::measure_heights(const TokenTrie& trie) {
  std::vector<uint8_t> heights(trie.size(), 0);
  for (auto c = static_cast<TrieNode>(trie.size()); c-- > 1;) {
    const unsigned here = heights[c] + ((trie.byte(c) & 0xc0) != 0x80 ? 1u : 0u);
    uint8_t& above = heights[trie.parent(c)];
    above = std::max(above, static_cast<uint8_t>(std::min(here, 255u)));
  }
  heights_ = FlatArray(std::move(heights));
}

// Counting sorts.
void TrieMarks::index_bytes(const TokenTrie& trie) {
  const auto n = static_cast<TrieNode>(trie.size());
  begin_.fill(0);
  for (TrieNode c = 1; c < n; ++c) ++begin_[trie.byte(c) + 1u];
  std::inclusive_scan(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<TrieNode> nodes(n > 0 ? n - 1 : 0);
  std::array<uint32_t, 257> at = begin_;
  for (TrieNode c = 1; c < n; ++c) nodes[at[trie.byte(c)]++] = c;
  by_byte_ = FlatArray(std::move(nodes));
}

void TrieMarks::count_characters(const TokenTrie& trie, size_t vocab_size) {
  const auto n = static_cast<TrieNode>(trie.size());
  const uint32_t most = n > 0 ? *std::max_element(chars_.begin(), chars_.end()) : 0;
  std::vector<uint32_t> of_token(vocab_size, 0);
  std::vector<uint64_t> within(most + 1, 0), from(most + 1);
  for (TrieNode c = 1; c < n; ++c)
    for (const TokenId t : trie.tokens(c)) {
      of_token[t] = chars_[c];
      ++within[chars_[c]];
    }
  std::exclusive_scan(within.begin(), within.end(), from.begin(), uint64_t{0});
  std::inclusive_scan(within.begin(), within.end(), within.begin());
  std::vector<TokenId> tokens(within.back());
  for (TrieNode c = 1; c < n; ++c)
    for (const TokenId t : trie.tokens(c)) tokens[from[chars_[c]]++] = t;
  token_chars_ = FlatArray(std::move(of_token));
  within_ = FlatArray(std::move(within));
  by_chars_ = FlatArray(std::move(tokens));
}

void TrieMarks::save(image::Writer& out) const {
  out.put(places_.all());
  out.put(chars_.all());
  out.put(heights_.all());
  out.put(token_chars_.all());
  out.put(by_chars_.all());
  out.put(within_.all());
  out.put(beyond_.all());
  out.put(by_byte_.all());
  out.put(std::span<const uint32_t>(begin_));
}

bool TrieMarks::load(image::Reader& in, const TokenTrie& trie, size_t vocab_size) {
  places_ = FlatArray(in.take<uint8_t>());
  chars_ = FlatArray(in.take<uint32_t>());
  heights_ = FlatArray(in.take<uint8_t>());
  token_chars_ = FlatArray(in.take<uint32_t>());
  by_chars_ = FlatArray(in.take<TokenId>());
  within_ = FlatArray(in.take<uint64_t>());
  beyond_ = FlatArray(in.take<Beyond>());
  by_byte_ = FlatArray(in.take<TrieNode>());
  const auto begin = in.take<uint32_t>();
  const size_t n = trie.size();
  if (!in.good() || begin.size() != begin_.size() || places_.size() != n || chars_.size() != n || heights_.size() != n) return false;
  std::copy(begin.begin(), begin.end(), begin_.begin());
  // Whether all indices lie inside the arrays.
  const auto ascend = [](const auto& all, size_t last) { return std::is_sorted(all.begin(), all.end()) && all[all.size() - 1] == last; };
  const auto below = [](const auto& all, size_t limit) { return std::all_of(all.begin(), all.end(), [&](size_t i) { return i < limit; }); };
  return token_chars_.size() == vocab_size && by_byte_.size() + 1 == n && !within_.empty() && ascend(begin_, by_byte_.size()) &&
         ascend(within_, by_chars_.size()) && below(by_byte_, n) && below(by_chars_, vocab_size) &&
         std::all_of(beyond_.begin(), beyond_.end(), [&](const Beyond& b) { return b.node < n; });
}

}  // namespace mw
