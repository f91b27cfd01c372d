// Runs of ASCII characters from the root of a vocabulary, for any set of them, by intersection.
//
// A path lies in two sets of characters if and only if it lies in what they have in common. So the runs of a set are the
// intersection of the runs of all ASCII characters but one, over the characters that it lacks: some dozens of bitsets to go
// through instead of the vocabulary. Lacking groups have a bitset of their own. Making all of them takes as long as a hundred
// class bases: they are there only where they come out of an image (image.h).
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "bitset.h"
#include "image.h"
#include "regex_dfa.h"

namespace mw {

class TokenTrie;
class TrieMarks;

class AsciiRuns {
 public:
  static void save(image::Writer& out, const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size);
  bool load(image::Reader& in, const TokenTrie& trie, size_t vocab_size);

  // Whether there are any, and to intersect them is quicker than to follow the runs.
  bool suits(const CharSet129& set, const OtherChars& others) const;
  // By descendant of the root, whether the path to it lies in the set; and the tokens that do.
  void find(const CharSet129& set, std::vector<uint64_t>& ended, Words& tokens) const;

 private:
  struct Group {
    uint8_t first, last;
  };
  static constexpr Group kGroups[] = {{0, 0x1f}, {0x20, 0x2f}, {'0', '9'}, {0x3a, 0x40}, {'A', 'Z'}, {0x5b, 0x60}, {'a', 'z'}, {0x7b, 0x7e}, {0x7f, 0x7f}};
  static constexpr size_t kN = 128 + std::size(kGroups);  // characters, then groups
  static bool has(const CharSet129& set, unsigned c) { return (((c < 64 ? set.lo : set.hi) >> (c & 63)) & 1u) != 0; }
  static CharSet129 without(unsigned first, unsigned last);
  // Calls f(number) for what the set lacks.
  template <class F>
  static void each_lacking(const CharSet129& set, F f);

  std::span<const uint64_t> ended_;   // kN times those of one
  std::span<const uint32_t> tokens_;
  size_t n_ended_ = 0, n_tokens_ = 0;
};

}  // namespace mw
