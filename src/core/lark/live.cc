#include "live.h"

#include <algorithm>
#include <set>

namespace mw::lark {
namespace {

constexpr size_t kMaxGuards = 4096;  // sets of them
constexpr size_t kMaxJobs = 8'000'000;   // exits handed on; about so many are kept

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
    look_at_watch();
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

std::vector<LexState> Live::lexers(uint32_t state, bool begin) {
  if (lexer_.kind() == Lexer::Kind::First) return {lexer_.start(tables_.general ? 0 : tables_.lexer_of[state], begin)};
  std::vector<LexState> out;
  for (Type t = 0; t < tables_.terminals; ++t) {
    if (!lexer_.ignores(t) && tables_.at(state, t) <= 0) continue;
    std::vector<uint64_t> one((tables_.terminals + 63) / 64, 0);
    one[t / 64] |= uint64_t{1} << (t % 64);
    out.push_back(lexer_.start(one, begin));
  }
  return out;
}

void Live::look_at_watch() {
  if (closed_) return;
  if (watch_->stop.load(std::memory_order_relaxed)) throw Stopped();
  const bool late = ++looks_ % 16 == 0 && std::chrono::steady_clock::now() > watch_->deadline;
  if (late || done_ > kMaxJobs || lexer_.guards_count() > kMaxGuards) throw LiveLimit(blame());
}

// Guards, if there are any to speak of; else the state with the most ways out.
std::string Live::blame() const {
  constexpr size_t kFew = 16;
  if (const auto [ended, longer] = lexer_.most_guarded(); ended != kNoType && lexer_.guards_count() > kFew)
    return ": where #" + std::to_string(ended) + " ends, #" + std::to_string(longer) +
           " could go on, and that it does not is a claim about all the text behind it";
  std::map<uint32_t, size_t> exits;
  for (const Entry& e : entries_) exits[e.point.state] += e.exits.size();
  const auto most = std::max_element(exits.begin(), exits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == exits.end() ? "" : ": too many ways lead through @" + std::to_string(most->first);
}

uint32_t Live::entry(const Point& p) {
  const auto [it, fresh] = index_.try_emplace(p, static_cast<uint32_t>(entries_.size()));
  if (fresh) {
    entries_.push_back({p, {}, {}, kNoCost, {}, {}});
    jobs_.push({0, it->second, kFresh});
  }
  return it->second;
}

const Live::Entry& Live::settled(const Point& p) {
  const uint32_t e = entry(p);
  run();
  return entries_[e];
}

// What readers get to know after this pass is told to them when they begin to read.
void Live::run() {
  while (!jobs_.empty()) {
    look_at_watch();
    const Job job = jobs_.top();
    jobs_.pop();
    if (job.exit == kFresh) {
      expand(job.entry);
      continue;
    }
    Entry& e = entries_[job.entry];
    const bool accepts = job.exit == kAccept;
    if ((accepts ? e.accept : e.exits[job.exit].second) < job.cost) continue;
    const Exit exit = accepts ? Exit{} : e.exits[job.exit].first;
    done_ += 1 + e.readers.size() / 16;
    for (size_t i = 0, n = e.readers.size(); i < n; ++i) {
      const auto [reader, cost] = e.readers[i];
      if (accepts) accept(reader.entry, add_cost(job.cost, cost));
      else pass(exit, job.cost, reader, cost);
    }
  }
}

void Live::expand(uint32_t e) {
  if (const uint32_t ahead = entries_[e].point.ahead; ahead == kBoundary || ahead == kBegin) expand_boundary(e);
  else expand_ahead(e);
}

void Live::expand_boundary(uint32_t e) {
  const Point p = entries_[e].point;
  if (is_free_ && is_free_(guards(p.control))) return accept(e, 0);
  if (tables_.general)
    for (const uint32_t r : tables_.reduces[p.state]) improve(e, {tables_.rules[r].lhs, tables_.rules[r].length - 1, kBoundary, p.control}, 0);
  for (const LexState start : lexers(p.state, p.ahead == kBegin)) {
    for (const Outcome& o : outcomes(start, p.control)) {
      if (o.ignore) read(entry({p.state, kBoundary, o.control}), {e, false}, o.cost);
      if (!o.feed) continue;
      const int32_t a = tables_.at(p.state, o.type);
      if (!tables_.general && a != 0) read(entry({p.state, o.type, o.control}), {e, false}, o.cost);
      if (tables_.general && a > 0) read(entry({static_cast<uint32_t>(a - 1), kBoundary, o.control}), {e, true}, o.cost);
    }
  }
  if (!tables_.general && ends_text(tables_.terminals, p.control) && tables_.at(p.state, tables_.terminals) != 0)
    read(entry({p.state, tables_.terminals, p.control}), {e, false}, 0);
}

bool Live::ends_text(uint32_t ahead, Control c) const {
  const auto& [guards, node] = controls_[c];
  return (tables_.general || ahead == tables_.terminals) && lexer_.may_end(guards) && node == TokenTrie::kRoot;
}

// lalr: what the table says of a look-ahead.
void Live::expand_ahead(uint32_t e) {
  const Point p = entries_[e].point;
  const int32_t a = tables_.at(p.state, p.ahead);
  if (a > 0) return read(entry({static_cast<uint32_t>(a - 1), kBoundary, p.control}), {e, true}, 0);
  if (a == 0) return;
  const auto& rule = tables_.rules[static_cast<size_t>(-a - 1)];
  if (rule.length > 0) return improve(e, {rule.lhs, rule.length - 1, p.ahead, p.control}, 0);
  const int32_t to = tables_.go_to(p.state, rule.lhs);
  if (to < 0) return;
  if (ends_text(p.ahead, p.control) && tables_.is_end(p.state, static_cast<uint32_t>(to))) return accept(e, 0);
  read(entry({static_cast<uint32_t>(to), p.ahead, p.control}), {e, true}, 0);
}

void Live::read(uint32_t from, const Reader& reader, uint32_t cost) {
  Entry& source = entries_[from];
  const auto [it, fresh] = source.reader_index.try_emplace(reader, static_cast<uint32_t>(source.readers.size()));
  if (fresh) source.readers.push_back({reader, cost});
  else if (source.readers[it->second].second <= cost) return;
  else source.readers[it->second].second = cost;
  for (size_t i = 0, n = source.exits.size(); i < n; ++i) {
    const auto [exit, c] = source.exits[i];
    pass(exit, c, reader, cost);
  }
  if (source.accept < kNoCost) accept(reader.entry, add_cost(source.accept, cost));
}

void Live::pass(const Exit& exit, uint32_t exit_cost, const Reader& reader, uint32_t cost) {
  const uint32_t sum = add_cost(exit_cost, cost);
  if (!reader.call) return improve(reader.entry, exit, sum);
  if (exit.pops > 0) return improve(reader.entry, {exit.lhs, exit.pops - 1, exit.ahead, exit.control}, sum);
  const uint32_t state = entries_[reader.entry].point.state;
  const int32_t to = tables_.go_to(state, exit.lhs);
  if (to < 0) return;
  if (ends_text(exit.ahead, exit.control) && tables_.is_end(state, static_cast<uint32_t>(to))) return accept(reader.entry, sum);
  read(entry({static_cast<uint32_t>(to), exit.ahead, exit.control}), {reader.entry, true}, sum);
}

void Live::improve(uint32_t e, const Exit& exit, uint32_t cost) {
  Entry& to = entries_[e];
  const auto [it, fresh] = to.exit_index.try_emplace(exit, static_cast<uint32_t>(to.exits.size()));
  if (fresh) to.exits.push_back({exit, cost});
  else if (to.exits[it->second].second <= cost) return;
  else to.exits[it->second].second = cost;
  jobs_.push({cost, e, it->second});
}

void Live::accept(uint32_t e, uint32_t cost) {
  if (entries_[e].accept <= cost) return;
  entries_[e].accept = cost;
  jobs_.push({cost, e, kAccept});
}

void Live::explore() {
  const std::scoped_lock lock(mutex_);
  const Control c = control(kNoGuards);
  for (const auto& start : tables_.starts) {
    const uint32_t e = entry({start.state, kBegin, c});
    if (start.empty >= 0) read(entry({static_cast<uint32_t>(start.empty), kBegin, c}), {e, true}, 0);
    run();
  }
}

// ---------------------------------------------------------------- a given stack

// Dijkstra's algorithm over the places where a nonterminal has ended. The places on the way that it finds are known then.
class Live::Search {
 public:
  Search(Live& live, const Stacks& stacks, Known& known) : live_(live), stacks_(stacks), known_(known) {}

  // What begins with an entry, of a state that stands on top of a node, or is the node's own.
  void begin(NodeRef node, bool own, const Point& p, uint32_t cost, uint32_t from = kNone) {
    const Entry& e = live_.settled(p);
    if (e.accept < kNoCost) better(add_cost(e.accept, cost), from);
    for (const auto& [exit, c] : e.exits)
      for (const NodeRef n : stacks_.below(node, exit.pops + (own ? 1 : 0))) meet({n, exit.lhs, exit.ahead, exit.control}, add_cost(cost, c), from);
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
    if (live_.ends_text(at.ahead, at.control) && stacks_.node(at.node).below.empty() && tables.is_end(state, static_cast<uint32_t>(to)))
      return better(cost, i);
    begin(at.node, false, {static_cast<uint32_t>(to), at.ahead, at.control}, cost, i);
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
  // Behind the whole text nothing goes on; what ends there ends on other tops too.
  const auto is_last = [&](uint32_t state) {
    return tables_.general && std::any_of(tables_.starts.begin(), tables_.starts.end(), [&](const auto& start) { return start.end == state; });
  };
  for (const NodeRef top : stacks.tops(s)) {
    const uint32_t state = stacks.node(top).state;
    if (is_last(state)) continue;
    for (const Outcome& o : ends) {
      if (o.ignore) search.begin(top, true, {state, kBoundary, o.control}, o.cost);
      if (!o.feed) continue;
      const int32_t a = tables_.at(state, o.type);
      if (!tables_.general && a != 0) search.begin(top, true, {state, o.type, o.control}, o.cost);
      if (tables_.general && a > 0) search.begin(top, false, {static_cast<uint32_t>(a - 1), kBoundary, o.control}, o.cost);
    }
  }
  return search.run();
}

uint32_t Live::cost_of_start(uint32_t start) {
  const std::scoped_lock lock(mutex_);
  const Tables::Start& x = tables_.starts[start];
  if (x.empty >= 0) return 0;
  const Control c = control(kNoGuards);
  return settled({x.state, kBegin, c}).accept;
}

}  // namespace mw::lark
