// Liveness and costs over token sequences, for vocabularies that lack single bytes (DESIGN, bytes and tokens).
//
// A text is cut into tokens by a walk over the trie of the tokens that starts anew at its root wherever a token ends. A
// configuration lives iff some way through its machines, walked beside the trie from its root, is at the root again at the
// end of the text; its cost is the number of tokens on the cheapest such way. Tokens that others spell add nothing to what
// can be spelled, so only the irreducible ones are walked.
//
// The ways are explored frame by frame. The exits of a machine from a state and a node of the trie, those nodes in which it
// can pop, are a least fixpoint over the exits of pushed children, so recursion is no obstacle (reachability in pushdown
// systems by saturation: Bouajjani, Esparza, Maler 1997). Counts that are large beside the trie are clamped and all that
// does not matter is left out of the states (Machine::forget), so that there are not too many.
#include "spelling.h"

#include <algorithm>
#include <deque>
#include <map>

namespace mw {

class SpellingSearch {
 public:
  SpellingSearch(Request& request, bool costs)
      : request_(request), trie_(trie_for(request.vocab(), costs)), forget_{trie_.size(), costs} {}

  // Tokens to the end of the text; without costs 0. kNoCost where there is no way.
  uint32_t best(std::span<const Item> items) {
    uint32_t best = kNoCost;
    for (const Item& i : items)
      for (const Exit& e : exits(i.machine, i.state, TokenTrie::kRoot)) best = std::min(best, add_cost(e.cost, rest({i.rest, e.node, e.value})));
    return best;
  }

 private:
  struct Point {
    MachineId machine;
    State state;
    TrieNode node;
    bool operator==(const Point&) const = default;
  };
  struct Place {
    State state;
    TrieNode node;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    size_t operator()(const Point& p) const { return static_cast<size_t>(mix(mix(mix(11, p.state), p.machine), p.node)); }
    size_t operator()(const Place& p) const { return static_cast<size_t>(mix(mix(12, p.state), p.node)); }
  };
  struct Exit {
    TrieNode node;
    uint32_t cost;
    uint32_t value;  // handed to the parent
  };
  // All ways through one machine from one point, with the tokens that end on the way.
  struct Entry {
    MachineId machine;
    std::unordered_map<Place, uint32_t, Hash> seen;
    std::vector<Exit> out;
    std::map<std::pair<uint32_t, State>, uint32_t> readers;  // (entry, state) resumes at the exits; tokens before this entry
  };
  struct Job {
    uint32_t entry;
    Place at;
    uint32_t cost;
  };

  // A small vocabulary is walked in whole for costs: then they are the least.
  static const TokenTrie& trie_for(const Vocab& vocab, bool costs) {
    return costs && vocab.trie().size() <= kMaxCostTrie ? vocab.trie() : vocab.irreducible();
  }

  const std::vector<Exit>& exits(MachineId machine, State state, TrieNode node) {
    settled_ = static_cast<uint32_t>(entries_.size());
    const uint32_t wanted = entry({machine, request_.machine(machine).forget(request_, state, forget_), node});
    for (size_t n = 0; !jobs_.empty(); ++n) {
      if (n == kMaxJobs) {
        drop_unsettled();
        throw SpellingLimit();
      }
      const Job job = jobs_.front();
      jobs_.pop_front();
      explore(job);
    }
    if (request_.lacks_nodes()) {  // half done; the caller starts again
      drop_unsettled();
      static const std::vector<Exit> none;
      return none;
    }
    for (uint32_t e = settled_; e < entries_.size(); ++e) {
      entries_[e]->seen = {};
      entries_[e]->readers = {};
    }
    return entries_[wanted]->out;
  }

  void drop_unsettled() {
    jobs_.clear();
    std::erase_if(index_, [&](const auto& e) { return e.second >= settled_; });
    entries_.resize(settled_);
  }

