// Is the language of an expression with intersections or complements empty?
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "regex_expr.h"

namespace mw {

// Best-first search over derivatives for one that matches the empty text; every verdict is kept in the pool
// (Expr::life) and every derivative computed on the way is kept here. Not thread-safe.
class LiveSearch {
 public:
  LiveSearch(ExprPool& pool, uint32_t n_classes) : pool_(pool), n_classes_(n_classes) {}

  // kUnknown when more than max_states expressions would have to be expanded.
  Life decide(ExprId e, size_t max_states);
  // Like the pool's, remembered for expressions met in a search.
  ExprId derivative(ExprId e, uint32_t cls);

 private:
  struct Visit {
    ExprId expr;
    uint32_t depth;
    bool expanded = false;
  };
  const std::vector<ExprId>& expand(ExprId e);
  Life search(size_t max_states);
  bool visit(ExprId e, uint32_t depth);
  void settle();
  std::vector<bool> reaches(const std::vector<std::vector<uint32_t>>& into, std::vector<uint32_t> todo) const;

  ExprPool& pool_;
  uint32_t n_classes_;
  std::unordered_map<ExprId, std::vector<ExprId>> expansions_;  // derivative by each class
  std::vector<Visit> visits_;                                   // of the current search
  std::unordered_map<ExprId, uint32_t> visit_of_;
  std::vector<std::pair<int64_t, uint32_t>> queue_;             // heap of (-cost, -order): small first
};

}  // namespace mw
