#include "trie_marks.h"

#include <algorithm>
#include <numeric>

#include "char_decoder.h"

namespace mw {

// Children have larger indices than their parents, so one pass does.
void TrieMarks::build(const TokenTrie& trie, size_t vocab_size) {
  const auto n = static_cast<TrieNode>(trie.size());
  std::vector<Sub> subs(n, 0);
  places_.assign(n, kBoundary);
  chars_.assign(n, 0);
  begin_.fill(0);
  beyond_.clear();
  for (TrieNode c = 1; c < n; ++c) {
    const uint8_t b = trie.byte(c);
    const TrieNode p = trie.parent(c);
    const bool begins = (b & 0xc0) != 0x80;
    ++begin_[b + 1u];
    chars_[c] = chars_[p] + (begins ? 1 : 0);
    if (b < 0x80) continue;
    const Decoded d = decode_utf8(begins ? 0 : subs[p], b);
    places_[c] = d.kind == Decoded::Char ? kBoundary : d.kind == Decoded::Partial ? kInside : kInvalid;
    if (d.kind == Decoded::Partial) subs[c] = d.value;
    if (d.kind == Decoded::Char) beyond_.push_back({c, d.value});
  }
  for (size_t b = 0; b < 256; ++b) begin_[b + 1] += begin_[b];
  by_byte_.resize(n > 0 ? n - 1 : 0);
  std::array<uint32_t, 257> at = begin_;
  for (TrieNode c = 1; c < n; ++c) by_byte_[at[trie.byte(c)]++] = c;
  count_characters(trie, vocab_size);
}

// A counting sort.
void TrieMarks::count_characters(const TokenTrie& trie, size_t vocab_size) {
  const auto n = static_cast<TrieNode>(trie.size());
  most_chars_ = n > 0 ? *std::max_element(chars_.begin(), chars_.end()) : 0;
  token_chars_.assign(vocab_size, 0);
  within_.assign(most_chars_ + 1, 0);
  for (TrieNode c = 1; c < n; ++c)
    for (const TokenId t : trie.tokens(c)) {
      token_chars_[t] = chars_[c];
      ++within_[chars_[c]];
    }
  std::vector<size_t> from(within_.size());
  std::exclusive_scan(within_.begin(), within_.end(), from.begin(), size_t{0});
  std::inclusive_scan(within_.begin(), within_.end(), within_.begin());
  by_chars_.resize(within_.empty() ? 0 : within_.back());
  for (TrieNode c = 1; c < n; ++c)
    for (const TokenId t : trie.tokens(c)) by_chars_[from[chars_[c]]++] = t;
}

}  // namespace mw