  uint32_t entry(const Point& p) {
    const auto [it, fresh] = index_.try_emplace(p, static_cast<uint32_t>(entries_.size()));
    if (fresh) {
      entries_.push_back(std::make_unique<Entry>(Entry{p.machine, {}, {}, {}}));
      meet(it->second, {p.state, p.node}, 0, false);
    }
    return it->second;
  }

  // Dearer ways wait for cheaper ones, so that little is looked into twice.
  void meet(uint32_t e, const Place& at, uint32_t cost, bool dearer) {
    const auto [it, fresh] = entries_[e]->seen.try_emplace(at, cost);
    if (!fresh && it->second <= cost) return;
    it->second = cost;
    if (dearer) jobs_.push_back({e, at, cost});
    else jobs_.push_front({e, at, cost});
  }

  void explore(const Job& job) {
    if (entries_[job.entry]->seen[job.at] < job.cost) return;
    const Machine& m = request_.machine(entries_[job.entry]->machine);
    const Accept a = m.accept(request_, job.at.state);
    if (a.pop) let_out(job.entry, {job.at.node, job.cost, a.value});
    if (a.push != kNoChild) push(job, a);
    if (a.split) split(job, m);
    if (!m.more(request_, job.at.state)) return;
    const TrieNode n = job.at.node;
    for (TrieNode c = trie_.first_child(n), end = c + trie_.child_count(n); c < end; ++c) {
      State s = m.next(request_, job.at.state, trie_.byte(c));
      if (s == kDead) continue;
      s = m.forget(request_, s, forget_);
      if (trie_.child_count(c)) meet(job.entry, {s, c}, job.cost, false);
      if (trie_.has_tokens(c)) meet(job.entry, {s, TokenTrie::kRoot}, job.cost + (forget_.costs ? 1 : 0), forget_.costs);
    }
  }

  void let_out(uint32_t e, const Exit& exit) {
    auto& out = entries_[e]->out;
    const auto same = [&](const Exit& x) { return x.node == exit.node && x.value == exit.value; };
    const auto it = std::find_if(out.begin(), out.end(), same);
    if (it != out.end() && it->cost <= exit.cost) return;
    if (it != out.end()) it->cost = exit.cost;
    else out.push_back(exit);
    for (const auto& [reader, before] : entries_[e]->readers)
      resume(reader.first, reader.second, exit, before + exit.cost, before + exit.cost > 0);
  }

  // The child has ended; `state` was pushed under it.
  void resume(uint32_t e, State state, const Exit& exit, uint32_t cost, bool dearer) {
    const Machine& m = request_.machine(entries_[e]->machine);
    const State s = m.resume(request_, state, exit.value);
    if (s != kDead) meet(e, {m.forget(request_, s, forget_), exit.node}, cost, dearer);
  }

  void split(const Job& job, const Machine& m) {
    std::vector<State> states;
    m.branches(request_, job.at.state, states);
    for (State s : states) meet(job.entry, {m.forget(request_, s, forget_), job.at.node}, job.cost, false);
  }

  void push(const Job& job, const Accept& a) {
    std::vector<Start> starts;
    if (!request_.program().starts(a.push, starts, request_.needs())) return;
    for (const Start& s : starts) {
      const Machine& pushed = request_.machine(s.machine);
      const State from = a.given == 0 ? s.state : pushed.enter(request_, s.state, a.given);
      if (from == kDead) continue;
      const uint32_t child = entry({s.machine, a.given == 0 ? from : pushed.forget(request_, from, forget_), job.at.node});
      if (child >= settled_) {
        const auto [it, fresh] = entries_[child]->readers.try_emplace({job.entry, a.resume}, job.cost);
        if (!fresh) it->second = std::min(it->second, job.cost);
      }
      for (const Exit& e : std::vector<Exit>(entries_[child]->out)) resume(job.entry, a.resume, e, job.cost + e.cost, e.cost > 0);
    }
  }

