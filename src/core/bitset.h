// Token bitsets: bit i of word w is token 32*w+i, the layout of the masks that leave the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mw {

using TokenId = uint32_t;
using Words = std::vector<uint32_t>;

inline size_t words_for(size_t bits) { return (bits + 31) / 32; }
inline void set_bit(uint32_t* words, TokenId t) { words[t >> 5] |= 1u << (t & 31); }
inline void clear_bit(uint32_t* words, TokenId t) { words[t >> 5] &= ~(1u << (t & 31)); }
inline bool test_bit(const uint32_t* words, TokenId t) { return (words[t >> 5] >> (t & 31)) & 1u; }

// An immutable set of tokens: a list while small, a bitset where that is cheaper to OR than to scatter.
// 512 scattered writes cost about what OR-ing 16 KB costs.
class TokenSet {
 public:
  TokenSet() = default;
  TokenSet(std::vector<TokenId> tokens, size_t vocab_size) {
    if (tokens.size() * 256 > vocab_size && tokens.size() > 64) {
      words_.assign(words_for(vocab_size), 0);
      for (TokenId t : tokens) set_bit(words_.data(), t);
    } else {
      list_ = std::move(tokens);
    }
  }
  explicit TokenSet(Words words) : words_(std::move(words)) {}
  bool empty() const {
    return list_.empty() && std::all_of(words_.begin(), words_.end(), [](uint32_t w) { return w == 0; });
  }
  size_t bytes_used() const { return words_.capacity() * sizeof(uint32_t) + list_.capacity() * sizeof(TokenId); }
  std::vector<TokenId> without(std::vector<TokenId> tokens) const {
    std::vector<TokenId> out = list_;
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint32_t bits = words_[w]; bits != 0; bits &= bits - 1)
        out.push_back(static_cast<TokenId>(w * 32) + static_cast<TokenId>(__builtin_ctz(bits)));
    std::sort(tokens.begin(), tokens.end());
    std::erase_if(out, [&](TokenId t) { return std::binary_search(tokens.begin(), tokens.end(), t); });
    return out;
  }
  bool dense() const { return !words_.empty(); }
  const Words& words() const { return words_; }
  const std::vector<TokenId>& list() const { return list_; }

 private:
  Words words_;
  std::vector<TokenId> list_;
};

// Collects tokens, each once, into a set.
class TokenCollector {
 public:
  explicit TokenCollector(size_t vocab_size) : vocab_size_(vocab_size) {}
  void add(std::span<const TokenId> tokens) {
    for (TokenId t : tokens) {
      if (!words_.empty()) set_bit(words_.data(), t);
      else list_.push_back(t);
    }
    if (words_.empty() && list_.size() > 64 && list_.size() * 256 > vocab_size_) widen();
  }
  TokenSet finish() { return words_.empty() ? TokenSet(std::move(list_), vocab_size_) : TokenSet(std::move(words_)); }

 private:
  void widen() {
    words_.assign(words_for(vocab_size_), 0);
    for (TokenId t : list_) set_bit(words_.data(), t);
    list_ = {};
  }
  size_t vocab_size_;
  std::vector<TokenId> list_;
  Words words_;
};

}  // namespace mw
