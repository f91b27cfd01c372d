// A regex automaton with what is known about it per vocabulary: bases, and the tokens it takes to finish.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bases.h"
#include "regex_count.h"
#include "regex_dfa.h"
#include "vocab.h"

namespace mw {

class Automaton {
 public:
  explicit Automaton(std::shared_ptr<RegexDfa> dfa);
  Automaton(const Automaton&) = delete;
  Automaton& operator=(const Automaton&) = delete;

  RegexDfa& dfa() const { return *dfa_; }
  StringCounts& counts() { return counts_; }
  uint32_t serial() const { return serial_; }  // no other automaton of the process has it
  RegexBases& bases(const Vocab& vocab, Transport transport);

  // Fewest tokens from a state (with `sub` of a character read) to the end of a match; inside a JSON string the closing
  // quote included. Every cost is that of a witness each of whose tokens lowers it by one or more. The least there is, by a
  // search over the states before the first accepting ones, where they are few. With more than kMaxSearch of those inside
  // characters, tokens that join one character's end to another's beginning are left out; with as many between characters
  // it is the bytes of a shortest text. kNoCost where not even that can be said.
  uint32_t finish_tokens(Vocab& vocab, Transport transport, DfaState state, Sub sub);
  // No state between characters needs more bytes than this to finish (characters that JSON must escape counted as
  // escapes, no closing quote); kNoCost where there are too many states to look at.
  uint32_t widest_finish(const Vocab& vocab, Transport transport);

 private:
  static constexpr size_t kMaxSearch = 2000;
  static constexpr size_t kMaxWideSearch = 8;  // where a search would only cost time
  static constexpr int64_t kMaxWalk = 100'000;  // characters
  struct PerVocab {
    PerVocab(const Vocab& v, Transport t, RegexDfa& dfa) : vocab(v.serial()), transport(t), bases(dfa, t) {}
    uint64_t vocab;
    Transport transport;
    RegexBases bases;
    std::unordered_map<uint64_t, uint32_t> finish;      // by state << 20 | sub
    std::unordered_map<uint64_t, uint32_t> characters;  // likewise, inside a character that is finished byte by byte
    bool searches_inside = true;                        // the states inside characters were few so far
    std::unordered_map<DfaState, uint32_t> shortest;    // in bytes
    std::once_flag explored;
    uint32_t widest = kNoCost;
  };
  uint32_t finish(PerVocab& here, Vocab& vocab, DfaState state, Sub sub);
  void search_finish(PerVocab& here, Vocab& vocab, uint64_t from);
  uint32_t finish_character(PerVocab& here, Vocab& vocab, DfaState state, Sub sub);
  uint32_t shortest_bytes(PerVocab& here, const Vocab& vocab, DfaState state);
  const RegexDfa::Successor* nearest(const std::vector<RegexDfa::Successor>& next,
                                     const std::vector<std::pair<DfaState, uint32_t>>& path) const;
  size_t most_searched() const { return dfa_->is_wide() ? kMaxWideSearch : kMaxSearch; }
  uint32_t explore_bytes(const Vocab& vocab, Transport transport);
  PerVocab& per_vocab(const Vocab& vocab, Transport transport);

  std::shared_ptr<RegexDfa> dfa_;
  StringCounts counts_;
  uint32_t serial_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PerVocab>> per_vocab_;
  bool too_wide_ = false;
};

}  // namespace mw
