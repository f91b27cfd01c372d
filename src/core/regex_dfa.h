// Lazy deterministic automaton of a regular expression over code points.
//
// States are interned derivatives (Brzozowski 1964; Owens, Reppy, Turon 2009) with symbolic counters, so
// nothing is unrolled or determinised before it is reached. See regex_expr.h for the expressions.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mw {

struct LiveQuest;

// 0 = dead: no string is matched from here. Numbers are stable for the life of the automaton.
using DfaState = uint32_t;

// Bit c of lo (c < 64) or hi (bit c - 64) = ASCII c; other = ALL code points >= 0x80 (except surrogates).
struct CharSet129 {
  uint64_t lo = 0;
  uint64_t hi = 0;
  bool other = false;
};

// Code points >= 0x80 as sorted inclusive ranges.
using OtherChars = std::vector<std::pair<uint32_t, uint32_t>>;

// The largest set of code points leading to one live successor; see RegexDfa::widest.
struct Chain {
  CharSet129 set;
  DfaState next = 0;
  OtherChars others;  // those that lead there too where `set.other` does not say that all do
};

// Thread-safe: readers follow created transitions without a lock; states and transitions are created
// under one mutex.
class RegexDfa {
 public:
  // Reads the reverse Polish program of grammar/ir.py (to_program):
  // 0 EMPTY | 1 EPSILON | 2 CHARS n lo hi ... | 3 CAT n | 4 ALT n | 5 REPEAT min max(-1=inf) | 6 AND n | 7 NOT |
  // 8 MULTIPLE modulus scale remainder least most(-1=inf) room(-1=inf) read, of which see regex_multiple.h.
  // Returns nullptr and a message when the program is malformed.
  static std::shared_ptr<RegexDfa> from_program(std::span<const int64_t> rpn, std::string* error);

  RegexDfa(const RegexDfa&) = delete;
  RegexDfa& operator=(const RegexDfa&) = delete;
  ~RegexDfa();

  DfaState start() const;
  // Dead (0) exactly when nothing can match any more, also with AND and NOT. Surrogates are dead.
  DfaState next(DfaState s, uint32_t code_point);
  bool accepting(DfaState s) const;
  // The state is exactly ALL (every continuation matches) after simplification.
  bool is_universal(DfaState s) const;
  // Whatever is read from here on, something can follow that matches (by the expression's form: true is certain).
  bool is_total(DfaState s);
  // A state that nothing of at most so many code points tells from this one: the same for counts that are far from their
  // ends.
  DfaState near(DfaState s, uint32_t code_points);
  // The state of a language of which this one leaves out finitely many texts, where its form says so; else the state itself.
  // ALL also where it leaves out long texts only; and then the number of code points within which it leaves out none.
  DfaState without_exceptions(DfaState s);
  int64_t exception_distance(DfaState s);
  // Is there a code point c in [lo, hi] (surrogates never count) with next(s, c) != 0?
  bool any_live_in(DfaState s, uint32_t lo, uint32_t hi);
  // Any live transition at all.
  bool has_next(DfaState s);
  // The largest set of code points (ASCII by count; `other` only if all non-ASCII agree) leading to one
  // live successor; cached per state; empty set and next 0 when there is none.
  const Chain& widest(DfaState s);
  // ASCII code points with live transitions.
  void live_ascii(DfaState s, uint64_t out[2]);
  // The live successors by character class; code_point is the class's smallest.
  struct Successor {
    uint32_t code_point;
    DfaState next;
    uint32_t cls;
  };
  void successors(DfaState s, std::vector<Successor>& out);
  // The one state to which all code points of [lo, hi] lead; 0 where they differ, or some are dead.
  DfaState uniform_successor(DfaState s, uint32_t lo, uint32_t hi);
  // The live successors by the code points of [lo, hi], each once.
  void successors_in(DfaState s, uint32_t lo, uint32_t hi, std::vector<DfaState>& out);
  // By character class, how many of its code points take 0, 1, ... 6 bytes inside a JSON string (json_bytes).
  using ClassBytes = std::array<uint32_t, 7>;
  std::vector<ClassBytes> class_bytes() const;
  // The code points of a class up to one.
  void code_points(uint32_t cls, uint32_t last, std::vector<uint32_t>& out) const;
  // Syntactic bounds, in code points, of the state's expression; max -1 = infinite.
  int64_t min_length(DfaState s) const;
  int64_t max_length(DfaState s) const;
  // The start state's language: 1 empty, 0 not empty, -1 gave up after exploring max_states states.
  int is_empty_within(size_t max_states);
  friend class EmptinessSearch;
  size_t state_count() const;
  // There may be far too many states to go through, by its form.
  bool is_wide() const;

 private:
  struct Impl;
  explicit RegexDfa(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The question of RegexDfa::is_empty_within, asked in slices of time: other threads may use the automaton in between.
class EmptinessSearch {
 public:
  EmptinessSearch(RegexDfa& dfa, size_t max_states);
  ~EmptinessSearch();
  void run(std::chrono::nanoseconds slice);
  // None while the search is not over.
  std::optional<int> verdict() const { return verdict_; }

 private:
  RegexDfa& dfa_;
  size_t max_states_;
  std::unique_ptr<LiveQuest> quest_;
  std::optional<int> verdict_;
};

}  // namespace mw
