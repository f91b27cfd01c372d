#include "ascii_runs.h"

#include <algorithm>

#include "class_base.h"

namespace mw {
namespace {

constexpr CharSet129 kAscii{~uint64_t{0}, ~uint64_t{0}, false};

// Sets have all of these characters or none, nearly always: so they have no bitsets of their own.
bool is_control(size_t c) { return c < 0x20 || c == 0x7f; }

}  // namespace

CharSet129 AsciiRuns::without(unsigned first, unsigned last) {
  CharSet129 set = kAscii;
  for (unsigned c = first; c <= last; ++c) (c < 64 ? set.lo : set.hi) &= ~(uint64_t{1} << (c & 63));
  return set;
}

template <class F>
void AsciiRuns::each_lacking(const CharSet129& set, F f) {
  for (size_t g = 0; g < std::size(kGroups); ++g) {
    unsigned there = 0;
    for (unsigned c = kGroups[g].first; c <= kGroups[g].last; ++c) there += has(set, c);
    if (there == 0) f(128 + g);
    else
      for (unsigned c = kGroups[g].first; c <= kGroups[g].last; ++c)
        if (!has(set, c)) f(size_t{c});
  }
}

void AsciiRuns::save(image::Writer& out, const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size) {
  std::vector<uint64_t> ended;
  Words tokens;
  for (size_t i = 0; i < kN; ++i) {
    if (i < 128 && is_control(i)) {
      ended.resize(ended.size() + (trie.descendants(TokenTrie::kRoot) + 63) / 64, 0);
      tokens.resize(tokens.size() + words_for(vocab_size), 0);
      continue;
    }
    const Group g = i < 128 ? Group{static_cast<uint8_t>(i), static_cast<uint8_t>(i)} : kGroups[i - 128];
    const ClassBase base(trie, marks, vocab_size, TokenTrie::kRoot, without(g.first, g.last), {});
    base.append_to(ended, tokens);
  }
  out.put(std::span<const uint64_t>(ended));
  out.put(std::span<const uint32_t>(tokens));
}

bool AsciiRuns::load(image::Reader& in, const TokenTrie& trie, size_t vocab_size) {
  ended_ = in.take<uint64_t>();
  tokens_ = in.take<uint32_t>();
  n_ended_ = (trie.descendants(TokenTrie::kRoot) + 63) / 64;
  n_tokens_ = words_for(vocab_size);
  return in.good() && ended_.size() == kN * n_ended_ && tokens_.size() == kN * n_tokens_;
}

bool AsciiRuns::suits(const CharSet129& set, const OtherChars& others) const {
  constexpr int kMany = 24;  // the runs of a few characters are soon followed
  if (ended_.empty() || set.other || !others.empty()) return false;
  const uint64_t controls = set.lo & 0xffffffffu;
  if (controls != 0 && controls != 0xffffffffu) return false;
  return __builtin_popcountll(set.lo) + __builtin_popcountll(set.hi) >= kMany;
}

void AsciiRuns::find(const CharSet129& set, std::vector<uint64_t>& ended, Words& tokens) const {
  bool first = true;
  each_lacking(set, [&](size_t i) {
    const auto e = ended_.subspan(i * n_ended_, n_ended_);
    const auto t = tokens_.subspan(i * n_tokens_, n_tokens_);
    if (first) {
      ended.assign(e.begin(), e.end());
      tokens.assign(t.begin(), t.end());
      first = false;
      return;
    }
    for (size_t k = 0; k < n_ended_; ++k) ended[k] &= e[k];
    for (size_t k = 0; k < n_tokens_; ++k) tokens[k] &= t[k];
  });
}

}  // namespace mw
