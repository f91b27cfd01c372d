// Is the language of an expression with intersections or complements empty?
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regex_expr.h"

namespace mw {

// One search: what was met, and what is still to be looked into.
struct LiveQuest {
  struct Visit {
    ExprId expr;
    uint32_t depth;
    bool expanded = false;
  };
  std::vector<Visit> visits;
  std::unordered_map<ExprId, uint32_t> visit_of;
  std::vector<std::pair<int64_t, uint32_t>> queue;  // heap of (-cost, -order): small first
  size_t expanded = 0;

  void clear();
};

// Best-first search over derivatives for one that matches the empty text; every verdict is kept in the pool
// (Expr::life) and every derivative computed on the way is kept here. Not thread-safe.
class LiveSearch {
 public:
  LiveSearch(ExprPool& pool, uint32_t n_classes) : pool_(pool), n_classes_(n_classes) {}

  Life decide(ExprId e);
  // Begins a search, or takes it up again where it was left; others may have gone on in between. kUnknown when more than
  // max_states expressions would have to be expanded, or when the slice of time is over.
  Life pursue(LiveQuest& quest, ExprId e, size_t max_states, std::chrono::nanoseconds slice);
  // Like the pool's, remembered for expressions met in a search.
  ExprId derivative(ExprId e, uint32_t cls);

 private:
  const std::vector<ExprId>& expand(ExprId e);
  bool visit(LiveQuest& quest, ExprId e, uint32_t depth);
  void settle(const LiveQuest& quest);

  ExprPool& pool_;
  uint32_t n_classes_;
  std::unordered_map<ExprId, std::vector<ExprId>> expansions_;  // derivative by each class
  LiveQuest own_;                                               // of `decide`, kept for its memory
};

}  // namespace mw
