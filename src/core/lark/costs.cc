#include "costs.h"

#include <algorithm>
#include <queue>

namespace mw::lark {

LooseCosts::LooseCosts(const Tables& tables, Lexer& lexer, Live& live, const std::vector<Guards>& rest, const std::map<Type, Sum>& fixed)
    : tables_(tables), terminals_(tables.terminals, kNoSum),
      rules_(tables.nonterminals, kNoSum), exits_(tables.states) {
  find_terminals(lexer, live, rest);
  for (const auto& [type, cost] : fixed) terminals_[type] = cost;
  find_rules();
  find_exits();
}

// Counts that would not fit are as good as none; bytes do, being below kNoCost.
LooseCosts::Sum LooseCosts::add(Sum a, Sum b) {
  constexpr Sum kHalf = Sum{1} << 62, kBlocks = kLine / kBlock / 2;
  if (a >= kHalf || b >= kHalf || (a % kBlock) + (b % kBlock) >= kNoCost) return kNoSum;
  return (a % kLine + b % kLine) / kBlock >= kBlocks ? kNoSum : a + b;
}

uint32_t LooseCosts::bytes(Sum sum, uint32_t column) {
  if (sum == kNoSum) return kNoCost;
  const Sum lines = sum / kLine, blocks = sum % kLine / kBlock;
  const Sum all = sum % kBlock + lines * (column + blocks);
  return all >= kNoCost ? kNoCost : static_cast<uint32_t>(all);
}

// The dearest of the lexers counts: each state has its own.
void LooseCosts::find_terminals(Lexer& lexer, Live& live, const std::vector<Guards>& rest) {
  const std::scoped_lock lock(live.mutex());
  std::vector<uint32_t> most(tables_.terminals, 0);
  const auto look = [&](LexState start, Guards before) {
    std::vector<uint32_t> here(tables_.terminals, kNoCost);
    for (const auto& o : live.outcomes(start, live.control(before)))
      if (o.feed) here[o.type] = std::min(here[o.type], o.cost);
    for (Type t = 0; t < tables_.terminals; ++t)
      if (here[t] < kNoCost) most[t] = std::max(most[t], here[t] + 1);
  };
  if (lexer.kind() == Lexer::Kind::First) {
    for (uint32_t i = 0; i < rest.size(); ++i) look(lexer.start(i), rest[i]);
  } else {
    for (Type t = 0; t < tables_.terminals; ++t) {
      std::vector<uint64_t> one(tables_.terminals / 64 + 1, 0);
      one[t / 64] |= uint64_t{1} << (t % 64);
      look(lexer.start(one), rest[0]);
    }
  }
  for (Type t = 0; t < tables_.terminals; ++t) terminals_[t] = most[t] == 0 ? kNoSum : most[t];
}

// Knuth 1977, by plain iteration.
void LooseCosts::find_rules() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& rule : tables_.rules) {
      Sum sum = 0;
      for (const uint32_t x : rule.body) sum = add(sum, symbol(x));
      if (sum >= rules_[rule.lhs]) continue;
      rules_[rule.lhs] = sum;
      changed = true;
    }
  }
}

bool LooseCosts::improve(uint32_t state, const Exit& exit) {
  for (Exit& e : exits_[state]) {
    if (e.lhs != exit.lhs || e.pops != exit.pops) continue;
    if (e.cost <= exit.cost) return false;
    e.cost = exit.cost;
    return true;
  }
  if (exit.cost == kNoSum) return false;
  exits_[state].push_back(exit);
  return true;
}

// From the ends of rules backwards along the automaton.
void LooseCosts::find_exits() {
  for (uint32_t s = 0; s < tables_.states; ++s) {
    const auto reduce = [&](uint32_t r) {
      if (!tables_.rules[r].body.empty()) improve(s, {tables_.rules[r].lhs, static_cast<uint32_t>(tables_.rules[r].body.size()) - 1, 0});
    };
    for (Type t = 0; t <= tables_.terminals; ++t)
      if (tables_.at(s, t) < 0) reduce(static_cast<uint32_t>(-tables_.at(s, t) - 1));
    if (tables_.general)
      for (const uint32_t r : tables_.reduces[s]) reduce(r);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = tables_.states; s-- > 0;) {
      const auto over = [&](uint32_t to, Sum cost) {
        for (const Exit& e : std::vector<Exit>(exits_[to]))
          if (e.pops > 0) changed = improve(s, {e.lhs, e.pops - 1, add(e.cost, cost)}) || changed;
      };
      for (Type t = 0; t < tables_.terminals; ++t)
        if (tables_.at(s, t) > 0) over(static_cast<uint32_t>(tables_.at(s, t) - 1), terminals_[t]);
      for (uint32_t a = 0; a < tables_.nonterminals; ++a)
        if (tables_.go_to(s, a) >= 0) over(static_cast<uint32_t>(tables_.go_to(s, a)), rules_[a]);
    }
  }
}

