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

void LiveQuest::clear() {
  visits.clear();
  visit_of.clear();
  queue.clear();
  expanded = 0;
}

Life LiveSearch::decide(ExprId e) {
  own_.clear();
  return pursue(own_, e, SIZE_MAX, std::chrono::nanoseconds::max());
}

bool LiveSearch::visit(LiveQuest& quest, ExprId e, uint32_t depth) {
  const auto order = static_cast<uint32_t>(quest.visits.size());
  if (!quest.visit_of.emplace(e, order).second) return false;
  quest.visits.push_back({e, depth});
  const int64_t cost = int64_t{depth} + kGreed * std::min(pool_[e].min_len, kFar);
  quest.queue.emplace_back(cost, order);
  std::push_heap(quest.queue.begin(), quest.queue.end(), std::greater<>());
  return true;
}

Life LiveSearch::pursue(LiveQuest& quest, ExprId e, size_t max_states, std::chrono::nanoseconds slice) {
  if (pool_[e].life != Life::kUnknown) return pool_[e].life;
  using Clock = std::chrono::steady_clock;
  const bool timed = slice != std::chrono::nanoseconds::max();
  const auto start = timed ? Clock::now() : Clock::time_point();
  if (quest.visits.empty()) visit(quest, e, 0);
  while (!quest.queue.empty()) {
    if (quest.expanded >= max_states) return Life::kUnknown;
    ++quest.expanded;
    std::pop_heap(quest.queue.begin(), quest.queue.end(), std::greater<>());
    const uint32_t order = quest.queue.back().second;
    quest.queue.pop_back();
    quest.visits[order].expanded = true;
    const uint32_t depth = quest.visits[order].depth + 1;
    for (const ExprId d : expand(quest.visits[order].expr)) {
      if (pool_[d].life == Life::kLive) {
        settle(quest);
        return Life::kLive;
      }
      if (pool_[d].life == Life::kUnknown) visit(quest, d, depth);
    }
    if (timed && !quest.queue.empty() && Clock::now() - start > slice) return Life::kUnknown;
  }
  for (const LiveQuest::Visit& v : quest.visits) pool_.set_life(v.expr, Life::kDead);
  return Life::kDead;
}

namespace {

std::vector<bool> reaches(const std::vector<std::vector<uint32_t>>& into, std::vector<uint32_t> todo) {
  std::vector<bool> found(into.size(), false);
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

}  // namespace

// A live expression was met. What reaches one is live; what reaches neither one nor the unexplored frontier
// is dead; the rest stays open.
void LiveSearch::settle(const LiveQuest& quest) {
  std::vector<std::vector<uint32_t>> into(quest.visits.size());
  std::vector<uint32_t> live;
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < quest.visits.size(); ++i) {
    if (!quest.visits[i].expanded) {
      open.push_back(i);
      continue;
    }
    for (const ExprId d : expansions_.at(quest.visits[i].expr)) {
      if (pool_[d].life == Life::kLive) live.push_back(i);
      const auto it = quest.visit_of.find(d);
      if (it != quest.visit_of.end()) into[it->second].push_back(i);
    }
  }
  const std::vector<bool> is_live = reaches(into, std::move(live));
  const std::vector<bool> is_open = reaches(into, std::move(open));
  for (uint32_t i = 0; i < quest.visits.size(); ++i) {
    if (is_live[i]) pool_.set_life(quest.visits[i].expr, Life::kLive);
    if (!is_live[i] && !is_open[i]) pool_.set_life(quest.visits[i].expr, Life::kDead);
  }
}

}  // namespace mw
