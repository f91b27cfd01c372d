// Liveness over token sequences, for vocabularies that lack single bytes (DESIGN, bytes and tokens).
//
// What the tokens can spell is T*, T the tokens. It is recognised by sets of trie nodes: where in a token we may be, the
// root standing for the end of one. Tokens that other tokens spell add nothing, so only the irreducible ones matter;
// for nearly complete vocabularies few sets are ever met. A configuration lives iff some way through its machines takes
// the set {root} to a set with the root at the end of the text. The ways are explored frame by frame, each frame's exits
// (the sets in which it can end) being a least fixpoint over pushed children, so recursion is no obstacle
// (reachability in pushdown systems by saturation: Bouajjani, Esparza, Maler 1997).
#include "spelling.h"

#include <algorithm>
#include <map>
#include <set>

namespace mw {

// The automaton of T*: states are sets of nodes of the trie of irreducible tokens.
class Speller {
 public:
  explicit Speller(const Vocab& vocab) {
    std::vector<std::string_view> views;
    std::vector<TokenId> ids;
    for (TokenId t = 0; t < vocab.size(); ++t)
      if (vocab.is_text(t) && is_irreducible(vocab, vocab.bytes(t))) {
        views.push_back(vocab.bytes(t));
        ids.push_back(t);
      }
    trie_.build(views, ids);
    sets_.push_back({TokenTrie::kRoot});
    index_.emplace(sets_[0], 0);
  }
  static constexpr uint32_t kDeadSet = 0xffffffffu;
  uint32_t start() const { return 0; }
  bool at_boundary(uint32_t set) const { return sets_[set].front() == TokenTrie::kRoot; }

  uint32_t next(uint32_t set, uint8_t b) {
    const uint64_t key = (uint64_t{set} << 8) | b;
    const auto hit = memo_.find(key);
    if (hit != memo_.end()) return hit->second;
    std::vector<TrieNode> to;
    for (TrieNode n : sets_[set]) {
      const TrieNode c = trie_.child(n, b);
      if (c == kNoNode) continue;
      if (trie_.has_tokens(c)) to.push_back(TokenTrie::kRoot);
      if (trie_.child_count(c)) to.push_back(c);
    }
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    uint32_t id = kDeadSet;
    if (!to.empty()) {
      const auto [it, fresh] = index_.try_emplace(to, static_cast<uint32_t>(sets_.size()));
      if (fresh) sets_.push_back(to);
      id = it->second;
    }
    memo_.emplace(key, id);
    return id;
  }

 private:
  static bool is_irreducible(const Vocab& vocab, std::string_view bytes) {
    if (bytes.size() == 1) return true;
    std::vector<uint8_t> reach(bytes.size() + 1, 0);
    reach[0] = 1;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!reach[i]) continue;
      TrieNode n = TokenTrie::kRoot;
      for (size_t j = i; j < bytes.size(); ++j) {
        n = vocab.trie().child(n, static_cast<uint8_t>(bytes[j]));
        if (n == kNoNode) break;
        if (vocab.trie().has_tokens(n) && j + 1 - i < bytes.size()) reach[j + 1] = 1;
      }
    }
    return reach[bytes.size()] == 0;
  }

  TokenTrie trie_;
  std::vector<std::vector<TrieNode>> sets_;
  std::map<std::vector<TrieNode>, uint32_t> index_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

// Exits of (machine, state, spelling set): the spelling sets in which the machine can pop.
class SpellingSearch {
 public:
  explicit SpellingSearch(Request& request) : request_(request), speller_(request.vocab()) {}

  bool lives(const Item& item, uint32_t set) { return lives(std::span(&item, 1), set); }

  // Goes down the stack with the sets of spelling sets that each frame lets out. Stacks are finite, so this ends.
  bool lives(std::span<const Item> items, uint32_t set) {
    std::vector<std::pair<Item, uint32_t>> stack;
    std::set<std::pair<Item, uint32_t>> seen;
    for (const Item& i : items) stack.emplace_back(i, set);
    while (!stack.empty()) {
      const auto at = stack.back();
      stack.pop_back();
      if (!seen.insert(at).second) continue;
      for (uint32_t out : exits({at.first.machine, at.first.state, at.second})) {
        if (at.first.rest == kEndOfText) {
          if (speller_.at_boundary(out)) return true;
          continue;
        }
        for (const Item& f : std::vector<Item>(request_.frames(at.first.rest).begin(),
                                               request_.frames(at.first.rest).end())) {
          const State s = request_.machine(f.machine).resume(request_, f.state, 0);
          if (s != kDead) stack.push_back({{s, f.machine, f.rest}, out});
        }
      }
      if (request_.lacks_nodes()) return true;  // the caller starts again
    }
    return false;
  }