// Dijkstra's algorithm over nodes on top of which a nonterminal has ended; the places on the way it finds are known then.
class LooseCosts::Search {
 public:
  Search(const LooseCosts& costs, const Stacks& stacks, Memo& memo) : costs_(costs), stacks_(stacks), memo_(memo) {}

  void begin(NodeRef top) {
    const uint32_t state = stacks_.node(top).state;
    leave(top, state, 1, 0, kNone);
    // At the very start: the whole text.
    if (!stacks_.node(top).below.empty()) return;
    for (const auto& start : costs_.tables_.starts)
      if (start.state == state)
        for (uint32_t a = 0; a < costs_.tables_.nonterminals; ++a)
          if (costs_.tables_.go_to(state, a) == static_cast<int32_t>(start.end)) better(costs_.rules_[a], kNone);
  }
  Sum run() {
    while (!queue_.empty()) {
      const auto [cost, i] = queue_.top();
      queue_.pop();
      if (cost >= best_) break;
      if (met_[i].cost == cost) explore(i);
    }
    for (uint32_t i = last_; i != kNone; i = met_[i].from) memo_.places[met_[i].at] = best_ - met_[i].cost;
    return best_;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  using Place = std::pair<NodeRef, uint32_t>;
  struct Met {
    Place at;
    Sum cost;
    uint32_t from;
  };
  void leave(NodeRef n, uint32_t state, uint32_t more, Sum cost, uint32_t from) {
    for (const Exit& e : costs_.exits_[state]) {
      if (e.pops + more == 0) continue;
      for (const NodeRef m : stacks_.below(n, e.pops + more)) meet({m, e.lhs}, add(cost, e.cost), from);
    }
  }
  void explore(uint32_t i) {
    const auto [node, lhs] = met_[i].at;
    const Sum cost = met_[i].cost;
    if (const auto hit = memo_.places.find(met_[i].at); hit != memo_.places.end()) return better(add(cost, hit->second), i);
    const uint32_t state = stacks_.node(node).state;
    const int32_t to = costs_.tables_.go_to(state, lhs);
    if (to < 0) return;
    if (costs_.tables_.is_end(state, static_cast<uint32_t>(to)) && stacks_.node(node).below.empty()) better(cost, i);
    for (const Exit& e : costs_.exits_[static_cast<size_t>(to)])
      for (const NodeRef m : stacks_.below(node, e.pops)) meet({m, e.lhs}, add(cost, e.cost), i);
  }
  void better(Sum cost, uint32_t from) {
    if (cost >= best_) return;
    best_ = cost;
    last_ = from;
  }
  void meet(const Place& at, Sum cost, uint32_t from) {
    const auto [it, fresh] = seen_.try_emplace(at, static_cast<uint32_t>(met_.size()));
    if (fresh) met_.push_back({at, cost, from});
    else if (met_[it->second].cost <= cost) return;
    else met_[it->second] = {at, cost, from};
    queue_.push({cost, it->second});
  }

  const LooseCosts& costs_;
  const Stacks& stacks_;
  Memo& memo_;
  Sum best_ = kNoSum;
  uint32_t last_ = kNone;
  std::vector<Met> met_;
  std::map<Place, uint32_t> seen_;
  std::priority_queue<std::pair<Sum, uint32_t>, std::vector<std::pair<Sum, uint32_t>>, std::greater<>> queue_;
};

uint32_t LooseCosts::stack_cost(Stacks& stacks, Memo& memo, StackSet s, uint32_t column) const {
  const auto hit = memo.stacks.find(s);
  if (hit != memo.stacks.end()) return bytes(hit->second, column);
  Sum cost = 0;
  if (!stacks.complete(s)) {
    Search search(*this, stacks, memo);
    for (const NodeRef top : stacks.tops(s)) search.begin(top);
    cost = search.run();
  }
  memo.stacks.emplace(s, cost);
  return bytes(cost, column);
}

uint32_t LooseCosts::cost_of_start(uint32_t start) const { return bytes(sum_of_start(start), 0); }

LooseCosts::Sum LooseCosts::sum_of_start(uint32_t start) const {
  const auto& x = tables_.starts[start];
  if (x.empty >= 0) return 0;
  for (uint32_t a = 0; a < tables_.nonterminals; ++a)
    if (tables_.go_to(x.state, a) == static_cast<int32_t>(x.end)) return rules_[a];
  return kNoSum;
}

}  // namespace mw::lark
