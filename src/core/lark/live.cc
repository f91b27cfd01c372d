#include "live.h"

#include <algorithm>
#include <queue>
#include <set>

namespace mw::lark {
namespace {

constexpr size_t kMaxGuards = 4096;  // sets of them
constexpr size_t kMaxJobs = 8'000'000;

}  // namespace

Control Live::control(Guards g, TrieNode node) {
  const auto [it, fresh] = control_index_.try_emplace({g, node}, static_cast<Control>(controls_.size()));
  if (fresh) controls_.push_back({g, node});
  return it->second;
}

// A breadth-first walk by cost: bytes, or tokens where the trie is walked along.
const std::vector<Live::Outcome>& Live::outcomes(LexState q, Control c) {
  const auto hit = outcomes_.find({q, c});
  if (hit != outcomes_.end()) return hit->second;
  struct At {
    LexState q;
    Guards g;
    TrieNode n;
    bool operator==(const At&) const = default;
  };
  const auto hash = [](const At& at) { return static_cast<size_t>(mix(mix(mix(43, at.q), at.g), at.n)); };
  std::vector<Outcome> out;
  std::unordered_map<At, uint32_t, decltype(hash)> seen(64, hash);
  std::map<std::tuple<Type, bool, Control>, uint32_t> found;
  std::deque<std::pair<At, uint32_t>> work;
  const auto meet = [&](const At& at, uint32_t cost, bool dearer) {
    const auto [it, fresh] = seen.try_emplace(at, cost);
    if (!fresh && it->second <= cost) return;
    it->second = cost;
    if (dearer) work.push_back({at, cost});
    else work.push_front({at, cost});
  };
  const auto end = [&](Type t, bool ignore, bool feed, Control to, uint32_t cost) {
    const auto [it, fresh] = found.try_emplace({t, ignore && !feed, to}, static_cast<uint32_t>(out.size()));
    if (fresh) out.push_back({t, ignore, feed, to, cost});
    else out[it->second].cost = std::min(out[it->second].cost, cost);
  };
  meet({q, controls_[c].first, controls_[c].second}, 0, true);
  while (!work.empty()) {
    const auto [at, cost] = work.front();
    work.pop_front();
    if (seen[at] < cost) continue;
    for (const TokenEnd& e : lexer_.ends(at.q)) end(e.type, e.ignore, e.feed, control(lexer_.with(at.g, e.guard), at.n), cost);
    const auto step = [&](uint8_t b, TrieNode to, bool token, bool inside) {
      const LexState next = lexer_.next(at.q, b);
      const Guards g = next == 0 ? kVoidGuards : lexer_.next_guards(at.g, b);
      if (g == kVoidGuards) return;
      if (inside) meet({next, g, to}, cost, false);
      if (token) meet({next, g, TokenTrie::kRoot}, cost + 1, true);
    };
    if (trie_ == nullptr)
      for (uint32_t k = 0; k < lexer_.code().class_count(); ++k) step(lexer_.code().byte_of(k), TokenTrie::kRoot, true, false);
    else
      for (TrieNode n = trie_->first_child(at.n), e = n + trie_->child_count(at.n); n < e; ++n)
        step(trie_->byte(n), n, trie_->has_tokens(n), trie_->child_count(n) != 0);
  }
  return outcomes_.emplace(std::pair{q, c}, std::move(out)).first->second;
}

std::vector<LexState> Live::lexers(uint32_t state) {
  if (lexer_.kind() == Lexer::Kind::First) return {lexer_.start(tables_.general ? 0 : tables_.lexer_of[state])};
  std::vector<LexState> out;
  for (Type t = 0; t < tables_.terminals; ++t) {
    if (!lexer_.ignores(t) && !tables_.acts(state, t)) continue;
    std::vector<uint64_t> one((tables_.terminals + 63) / 64, 0);
    one[t / 64] |= uint64_t{1} << (t % 64);
    out.push_back(lexer_.start(one));
  }
  return out;
}

uint32_t Live::entry(const Point& p) {
  const auto [it, fresh] = index_.try_emplace(p, static_cast<uint32_t>(entries_.size()));
  if (fresh) {
    entries_.push_back({p, {}, kNoCost, {}});
    jobs_.push_back({it->second, true, false, {}});
  }
  return it->second;
}

const Live::Entry& Live::settled(const Point& p) {
  const uint32_t e = entry(p);
  run();
  return entries_[e];
}

void Live::run() {
  while (!jobs_.empty()) {
    if (++done_ > kMaxJobs || lexer_.guards_count() > kMaxGuards) throw LiveLimit(lexer_.most_guarded());
    const Job job = jobs_.front();
    jobs_.pop_front();
    if (job.fresh) {
      expand(job.entry);
      continue;
    }
    const std::map<Reader, uint32_t> readers = entries_[job.entry].readers;
    for (const auto& [reader, cost] : readers) {
      if (job.accept) accept(reader.entry, add_cost(entries_[job.entry].accept, cost));
      else pass(job.exit, entries_[job.entry].exits.at(job.exit), reader, cost);
    }
  }
}

void Live::expand_boundary(uint32_t e) {
  const Point p = entries_[e].point;
  for (const LexState start : lexers(p.state)) {
    const std::vector<Outcome>& out = outcomes(start, p.control);
    for (const Outcome& o : out) {
      if (o.ignore) read(entry({p.state, kBoundary, o.control}), {e, false}, o.cost);
      if (o.feed && tables_.acts(p.state, o.type)) read(entry({p.state, o.type, o.control}), {e, false}, o.cost);
    }
  }
  if (lexer_.may_end(controls_[p.control].first) && controls_[p.control].second == TokenTrie::kRoot &&
      tables_.acts(p.state, tables_.terminals))
    read(entry({p.state, tables_.terminals, p.control}), {e, false}, 0);
}

void Live::expand(uint32_t e) {
  const Point p = entries_[e].point;
  if (p.ahead == kBoundary) return expand_boundary(e);
  const auto reduce = [&](uint32_t r) {
    const auto& rule = tables_.rules[r];
    if (rule.length > 0) return improve(e, {rule.lhs, rule.length - 1, p.ahead, p.control}, 0);
    const int32_t to = tables_.go_to(p.state, rule.lhs);
    if (to < 0) return;
    if (p.ahead == tables_.terminals && tables_.is_end(p.state, static_cast<uint32_t>(to))) return accept(e, 0);
    read(entry({static_cast<uint32_t>(to), p.ahead, p.control}), {e, true}, 0);
  };
  const int32_t a = tables_.at(p.state, p.ahead);
  if (a < 0) reduce(static_cast<uint32_t>(-a - 1));
  if (a > 0) read(entry({static_cast<uint32_t>(a - 1), kBoundary, p.control}), {e, true}, 0);
  if (!tables_.general) return;
  for (const uint32_t r : tables_.reduces[p.state])
    if (tables_.follows(tables_.rules[r].lhs, p.ahead)) reduce(r);
}

void Live::read(uint32_t from, const Reader& reader, uint32_t cost) {
  const auto [it, fresh] = entries_[from].readers.try_emplace(reader, cost);
  if (!fresh && it->second <= cost) return;
  it->second = cost;
  const auto exits = entries_[from].exits;
  for (const auto& [exit, c] : exits) pass(exit, c, reader, cost);
  if (entries_[from].accept < kNoCost) accept(reader.entry, add_cost(entries_[from].accept, cost));
}

void Live::pass(const Exit& exit, uint32_t exit_cost, const Reader& reader, uint32_t cost) {
  const uint32_t sum = add_cost(exit_cost, cost);
  if (!reader.call) return improve(reader.entry, exit, sum);
  if (exit.pops > 0) return improve(reader.entry, {exit.lhs, exit.pops - 1, exit.ahead, exit.control}, sum);
  const uint32_t state = entries_[reader.entry].point.state;
  const int32_t to = tables_.go_to(state, exit.lhs);
  if (to < 0) return;
  if (exit.ahead == tables_.terminals && tables_.is_end(state, static_cast<uint32_t>(to))) return accept(reader.entry, sum);
  read(entry({static_cast<uint32_t>(to), exit.ahead, exit.control}), {reader.entry, true}, sum);
}

void Live::improve(uint32_t e, const Exit& exit, uint32_t cost) {
  const auto [it, fresh] = entries_[e].exits.try_emplace(exit, cost);
  if (!fresh && it->second <= cost) return;
  it->second = cost;
  jobs_.push_back({e, false, false, exit});
}

void Live::accept(uint32_t e, uint32_t cost) {
  if (entries_[e].accept <= cost) return;
  entries_[e].accept = cost;
  jobs_.push_back({e, false, true, {}});
}

// ---------------------------------------------------------------- a given stack

// Dijkstra's algorithm over the places where a nonterminal has ended. The places on the way that it finds are known then.
class Live::Search {
 public:
  Search(Live& live, const Stacks& stacks, Known& known) : live_(live), stacks_(stacks), known_(known) {}

