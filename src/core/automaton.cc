#include "automaton.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace mw {
namespace {

uint64_t key_of(DfaState state, Sub sub) { return (uint64_t{state} << kSubBits) | sub; }
constexpr uint64_t kFinished = ~uint64_t{0};

// Where single tokens lead from a state: the distinct ends, kFinished for tokens that close a JSON string. Witnesses use no
// escape that they can do without: others are many, and none is shorter.
class OneToken {
 public:
  OneToken(Vocab& vocab, RegexDfa& dfa, Transport transport)
      : store_(vocab.bases()), trie_(vocab.trie()), dfa_(dfa), json_(transport != Transport::Raw) {}

  std::vector<uint64_t> ends(DfaState state, Sub sub) {
    ends_.clear();
    stack_.assign(1, {TokenTrie::kRoot, sub, state});
    while (!stack_.empty()) {
      const At at = stack_.back();
      stack_.pop_back();
      if (at.sub == 0 && take_run(at.node, at.state)) continue;
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c)
        step(c, at.sub, at.state);
    }
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    return ends_;
  }

 private:
  struct At {
    TrieNode node;
    Sub sub;
    DfaState state;
  };
  static constexpr uint32_t kRunMinDescendants = 200;

  void step(TrieNode c, Sub sub, DfaState state) {
    const Decoded d = json_ ? decode_json(sub, trie_.byte(c), false) : decode_utf8(sub, trie_.byte(c));
    if (d.kind == Decoded::Dead) return;
    if (d.kind == Decoded::Quote) {
      if (dfa_.accepting(state) && trie_.has_tokens(c)) end(kFinished);
      return;
    }
    Sub next_sub = 0;
    DfaState next = state;
    if (d.kind == Decoded::Partial) {
      next_sub = d.value;
      const auto live = [&](uint32_t lo, uint32_t hi) { return dfa_.any_live_in(state, lo, hi); };
      if (!partial_is_live(next_sub, false, live)) return;
    } else {
      next = dfa_.next(state, d.value);
      if (next == 0) return;
    }
    if (trie_.has_tokens(c)) end(key_of(next, next_sub));
    if (trie_.child_count(c)) stack_.push_back({c, next_sub, next});
  }

  // A state that loops over a class of ASCII characters: the tokens inside it lead back, whatever their number.
  bool take_run(TrieNode node, DfaState state) {
    if (trie_.descendants(node) < kRunMinDescendants) return false;
    const Chain& widest = dfa_.widest(state);
    CharSet129 set = widest.set;
    set.other = false;
    if (json_) {
      set.lo &= ~0xffffffffull & ~(1ull << '"');
      set.hi &= ~(1ull << ('\\' - 64));
    }
    if (widest.next != state || (set.lo | set.hi) == 0) return false;
    const ClassBase& run = store_.run(node, set);
    if (!run.stay.all().empty()) end(key_of(state, 0));
    for (const auto& exits : run.exits)
      for (const ClassBase::Exit& exit : exits) step(exit.child, 0, state);
    return true;
  }

  void end(uint64_t key) {
    if (ends_.empty() || ends_.back() != key) ends_.push_back(key);
    if (ends_.size() > 4096) {
      std::sort(ends_.begin(), ends_.end());
      ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    }
  }

  BaseStore& store_;
  const TokenTrie& trie_;
  RegexDfa& dfa_;
  bool json_;
  std::vector<At> stack_;
  std::vector<uint64_t> ends_;
};

}  // namespace

Automaton::PerVocab& Automaton::per_vocab(const Vocab& vocab, Transport transport) {
  for (auto& p : per_vocab_)
    if (p->vocab == vocab.serial() && p->transport == transport) return *p;
  per_vocab_.push_back(std::make_unique<PerVocab>(
      PerVocab{vocab.serial(), transport, std::make_unique<RegexBases>(*dfa_, transport), {}}));
  return *per_vocab_.back();
}

RegexBases& Automaton::bases(const Vocab& vocab, Transport transport) {
  const std::scoped_lock lock(mutex_);
  return *per_vocab(vocab, transport).bases;
}

namespace {

// The graph of single tokens around a state, and the distances to an end in it.
class FinishSearch {
 public:
  FinishSearch(OneToken& tokens, std::unordered_map<uint64_t, uint32_t>& known) : tokens_(tokens), known_(known) {}

