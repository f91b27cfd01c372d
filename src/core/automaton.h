// A regex automaton with what is known about it per vocabulary: bases, and the tokens it takes to finish.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bases.h"
#include "regex_dfa.h"
#include "vocab.h"

namespace mw {

class Automaton {
 public:
  explicit Automaton(std::shared_ptr<RegexDfa> dfa) : dfa_(std::move(dfa)) {}
  Automaton(const Automaton&) = delete;
  Automaton& operator=(const Automaton&) = delete;

  RegexDfa& dfa() const { return *dfa_; }
  RegexBases& bases(const Vocab& vocab, Transport transport);

  // Fewest tokens from a state (with `sub` of a character read) to the end of a match; inside a JSON string the closing
  // quote included. Exact for raw text: a search over the states before the first accepting ones. Past kMaxSearch states
  // an upper bound by the shortest text, byte by byte.
  uint32_t finish_tokens(Vocab& vocab, Transport transport, DfaState state, Sub sub);
  // No state between characters needs more bytes than this to finish (characters that JSON must escape counted as
  // escapes, no closing quote); kNoCost where there are too many states to look at.
  uint32_t widest_finish();

 private:
  static constexpr size_t kMaxSearch = 2000;
  struct PerVocab {
    uint64_t vocab;
    Transport transport;
    std::unique_ptr<RegexBases> bases;
    std::unordered_map<uint64_t, uint32_t> finish;  // by state << 20 | sub
  };
  uint32_t search_finish(Vocab& vocab, Transport transport, DfaState state);
  uint32_t finish_character(Vocab& vocab, DfaState state, Sub sub);
  uint32_t shortest_bytes(DfaState state);
  uint32_t dearest_successor(DfaState state);
  PerVocab& per_vocab(const Vocab& vocab, Transport transport);

  std::shared_ptr<RegexDfa> dfa_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PerVocab>> per_vocab_;
  std::unordered_map<DfaState, uint32_t> shortest_;
  bool too_wide_ = false;
  std::once_flag explored_;
  uint32_t widest_ = kNoCost;
};

}  // namespace mw
