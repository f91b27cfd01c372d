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

// Bytes that close a JSON string in which a character may have begun: all but the first of an escape in two halves, and
// the quote.
inline constexpr uint32_t kMostToClose = 13;

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
  // search over the states before the first accepting ones, where they are few. Where there are more than kFewStates,
  // tokens that end inside a character are left out; with more than kMaxSearch it is the bytes of a shortest text.
  // kNoCost where not even that can be said.
  // In bytes, a bound of the kind of widest().
  uint32_t finish(CostUnit unit, Vocab& vocab, Transport transport, DfaState state, Sub sub);
  // After no token of a base that stays inside are more tokens than this needed to finish, the closing quote included. A
  // bound by bytes, which costs next to nothing; kNoCost where there are too many states to look at.
  uint32_t widest(const RegexBase& base, const Vocab& vocab, Transport transport);
  // The same for whatever token from whatever state.
  uint32_t widest_finish(const Vocab& vocab, Transport transport);

 private:
  static constexpr size_t kFewStates = 32;      // a search that includes what lies inside characters is quick
  static constexpr size_t kNearStates = 64;     // so many are looked at for an end nearby
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
    bool is_small = true;                               // no search has met more than kFewStates
    bool is_far = false;                                // from some state no end is near
    std::unordered_map<uint32_t, uint32_t> class_bytes; // of a character, by class
    std::unordered_map<DfaState, uint32_t> shortest;    // in bytes
    std::unordered_map<DfaState, uint32_t> after_cut;   // likewise, the most after a character that has begun there
    bool is_explored = false;
    std::unordered_map<DfaState, uint32_t> bytes;       // of all states, once explored; empty where they are too many
    uint32_t widest = kNoCost;
  };
  uint32_t finish_tokens(PerVocab& here, Vocab& vocab, DfaState state, Sub sub);
  void search_finish(PerVocab& here, Vocab& vocab, uint64_t from);
  bool search_near(PerVocab& here, Vocab& vocab, DfaState from);
  uint32_t find_widest(PerVocab& here, const RegexBase& base, const Vocab& vocab);
  uint32_t bytes_to_end(PerVocab& here, const Vocab& vocab, DfaState state);
  uint32_t bytes_after_cut(PerVocab& here, const Vocab& vocab, DfaState state);
  uint32_t finish_character(PerVocab& here, Vocab& vocab, DfaState state, Sub sub);
  uint32_t shortest_bytes(PerVocab& here, const Vocab& vocab, DfaState state);
  const RegexDfa::Successor* nearest(const std::vector<RegexDfa::Successor>& next,
                                     const std::vector<std::pair<DfaState, uint32_t>>& path) const;
  size_t most_searched() const { return dfa_->is_wide() ? kMaxWideSearch : kMaxSearch; }
  void explore_bytes(PerVocab& here, const Vocab& vocab);
  PerVocab& per_vocab(const Vocab& vocab, Transport transport);

  std::shared_ptr<RegexDfa> dfa_;
  StringCounts counts_;
  uint32_t serial_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PerVocab>> per_vocab_;
  bool too_wide_ = false;
};

}  // namespace mw