 private:
  struct Point {
    MachineId machine;
    State state;
    uint32_t set;
    auto operator<=>(const Point&) const = default;
  };
  struct Entry {
    std::set<uint32_t> out;
    std::set<Point> readers;  // entries to compute again when this one grows
    bool done = false;
  };

  // Least fixpoint over all entries that this one depends on.
  std::set<uint32_t> exits(const Point& wanted) {
    Entry& top = entries_[wanted];
    if (top.done) return top.out;
    queue_.insert(wanted);
    std::vector<Point> touched;
    while (!queue_.empty()) {
      const Point p = *queue_.begin();
      queue_.erase(queue_.begin());
      touched.push_back(p);
      std::set<uint32_t> out = explore(p);
      if (request_.lacks_nodes()) {  // half done: forget what is not settled
        queue_.clear();
        std::erase_if(entries_, [](const auto& entry) { return !entry.second.done; });
        return {};
      }
      Entry& e = entries_[p];
      if (out == e.out) continue;
      e.out = std::move(out);
      queue_.insert(e.readers.begin(), e.readers.end());
    }
    for (const Point& p : touched) entries_[p].done = true;
    return entries_[wanted].out;
  }

  // All ways through one machine; what a pushed child lets out is read from its entry.
  std::set<uint32_t> explore(const Point& from) {
    std::set<uint32_t> out;
    std::set<Point> seen;
    std::vector<Point> stack{from};
    while (!stack.empty()) {
      const Point p = stack.back();
      stack.pop_back();
      if (!seen.insert(p).second) continue;
      const Machine& m = request_.machine(p.machine);
      const Accept a = m.accept(request_, p.state);
      if (a.pop) out.insert(p.set);
      if (a.push != kNoChild) push(p, a, from, stack);
      if (!m.more(request_, p.state)) continue;
      for (unsigned b = 0; b < 256; ++b) {
        const uint32_t set = speller_.next(p.set, static_cast<uint8_t>(b));
        if (set == Speller::kDeadSet) continue;
        const State s = m.next(request_, p.state, static_cast<uint8_t>(b));
        if (s != kDead) stack.push_back({p.machine, m.forget(request_, s), set});
      }
    }
    return out;
  }

  void push(const Point& p, const Accept& a, const Point& reader, std::vector<Point>& stack) {
    std::vector<Start> starts;
    if (!request_.program().starts(a.push, starts, request_.needs())) return;
    for (const Start& s : starts) {
      const Point child{s.machine, s.state, p.set};
      const auto [it, fresh] = entries_.try_emplace(child);
      if (fresh) queue_.insert(child);
      if (!it->second.done) it->second.readers.insert(reader);
      const State resumed = request_.machine(p.machine).resume(request_, a.resume, 0);
      if (resumed == kDead) continue;
      for (uint32_t set : it->second.out) stack.push_back({p.machine, resumed, set});
    }
  }

  Request& request_;
  Speller speller_;
  std::map<Point, Entry> entries_;
  std::set<Point> queue_;
};

bool can_be_spelled(Request& request, ConfigId id) {
  auto& memo = request.liveness();
  if (memo.size() <= id) memo.resize(request.config_count(), -1);
  if (memo[id] >= 0) return memo[id] != 0;
  const Config& c = request.config(id);
  const bool lives = c.accepting || request.spelling().lives(c.items, 0);
  if (!request.lacks_nodes()) memo[id] = lives ? 1 : 0;
  return lives;
}

bool can_be_spelled(Request& request, const Item& end) {
  std::vector<Item> items;
  bool accepting = false;
  request.expand(end, items, accepting);
  if (request.lacks_nodes()) return true;
  return can_be_spelled(request, request.intern(std::move(items), accepting));
}

SpellingSearch& Request::spelling() {
  if (!spelling_) spelling_ = std::make_shared<SpellingSearch>(*this);
  return *spelling_;
}

}  // namespace mw