  // False: more than `most` states lie between characters. States inside a character come last, and are left out past
  // that number: then the costs are upper bounds, though still those of a witness.
  template <class IsEnd>
  bool explore(uint64_t from, size_t most, IsEnd is_end) {
    std::deque<uint64_t> whole, cut;
    seen_.insert(from);
    whole.push_back(from);
    while (!whole.empty() || (!cut.empty() && order_.size() < most)) {
      if (order_.size() >= most) return false;
      auto& queue = whole.empty() ? cut : whole;
      const uint64_t at = queue.front();
      queue.pop_front();
      order_.push_back(at);
      for (uint64_t next : tokens_.ends(static_cast<DfaState>(at >> kSubBits), static_cast<Sub>(at & kSubMask))) {
        before_[next].push_back(at);
        if (!seen_.insert(next).second) continue;
        const auto old = known_.find(next);
        if (is_end(next)) cost_[next] = 0;
        else if (old != known_.end()) cost_[next] = old->second;
        else ((next & kSubMask) == 0 ? whole : cut).push_back(next);
      }
    }
    return true;
  }

  // Backward from the ends, in order of cost (known costs differ, so by buckets).
  void settle() {
    for (const auto& [k, c] : cost_) put(k, c);
    for (uint32_t c = 0; c < buckets_.size(); ++c)
      for (size_t i = 0; i < buckets_[c].size(); ++i) relax(buckets_[c][i], c);
    for (uint64_t k : order_) {
      const auto it = cost_.find(k);
      if ((k & kSubMask) != 0) continue;  // looked into for its successors; its own cost may be short of some
      known_[k] = it == cost_.end() ? kNoCost : it->second;
    }
  }

 private:
  void put(uint64_t k, uint32_t c) {
    if (c >= kNoCost) return;
    if (buckets_.size() <= c) buckets_.resize(c + 1);
    buckets_[c].push_back(k);
  }
  void relax(uint64_t k, uint32_t c) {
    if (cost_[k] != c) return;
    for (uint64_t p : before_[k]) {
      const auto it = cost_.find(p);
      if (it != cost_.end() && it->second <= c + 1) continue;
      cost_[p] = c + 1;
      put(p, c + 1);
    }
  }

  OneToken& tokens_;
  std::unordered_map<uint64_t, uint32_t>& known_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> before_;  // successor -> predecessors
  std::unordered_map<uint64_t, uint32_t> cost_;
  std::unordered_set<uint64_t> seen_;
  std::vector<uint64_t> order_;
  std::vector<std::vector<uint64_t>> buckets_;
};

// Bytes that finish a partial escape whatever it becomes.
uint32_t most_bytes_to_finish(Sub sub) {
  if (sub_mode(sub) == Mode::Backslash) return 11;
  const uint32_t digits = sub_payload(sub) >> 12;
  if (sub_mode(sub) == Mode::Hex && digits < 2) return 4 - digits + 6;
  return bytes_to_finish(sub);
}

}  // namespace

uint32_t Automaton::finish_tokens(Vocab& vocab, Transport transport, DfaState state, Sub sub) {
  if (transport == Transport::Raw) {
    if (sub == 0 && dfa_->accepting(state)) return 0;
  } else if (sub != 0) {  // byte by byte: whole tokens would seldom do better, and the states are many
    uint32_t after = widest_finish();
    const std::scoped_lock lock(mutex_);
    if (after >= kNoCost) after = dearest_successor(state);
    return add_cost(most_bytes_to_finish(sub) + 1, after);
  }
  const std::scoped_lock lock(mutex_);
  return sub == 0 ? search_finish(vocab, transport, state) : finish_character(vocab, state, sub);
}

// Accepting states cost nothing and are not looked into, so a long optional tail is free. Every state that was looked into
// is settled.
uint32_t Automaton::search_finish(Vocab& vocab, Transport transport, DfaState state) {
  auto& known = per_vocab(vocab, transport).finish;
  const uint64_t from = key_of(state, 0);
  if (const auto it = known.find(from); it != known.end()) return it->second;
  const auto is_end = [&](uint64_t k) {
    if (k == kFinished) return true;
    return transport == Transport::Raw && (k & kSubMask) == 0 && dfa_->accepting(static_cast<DfaState>(k >> kSubBits));
  };
  OneToken tokens(vocab, *dfa_, transport);
  FinishSearch search(tokens, known);
  if (too_wide_ || !search.explore(from, kMaxSearch, is_end)) {
    too_wide_ = true;  // one long search is enough
    return known[from] = add_cost(shortest_bytes(state), transport == Transport::Raw ? 0 : 1);
  }
  search.settle();
  return known[from];
}

