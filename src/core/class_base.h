// Runs of characters of one set S from some node of the vocabulary: which nodes lie on them, what stays inside, where
// they are left. What only some questions ask for is worked out when it is asked for.
#pragma once

#include <algorithm>
#include <bitset>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ascii_runs.h"
#include "bitset.h"
#include "char_decoder.h"
#include "regex_dfa.h"
#include "token_trie.h"
#include "trie_marks.h"

namespace mw {

// Where S has some of the characters beyond ASCII but not all, tokens that end inside one of them, and the others, are
// listed for a test of their own. Characters are counted as they begin.
class ClassBase {
 public:
  struct Cut {
    TokenId token;
    Sub sub;
    uint32_t chars;  // before the cut one
  };
  struct Other {
    TrieNode node;  // behind a character that is not in S
    uint32_t code_point;
    uint32_t chars;  // before it
  };
  ClassBase(const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size, TrieNode node, const CharSet129& set,
            const OtherChars& others);
  // The same from the base of all characters: much quicker for a set that leaves out little.
  ClassBase(const ClassBase& whole, const CharSet129& set, const OtherChars& others);
  // From the root, a set of many ASCII characters and no others.
  ClassBase(const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size, const AsciiRuns& runs, const CharSet129& set);
  // Whether that pays.
  static bool is_wide(const CharSet129& set, const OtherChars& others);

  const TokenSet& stay() const { return stay_; }                 // tokens inside S*
  const TokenSet& stay_up_to(uint32_t chars) const;              // of at most so many characters; made once a bound
  uint32_t deepest() const;                                      // most characters on a run, token or not
  const std::vector<uint32_t>& counts() const;                   // of characters in tokens that end between two, ascending
  // What it takes now; bounds asked for later add to it.
  size_t bytes_used() const {
    return sizeof(ClassBase) + (ended_.size() + inside_.size()) * sizeof(uint64_t) + stay_.bytes_used() +
           cuts_.capacity() * sizeof(Cut) + others_.capacity() * sizeof(Other);
  }
  const std::vector<Cut>& cuts() const { return cuts_; }
  const std::vector<Other>& others() const { return others_; }

  // The bits of `ended`, and the tokens, behind those of others.
  void append_to(std::vector<uint64_t>& ended, Words& tokens) const;

  // Calls f(child, byte, characters before) where a run is left by one of these bytes; none of them begins a
  // character of S.
  template <class F>
  void each_exit(const std::bitset<256>& bytes, F f) const;
  // Calls f(node, characters) where a character of S has just ended.
  template <class F>
  void each_end(F f) const {
    each_bit(ended_, [&](TrieNode n) { f(n, chars(n)); });
  }

 private:
  using Bits = std::vector<uint64_t>;
  template <class F>
  void each_bit(const Bits& bits, F f) const {
    for (size_t w = 0; w < bits.size(); ++w)
      for (uint64_t left = bits[w]; left != 0; left &= left - 1)
        f(first_ + static_cast<TrieNode>(w * 64) + static_cast<TrieNode>(__builtin_ctzll(left)));
  }
  static bool has(const Bits& bits, TrieNode i) { return ((bits[i >> 6] >> (i & 63)) & 1u) != 0; }
  static void set(Bits& bits, TrieNode i) { bits[i >> 6] |= uint64_t{1} << (i & 63); }
  uint32_t chars(TrieNode n) const { return marks_->chars(n) - marks_->chars(node_); }
  TokenSet find_up_to(uint32_t most_from_root) const;
  Sub sub_of(TrieNode n, uint32_t* code_point) const;
  void find(const CharSet129& set, const OtherChars& others);
  void cut_down(const CharSet129& set, const OtherChars& others);
  void leave_out(TrieNode c);
  void step_boundary(TrieNode c, const CharSet129& set, bool beyond);
  void step_inside(TrieNode c, bool some, const OtherChars& others);

  const TokenTrie* trie_;
  const TrieMarks* marks_;
  size_t vocab_size_;
  TrieNode node_, first_;
  Bits ended_, inside_;  // by descendant of the node: a character of S has just ended; one has begun
  size_t n_ended_ = 0;
  TokenCollector found_;
  TokenSet stay_;
  std::vector<Cut> cuts_;
  std::vector<Other> others_;
  mutable std::mutex mutex_;
  mutable uint32_t deepest_ = kUnknown;
  mutable std::once_flag counted_;
  mutable std::vector<uint32_t> counts_;
  mutable std::map<uint32_t, std::unique_ptr<TokenSet>> up_to_;
  static constexpr uint32_t kUnknown = 0xffffffffu;
};

template <class F>
void ClassBase::each_exit(const std::bitset<256>& bytes, F f) const {
  if (trie_->child_count(node_) == 0) return;
  const TrieNode end = trie_->end(node_);
  const auto within = [&](size_t b) {
    const auto all = marks_->with_byte(static_cast<uint8_t>(b));
    const auto from = std::lower_bound(all.begin(), all.end(), first_);
    return std::pair(from, std::lower_bound(from, all.end(), end));
  };
  size_t there = 0;
  for (size_t b = 0; b < 256; ++b)
    if (bytes.test(b)) {
      const auto [from, to] = within(b);
      there += static_cast<size_t>(to - from);
    }
  if (there > 2 * n_ended_) {  // few runs: look at what follows each
    const auto leave = [&](TrieNode n, uint32_t k) {
      for (TrieNode c = trie_->first_child(n), e = c + trie_->child_count(n); c < e; ++c)
        if (bytes.test(trie_->byte(c))) f(c, trie_->byte(c), k);
    };
    leave(node_, 0);
    each_end(leave);
    return;
  }
  for (size_t b = 0; b < 256; ++b) {
    if (!bytes.test(b)) continue;
    const auto [from, to] = within(b);
    for (auto it = from; it != to; ++it) {
      const TrieNode p = trie_->parent(*it);
      if (p == node_) f(*it, static_cast<uint8_t>(b), 0u);
      else if (has(ended_, p - first_)) f(*it, static_cast<uint8_t>(b), chars(p));
    }
  }
}

}  // namespace mw
