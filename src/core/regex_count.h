// How many strings an automaton accepts from a state: as far as anyone wants to know.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "regex_dfa.h"

namespace mw {

// Thread-safe.
class StringCounts {
 public:
  explicit StringCounts(RegexDfa& dfa) : dfa_(dfa) {}

  // Whether more than n strings are accepted from a state.
  bool exceeds(DfaState s, uint64_t n);
  // Whether infinitely many are: certain if true, no where there are too many states to look at.
  bool infinite(DfaState s);
  // The shortest strings, as UTF-8: `most` of them, or all where there are fewer.
  std::vector<std::string> shortest(DfaState s, size_t most);
  // The fewest bytes within which more than n strings are, written in JSON with no escape that can be left out and without
  // the quotes; kNever where there are not so many.
  static constexpr uint32_t kNever = 0xffffffffu;
  uint32_t bytes_beyond(DfaState s, uint64_t n);
  // The strings within so many bytes, as UTF-8: there must be few.
  std::vector<std::string> within(DfaState s, uint32_t bytes);

 private:
  struct Known {
    uint64_t least = 0;
    bool exact = false;
  };
  struct Within {
    std::vector<uint64_t> total;  // by bytes: strings of at most so many
    bool complete = false;        // there are no longer ones
  };
  using Level = std::unordered_map<DfaState, uint64_t>;  // strings that lead to a state
  Known count(DfaState s, uint64_t most);
  bool has_circle(DfaState s);
  std::vector<std::pair<uint32_t, DfaState>> steps(DfaState s, size_t most);
  Within count_within(DfaState s, uint64_t most);
  const std::vector<RegexDfa::Successor>& successors(DfaState s);

  RegexDfa& dfa_;
  std::mutex mutex_;
  std::vector<RegexDfa::ClassBytes> class_bytes_;
  std::vector<RegexDfa::Successor> successors_;
  std::unordered_map<DfaState, Known> known_;
  std::unordered_map<DfaState, bool> infinite_;
  std::unordered_map<DfaState, Within> within_;
};

}  // namespace mw