  // A value has ended in a node; what follows it.
  struct Below {
    RestId rest;
    TrieNode node;
    uint32_t value;
    auto operator<=>(const Below&) const = default;
  };
  struct Descent {
    Below at;
    std::vector<std::pair<Below, uint32_t>> next;
    uint32_t best = kNoCost;
  };

  // Tokens from there to the end of the text. Goes down the stack by hand: it may be deep.
  uint32_t rest(const Below& from) {
    std::vector<Descent> path;
    if (!knows_rest(from)) path.push_back(descend(from));
    while (!path.empty() && !request_.lacks_nodes()) {
      Descent& d = path.back();
      if (d.next.empty()) {
        rests_[d.at] = d.best;
        path.pop_back();
        continue;
      }
      const auto [below, cost] = d.next.back();
      if (knows_rest(below)) {
        d.best = std::min(d.best, add_cost(cost, known_rest(below)));
        d.next.pop_back();
      } else {
        path.push_back(descend(below));
      }
    }
    return request_.lacks_nodes() ? kNoCost : known_rest(from);
  }
  bool knows_rest(const Below& b) const { return b.rest == kEndOfText || rests_.contains(b); }
  uint32_t known_rest(const Below& b) const {
    if (b.rest == kEndOfText) return b.node == TokenTrie::kRoot ? 0 : kNoCost;
    return rests_.at(b);
  }
  Descent descend(const Below& b) {
    Descent d{b, {}};
    const auto frames = request_.frames(b.rest);
    for (const Item& f : std::vector<Item>(frames.begin(), frames.end())) {
      const State s = request_.machine(f.machine).resume(request_, f.state, b.value);
      if (s == kDead) continue;
      for (const Exit& e : exits(f.machine, s, b.node)) d.next.push_back({{f.rest, e.node, e.value}, e.cost});
    }
    return d;
  }

  static constexpr size_t kMaxJobs = 4'000'000;  // some seconds
  static constexpr size_t kMaxCostTrie = 4000;
  Request& request_;
  const TokenTrie& trie_;
  const Forget forget_;
  std::vector<std::unique_ptr<Entry>> entries_;
  uint32_t settled_ = 0;  // entries before this one are complete
  std::unordered_map<Point, uint32_t, Hash> index_;
  std::deque<Job> jobs_;
  std::map<Below, uint32_t> rests_;
};

bool can_be_spelled(Request& request, ConfigId id) {
  auto& memo = request.liveness();
  if (memo.size() <= id) memo.resize(request.config_count(), -1);
  if (memo[id] >= 0) return memo[id] != 0;
  const Config& c = request.config(id);
  bool lives = c.accepting;
  std::vector<Item> others;
  for (const Item& i : c.items) {
    const int own = lives ? 0 : request.machine(i.machine).spelled(request, i.state);
    if (own < 0) others.push_back(i);
    else lives = lives || own == 1;
  }
  lives = lives || request.spelling(false).best(others) < kNoCost;
  if (request.lacks_nodes()) return true;
  memo[id] = lives ? 1 : 0;
  return lives;
}

bool can_be_spelled(Request& request, const Item& end) {
  std::vector<Item> items;
  bool accepting = false;
  request.expand(end, items, accepting);
  if (request.lacks_nodes()) return true;
  return can_be_spelled(request, request.intern(std::move(items), accepting));
}

uint32_t spelling_cost(Request& request, ConfigId id) {
  const Config& c = request.config(id);
  if (c.accepting) return 0;
  uint32_t best = kNoCost;
  std::vector<Item> others;
  for (const Item& i : c.items) {
    if (request.machine(i.machine).spelled(request, i.state) < 0) others.push_back(i);
    else best = std::min(best, request.machine(i.machine).cost(request, i.state));
  }
  return std::min(best, request.spelling(true).best(others));
}

SpellingSearch& Request::spelling(bool costs) {
  auto& search = spelling_[costs];
  if (!search) search = std::make_shared<SpellingSearch>(*this, costs);
  return *search;
}

}  // namespace mw
