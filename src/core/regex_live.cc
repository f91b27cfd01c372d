#include "regex_live.h"

#include <algorithm>
#include <functional>

namespace mw {

namespace {

// Weight of the distance still known to be needed against the distance gone: high enough to run straight for
// a far minimum length, finite so that no endless branch of equal promise keeps the search.
constexpr int64_t kGreed = 4;
constexpr int64_t kFar = INT64_MAX / 16;

}  // namespace

ExprId LiveSearch::derivative(ExprId e, uint32_t cls) {
  const auto it = expansions_.find(e);
  return it == expansions_.end() ? pool_.derivative(e, cls) : it->second[cls];
}

const std::vector<ExprId>& LiveSearch::expand(ExprId e) {
  const auto [it, fresh] = expansions_.try_emplace(e);
  if (fresh) {
    it->second.resize(n_classes_);
    for (uint32_t c = 0; c < n_classes_; ++c) it->second[c] = pool_.derivative(e, c);
  }
  return it->second;
}

Life LiveSearch::decide(ExprId e, size_t max_states) {
  if (pool_[e].life != Life::kUnknown) return pool_[e].life;
  visits_.clear();
  visit_of_.clear();
  queue_.clear();
  visit(e, 0);
  return search(max_states);
}

bool LiveSearch::visit(ExprId e, uint32_t depth) {
  const auto order = static_cast<uint32_t>(visits_.size());
  if (!visit_of_.emplace(e, order).second) return false;
  visits_.push_back({e, depth});
  const int64_t cost = int64_t{depth} + kGreed * std::min(pool_[e].min_len, kFar);
  queue_.emplace_back(cost, order);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  return true;
}

Life LiveSearch::search(size_t max_states) {
  for (size_t n = 0; !queue_.empty(); ++n) {
    if (n >= max_states) return Life::kUnknown;
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const uint32_t order = queue_.back().second;
    queue_.pop_back();
    visits_[order].expanded = true;
    const uint32_t depth = visits_[order].depth + 1;
    for (const ExprId d : expand(visits_[order].expr)) {
      if (pool_[d].life == Life::kLive) {
        settle();
        return Life::kLive;
      }
      if (pool_[d].life == Life::kUnknown) visit(d, depth);
    }
  }
  for (const Visit& v : visits_) pool_.set_life(v.expr, Life::kDead);
  return Life::kDead;
}

// A live expression was met. What reaches one is live; what reaches neither one nor the unexplored frontier
// is dead; the rest stays open.
void LiveSearch::settle() {
  std::vector<std::vector<uint32_t>> into(visits_.size());
  std::vector<uint32_t> live;
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < visits_.size(); ++i) {
    if (!visits_[i].expanded) {
      open.push_back(i);
      continue;
    }
    for (const ExprId d : expansions_.at(visits_[i].expr)) {
      if (pool_[d].life == Life::kLive) live.push_back(i);
      const auto it = visit_of_.find(d);
      if (it != visit_of_.end()) into[it->second].push_back(i);
    }
  }
  const std::vector<bool> is_live = reaches(into, std::move(live));
  const std::vector<bool> is_open = reaches(into, std::move(open));
  for (uint32_t i = 0; i < visits_.size(); ++i) {
    if (is_live[i]) pool_.set_life(visits_[i].expr, Life::kLive);
    if (!is_live[i] && !is_open[i]) pool_.set_life(visits_[i].expr, Life::kDead);
  }
}

std::vector<bool> LiveSearch::reaches(const std::vector<std::vector<uint32_t>>& into,
                                      std::vector<uint32_t> todo) const {
  std::vector<bool> found(visits_.size(), false);
  while (!todo.empty()) {
    const uint32_t i = todo.back();
    todo.pop_back();
    if (found[i]) continue;
    found[i] = true;
    for (const uint32_t j : into[i]) {
      if (!found[j]) todo.push_back(j);
    }
  }
  return found;
}

}  // namespace mw