  // What begins on top of a node with an entry of its state.
  void begin(NodeRef top, const Point& p, uint32_t cost) {
    const Entry& e = live_.settled(p);
    if (e.accept < kNoCost) better(add_cost(e.accept, cost), kNone);
    for (const auto& [exit, c] : e.exits)
      for (const NodeRef n : stacks_.below(top, exit.pops + 1)) meet({n, exit.lhs, exit.ahead, exit.control}, add_cost(cost, c), kNone);
  }

  uint32_t run() {
    while (!queue_.empty()) {
      const auto [cost, i] = queue_.top();
      queue_.pop();
      if (cost >= best_) break;
      if (places_[i].cost == cost) explore(i);
    }
    for (uint32_t i = last_; i != kNone; i = places_[i].from) known_[places_[i].at] = best_ - places_[i].cost;
    if (best_ >= kNoCost)
      for (const Met& m : places_) known_[m.at] = kNoCost;
    return best_;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  struct Met {
    Place at;
    uint32_t cost, from;
  };

  void explore(uint32_t i) {
    const Place at = places_[i].at;
    const uint32_t cost = places_[i].cost;
    if (const auto hit = known_.find(at); hit != known_.end()) return better(add_cost(cost, hit->second), i);
    const Tables& tables = live_.tables_;
    const uint32_t state = stacks_.node(at.node).state;
    const int32_t to = tables.go_to(state, at.lhs);
    if (to < 0) return;
    if (at.ahead == tables.terminals && stacks_.node(at.node).below.empty() && tables.is_end(state, static_cast<uint32_t>(to)))
      return better(cost, i);
    const Entry& e = live_.settled({static_cast<uint32_t>(to), at.ahead, at.control});
    if (e.accept < kNoCost) better(add_cost(cost, e.accept), i);
    for (const auto& [exit, c] : e.exits)
      for (const NodeRef n : stacks_.below(at.node, exit.pops)) meet({n, exit.lhs, exit.ahead, exit.control}, add_cost(cost, c), i);
  }
  void better(uint32_t cost, uint32_t from) {
    if (cost >= best_) return;
    best_ = cost;
    last_ = from;
  }
  void meet(const Place& at, uint32_t cost, uint32_t from) {
    const auto [it, fresh] = seen_.try_emplace(at, static_cast<uint32_t>(places_.size()));
    if (fresh) places_.push_back({at, cost, from});
    else if (places_[it->second].cost <= cost) return;
    else places_[it->second] = {at, cost, from};
    queue_.push({cost, it->second});
  }

  Live& live_;
  const Stacks& stacks_;
  Known& known_;
  uint32_t best_ = kNoCost, last_ = kNone;
  std::vector<Met> places_;
  std::map<Place, uint32_t> seen_;
  std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>> queue_;
};

uint32_t Live::cost(const Stacks& stacks, StackSet s, LexState q, Guards g, Known& known) {
  const std::scoped_lock lock(mutex_);
  Search search(*this, stacks, known);
  const Control c = control(g);
  const std::vector<Outcome>& ends = outcomes(q, c);
  for (const NodeRef top : stacks.tops(s)) {
    const uint32_t state = stacks.node(top).state;
    for (const Outcome& o : ends) {
      if (o.ignore) search.begin(top, {state, kBoundary, o.control}, o.cost);
      if (o.feed && tables_.acts(state, o.type)) search.begin(top, {state, o.type, o.control}, o.cost);
    }
  }
  return search.run();
}

uint32_t Live::cost_of_start(uint32_t start) {
  const std::scoped_lock lock(mutex_);
  const Tables::Start& x = tables_.starts[start];
  if (x.empty >= 0) return 0;
  const Control c = control(kNoGuards);
  return settled({x.state, kBoundary, c}).accept;
}

}  // namespace mw::lark