// Bytes of one of the shortest texts, in characters, that match from here: down the syntactic lengths, which are exact where
// the expression has no intersection or complement. kNoCost where they are not. One way down is followed, not all.
uint32_t Automaton::shortest_bytes(DfaState state) {
  std::vector<std::pair<DfaState, uint32_t>> path;  // with the bytes of the character after it
  std::vector<RegexDfa::Successor> next;
  DfaState at = state;
  while (!shortest_.contains(at)) {
    if (dfa_->accepting(at)) {
      shortest_[at] = 0;
      break;
    }
    dfa_->successors(at, next);
    const RegexDfa::Successor* best = nullptr;
    for (const auto& s : next)
      if (dfa_->min_length(s.next) == dfa_->min_length(at) - 1 &&
          (best == nullptr || json_bytes(s.code_point) < json_bytes(best->code_point)))
        best = &s;
    if (best == nullptr) {
      shortest_[at] = kNoCost;
      break;
    }
    path.emplace_back(at, json_bytes(best->code_point));
    at = best->next;
  }
  uint32_t cost = shortest_[at];
  for (; !path.empty(); path.pop_back()) {
    cost = add_cost(cost, path.back().second);
    shortest_[path.back().first] = cost;
  }
  return shortest_[state];
}

uint32_t Automaton::dearest_successor(DfaState state) {
  std::vector<RegexDfa::Successor> next;
  dfa_->successors(state, next);
  uint32_t most = 0;
  for (const auto& s : next) most = std::max(most, shortest_bytes(s.next));
  return most;
}

// Raw text, inside a character: one token, and on from where it ends.
uint32_t Automaton::finish_character(Vocab& vocab, DfaState state, Sub sub) {
  auto& known = per_vocab(vocab, Transport::Raw).finish;
  const uint64_t from = key_of(state, sub);
  if (const auto it = known.find(from); it != known.end()) return it->second;
  uint32_t best = kNoCost;
  for (uint64_t end : OneToken(vocab, *dfa_, Transport::Raw).ends(state, sub)) {
    const auto to = static_cast<DfaState>(end >> kSubBits);
    const auto rest = static_cast<Sub>(end & kSubMask);
    const bool done = rest == 0 && dfa_->accepting(to);
    const uint32_t cost = done ? 0 : rest == 0 ? search_finish(vocab, Transport::Raw, to) : finish_character(vocab, to, rest);
    best = std::min(best, add_cost(1, cost));
  }
  return known[from] = best;
}

uint32_t Automaton::widest_finish() {
  std::call_once(explored_, [&] {
    std::vector<DfaState> order{dfa_->start()};
    std::unordered_map<DfaState, uint32_t> index{{dfa_->start(), 0}};
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> before(1);  // (predecessor, bytes)
    std::vector<RegexDfa::Successor> next;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order.size() > kMaxSearch) return;
      dfa_->successors(order[i], next);
      for (const auto& s : next) {
        const auto [it, fresh] = index.try_emplace(s.next, static_cast<uint32_t>(order.size()));
        if (fresh) {
          order.push_back(s.next);
          before.emplace_back();
        }
        before[it->second].emplace_back(static_cast<uint32_t>(i), json_bytes(s.code_point));
      }
    }
    std::vector<uint32_t> cost(order.size(), kNoCost);
    std::vector<std::vector<uint32_t>> buckets(1);
    for (uint32_t i = 0; i < order.size(); ++i)
      if (dfa_->accepting(order[i])) {
        cost[i] = 0;
        buckets[0].push_back(i);
      }
    for (uint32_t c = 0; c < buckets.size(); ++c)
      for (size_t k = 0; k < buckets[c].size(); ++k) {
        const uint32_t i = buckets[c][k];
        if (cost[i] != c) continue;
        for (const auto& [p, bytes] : before[i]) {
          if (cost[p] <= c + bytes) continue;
          cost[p] = c + bytes;
          if (buckets.size() <= cost[p]) buckets.resize(cost[p] + 1);
          buckets[cost[p]].push_back(p);
        }
      }
    widest_ = *std::max_element(cost.begin(), cost.end());
  });
  return widest_;
}

}  // namespace mw
