#include "automaton.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <queue>
#include <unordered_set>
#include <utility>

namespace mw {
namespace {

// Bytes that finish a character which has begun.
constexpr uint32_t kMostInside = 3, kMostInsideJson = kMostToClose - 1;

uint64_t key_of(DfaState state, Sub sub) { return (uint64_t{state} << kSubBits) | sub; }
constexpr uint64_t kFinished = ~uint64_t{0};

// Where single tokens lead from a state: the distinct ends, kFinished for tokens that close a JSON string. Witnesses use no
// escape that they can do without: others are many, and none is shorter.
class OneToken {
 public:
  OneToken(Vocab& vocab, RegexDfa& dfa, RegexBases& bases, Transport transport)
      : store_(vocab.bases()), trie_(vocab.trie()), dfa_(dfa), bases_(bases), json_(transport != Transport::Raw) {}

  // From and to states between characters: by the base that masks use, which knows where a counted class leads.
  std::vector<uint64_t> ends_between(DfaState state) {
    const std::shared_ptr<const RegexBase> base = bases_.get(store_, TokenTrie::kRoot, state, true);
    if (!base->knows_ends) {
      std::vector<uint64_t> all = ends(state, 0);
      std::erase_if(all, [](uint64_t k) { return k != kFinished && (k & kSubMask) != 0; });
      return all;
    }
    std::vector<uint64_t> found;
    for (const DfaState to : base->ends) found.push_back(key_of(to, 0));
    if (!base->close.empty()) found.push_back(kFinished);
    return found;
  }

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
    const std::shared_ptr<const ClassBase> run = store_.run(node, set);
    if (!run->stay().empty()) end(key_of(state, 0));
    std::bitset<256> exits;
    for (unsigned b = 0; b < 256; ++b) exits[b] = b >= 0x80 || ((b < 64 ? set.lo >> b : set.hi >> (b - 64)) & 1u) == 0;
    run->each_exit(exits, [&](TrieNode c, uint8_t, uint32_t) { step(c, 0, state); });
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
  RegexBases& bases_;
  bool json_;
  std::vector<At> stack_;
  std::vector<uint64_t> ends_;
};

}  // namespace

Automaton::Automaton(std::shared_ptr<RegexDfa> dfa) : dfa_(std::move(dfa)), counts_(*dfa_) {
  static std::atomic<uint32_t> last{0};
  serial_ = ++last;
}

Automaton::PerVocab& Automaton::per_vocab(const Vocab& vocab, Transport transport) {
  for (auto& p : per_vocab_)
    if (p->vocab == vocab.serial() && p->transport == transport) return *p;
  per_vocab_.push_back(std::make_unique<PerVocab>(vocab, transport, *dfa_));
  return *per_vocab_.back();
}

RegexBases& Automaton::bases(const Vocab& vocab, Transport transport) {
  const std::scoped_lock lock(mutex_);
  return per_vocab(vocab, transport).bases;
}

namespace {

// Bytes that spell some character of a class: the smallest one may be a control character, which JSON escapes and a vocabulary
// may lack, beside letters.
uint32_t find_bytes_of(const RegexDfa::Successor& s, const RegexDfa& dfa, const Vocab& vocab, Transport transport) {
  const bool raw = transport == Transport::Raw;
  const uint32_t smallest = json_bytes(s.code_point);
  std::vector<uint32_t> ascii;
  dfa.code_points(s.cls, 0x7f, ascii);
  uint32_t best = kNoCost;
  for (const uint32_t c : ascii)
    if (const bool escaped = !raw && json_bytes(c) > 1; escaped || vocab.has_byte(static_cast<uint8_t>(c)))
      best = std::min(best, escaped ? json_bytes(c) : 1);
  if (best < kNoCost) return best;
  if (vocab.is_byte_complete()) return smallest;
  if (transport == Transport::JsonAny) return s.code_point > 0xffff ? 12 : 6;
  return std::max(smallest, 4u);
}

uint32_t bytes_of(const RegexDfa::Successor& s, const RegexDfa& dfa, const Vocab& vocab, Transport transport,
                  std::unordered_map<uint32_t, uint32_t>& known) {
  const auto [it, fresh] = known.try_emplace(s.cls, 0);
  if (fresh) it->second = find_bytes_of(s, dfa, vocab, transport);
  return it->second;
}

// The graph around a state whose edges are single tokens and, between characters, characters spelled by bytes; and the
// distances to an end in it.
class FinishSearch {
 public:
  FinishSearch(Vocab& vocab, RegexDfa& dfa, RegexBases& bases, Transport transport,
               std::unordered_map<uint64_t, uint32_t>& known, std::unordered_map<uint32_t, uint32_t>& class_bytes)
      : vocab_(vocab), tokens_(vocab, dfa, bases, transport), dfa_(dfa), transport_(transport), known_(known),
        class_bytes_(class_bytes) {}

  // False: more than `most` states lie between characters. If those inside characters are more than that, or not asked for,
  // they are left out again (`complete` says so): a part of them would not have costs that every token lowers.
  bool explore(uint64_t from, size_t most, bool inside) {
    complete_ = true;
    meet(from);
    for (size_t between = 0, cut = 0; !between_.empty() || !inside_.empty();) {
      if (!between_.empty()) {
        if (++between > most) return false;
        expand(take(between_), inside);
      } else if (inside && ++cut <= most) {
        expand(take(inside_), inside);
      } else {
        complete_ = false;
        break;
      }
    }
    return true;
  }
  bool complete() const { return complete_; }

  // Backward from the ends (Dijkstra's algorithm).
  void settle() {
    for (const auto& [k, c] : cost_)
      if (c < kNoCost) queue_.emplace(c, k);
    while (!queue_.empty()) {
      const auto [c, k] = queue_.top();
      queue_.pop();
      if (cost_[k] == c) relax(k, c);
    }
    for (uint64_t k : order_) {
      if (!settles(k)) continue;
      const auto it = cost_.find(k);
      known_[k] = it == cost_.end() ? kNoCost : it->second;
    }
  }

 private:
  struct Edge {
    uint64_t from;
    uint32_t cost;
  };
  bool settles(uint64_t k) const { return complete_ || (k & kSubMask) == 0; }
  static uint64_t take(std::deque<uint64_t>& queue) {
    const uint64_t k = queue.front();
    queue.pop_front();
    return k;
  }
  bool is_end(uint64_t k) const {
    return k == kFinished || (transport_ == Transport::Raw && (k & kSubMask) == 0 && dfa_.accepting(static_cast<DfaState>(k >> kSubBits)));
  }
  void meet(uint64_t k) {
    if (!seen_.insert(k).second) return;
    const auto old = known_.find(k);
    if (is_end(k)) cost_[k] = 0;
    else if (old != known_.end()) cost_[k] = old->second;
    else ((k & kSubMask) == 0 ? between_ : inside_).push_back(k);
  }
  // Accepting states of raw text cost nothing and are not looked into, so a long optional tail is free.
  void expand(uint64_t at, bool inside) {
    order_.push_back(at);
    const auto state = static_cast<DfaState>(at >> kSubBits);
    const std::vector<uint64_t> ends = inside ? tokens_.ends(state, static_cast<Sub>(at & kSubMask)) : tokens_.ends_between(state);
    complete_ = complete_ && inside;
    for (uint64_t next : ends) {
      before_[next].push_back({at, 1});
      meet(next);
    }
    if ((at & kSubMask) != 0) return;
    dfa_.successors(state, successors_);
    for (const auto& s : successors_) {
      before_[key_of(s.next, 0)].push_back({at, bytes_of(s, dfa_, vocab_, transport_, class_bytes_)});
      meet(key_of(s.next, 0));
    }
  }
  void relax(uint64_t k, uint32_t c) {
    for (const Edge& e : before_[k]) {
      const uint32_t cost = add_cost(c, e.cost);
      const auto it = cost_.find(e.from);
      if (!settles(e.from) || cost >= kNoCost || (it != cost_.end() && it->second <= cost)) continue;
      cost_[e.from] = cost;
      queue_.emplace(cost, e.from);
    }
  }

  const Vocab& vocab_;
  OneToken tokens_;
  RegexDfa& dfa_;
  Transport transport_;
  bool complete_ = true;
  std::unordered_map<uint64_t, uint32_t>& known_;
  std::unordered_map<uint32_t, uint32_t>& class_bytes_;
  std::unordered_map<uint64_t, std::vector<Edge>> before_;  // by successor
  std::unordered_map<uint64_t, uint32_t> cost_;
  std::unordered_set<uint64_t> seen_;
  std::vector<uint64_t> order_;
  std::deque<uint64_t> between_, inside_;  // states yet to be looked into
  std::vector<RegexDfa::Successor> successors_;
  std::priority_queue<std::pair<uint32_t, uint64_t>, std::vector<std::pair<uint32_t, uint64_t>>, std::greater<>> queue_;
};

}  // namespace

uint32_t Automaton::finish(CostUnit unit, Vocab& vocab, Transport transport, DfaState state, Sub sub) {
  const std::scoped_lock lock(mutex_);
  PerVocab& here = per_vocab(vocab, transport);
  if (unit == CostUnit::Tokens) return finish_tokens(here, vocab, state, sub);
  const uint32_t bytes = sub == 0 ? bytes_to_end(here, vocab, state) : bytes_after_cut(here, vocab, state);
  return add_cost(bytes, transport == Transport::Raw ? 0 : 1);
}

uint32_t Automaton::finish_tokens(PerVocab& here, Vocab& vocab, DfaState state, Sub sub) {
  const bool raw = here.transport == Transport::Raw;
  if (raw && sub == 0 && dfa_->accepting(state)) return 0;
  const uint64_t key = key_of(state, sub);
  const bool may_be_escape = here.transport == Transport::JsonAny && sub_mode(sub) >= Mode::Backslash;
  auto it = here.finish.find(key);
  if (it == here.finish.end() && !may_be_escape) {  // the search knows no escapes but those that must be
    search_finish(here, vocab, key);
    it = here.finish.find(key);
  }
  if (may_be_escape) return std::min(finish_character(here, vocab, state, sub), it == here.finish.end() ? kNoCost : it->second);
  if (sub != 0) return it != here.finish.end() ? it->second : finish_character(here, vocab, state, sub);
  const uint32_t bytes = add_cost(bytes_to_end(here, vocab, state), raw ? 0 : 1);
  if (it == here.finish.end()) it = here.finish.emplace(key, bytes).first;
  // What was found nearby counts whole tokens; a text by bytes may be less, and others rely on that.
  return it->second = std::min(it->second, bytes);
}

// Settles the state and all that it leads to, if they are not too many.
void Automaton::search_finish(PerVocab& here, Vocab& vocab, uint64_t from) {
  if (here.is_small) {
    FinishSearch search(vocab, *dfa_, here.bases, here.transport, here.finish, here.class_bytes);
    here.is_small = search.explore(from, kFewStates, true) && search.complete();
    if (here.is_small) return search.settle();
  }
  if ((from & kSubMask) != 0) return;
  if (!here.is_far && search_near(here, vocab, static_cast<DfaState>(from >> kSubBits))) return;
  here.is_far = true;  // one search in vain is enough
  if (too_wide_) return;
  FinishSearch search(vocab, *dfa_, here.bases, here.transport, here.finish, here.class_bytes);
  too_wide_ = !search.explore(from, most_searched(), false);  // likewise
  if (!too_wide_) search.settle();
}

// The same for the states on one way to an end that is few tokens away, level by level: so a long optional tail, or a text
// of a thousand characters, need not be looked into.
bool Automaton::search_near(PerVocab& here, Vocab& vocab, DfaState from) {
  OneToken tokens(vocab, *dfa_, here.bases, here.transport);
  const uint64_t start = key_of(from, 0);
  std::unordered_map<uint64_t, uint64_t> came_from{{start, start}};
  std::vector<uint64_t> order{start};
  for (size_t i = 0; i < order.size() && i < kNearStates; ++i)
    for (const uint64_t next : tokens.ends_between(static_cast<DfaState>(order[i] >> kSubBits))) {
      if (!came_from.try_emplace(next, order[i]).second) continue;
      const bool is_end = next == kFinished || (here.transport == Transport::Raw && dfa_->accepting(static_cast<DfaState>(next >> kSubBits)));
      if (!is_end) {
        order.push_back(next);
        continue;
      }
      uint32_t cost = 0;
      for (uint64_t at = next; at != start;) {
        at = came_from[at];
        const auto known = here.finish.try_emplace(at, kNoCost).first;
        known->second = std::min(known->second, ++cost);
      }
      return true;
    }
  return false;
}

// Inside a character: its bytes, and on from behind it.
uint32_t Automaton::finish_character(PerVocab& here, Vocab& vocab, DfaState state, Sub sub) {
  const uint64_t key = key_of(state, sub);
  if (const auto it = here.characters.find(key); it != here.characters.end()) return it->second;
  uint32_t best = kNoCost;
  std::vector<DfaState> next;
  each_finish(sub, here.transport == Transport::JsonAny, [&](uint32_t lo, uint32_t hi, uint32_t bytes) {
    dfa_->successors_in(state, lo, hi, next);
    for (DfaState to : next) best = std::min(best, add_cost(bytes, finish_tokens(here, vocab, to, 0)));
  });
  return here.characters[key] = best;
}

// The state that promises the least and is not on the path yet: beside what is left out of a set of multiples, their
// lengths promise too much, but only for a few steps.
const RegexDfa::Successor* Automaton::nearest(const std::vector<RegexDfa::Successor>& next,
                                              const std::vector<std::pair<DfaState, uint32_t>>& path) const {
  if (path.size() > kMaxWalk) return nullptr;
  const RegexDfa::Successor* best = nullptr;
  for (const auto& s : next) {
    const auto same = [&](const auto& step) { return step.first == s.next; };
    if (std::any_of(path.begin(), path.end(), same)) continue;
    if (best == nullptr || dfa_->min_length(s.next) < dfa_->min_length(best->next)) best = &s;
  }
  return best;
}

// Bytes of one of the shortest texts, in characters, that match from here: down the syntactic lengths, which are exact where
// the expression has no intersection or complement. kNoCost where they are not. One way down is followed, not all.
uint32_t Automaton::shortest_bytes(PerVocab& here, const Vocab& vocab, DfaState state) {
  if (dfa_->min_length(state) > kMaxWalk) return kNoCost;
  auto& shortest = here.shortest;
  const auto bytes = [&](const RegexDfa::Successor& s) { return bytes_of(s, *dfa_, vocab, here.transport, here.class_bytes); };
  std::vector<std::pair<DfaState, uint32_t>> path;  // with the bytes of the character after it
  std::vector<RegexDfa::Successor> next;
  DfaState at = state;
  while (!shortest.contains(at)) {
    if (dfa_->accepting(at)) {
      shortest[at] = 0;
      break;
    }
    dfa_->successors(at, next);
    const RegexDfa::Successor* best = nullptr;
    for (const auto& s : next)
      if (dfa_->min_length(s.next) == dfa_->min_length(at) - 1 &&
          (best == nullptr || bytes(s) < bytes(*best)))
        best = &s;
    if (best == nullptr && dfa_->is_wide()) best = nearest(next, path);
    if (best == nullptr) {
      shortest[at] = kNoCost;
      break;
    }
    path.emplace_back(at, bytes(*best));
    at = best->next;
  }
  uint32_t cost = shortest[at];
  for (; !path.empty(); path.pop_back()) {
    cost = add_cost(cost, path.back().second);
    shortest[path.back().first] = cost;
  }
  return shortest[state];
}

uint32_t Automaton::widest_finish(const Vocab& vocab, Transport transport) {
  const std::scoped_lock lock(mutex_);
  PerVocab& here = per_vocab(vocab, transport);
  explore_bytes(here, vocab);
  return add_cost(here.widest, transport == Transport::Raw ? kMostInside : kMostToClose);
}

uint32_t Automaton::widest(const RegexBase& base, const Vocab& vocab, Transport transport) {
  if (!base.knows_ends) return widest_finish(vocab, transport);
  if (const uint32_t known = base.widest.load(std::memory_order_acquire); known != RegexBase::kUnsettled) return known;
  const std::scoped_lock lock(mutex_);
  const uint32_t found = add_cost(find_widest(per_vocab(vocab, transport), base, vocab), transport == Transport::Raw ? 0 : 1);
  base.widest.store(found, std::memory_order_release);
  return found;
}

uint32_t Automaton::find_widest(PerVocab& here, const RegexBase& base, const Vocab& vocab) {
  uint32_t most = 0;
  for (const DfaState end : base.ends) most = std::max(most, bytes_to_end(here, vocab, end));
  for (const DfaState state : base.cut) most = std::max(most, bytes_after_cut(here, vocab, state));
  return most;
}

// Bytes of some text that matches from here on, as few as is easily said; kNoCost where there are too many states to look at.
uint32_t Automaton::bytes_to_end(PerVocab& here, const Vocab& vocab, DfaState state) {
  const uint32_t cost = shortest_bytes(here, vocab, state);
  if (cost >= kNoCost) explore_bytes(here, vocab);
  // Once explored, every state has its least: those before it count on no more.
  const auto it = here.bytes.find(state);
  return it == here.bytes.end() ? cost : std::min(cost, it->second);
}

uint32_t Automaton::bytes_after_cut(PerVocab& here, const Vocab& vocab, DfaState state) {
  if (const auto it = here.after_cut.find(state); it != here.after_cut.end()) return it->second;
  std::vector<RegexDfa::Successor> next;
  dfa_->successors(state, next);
  uint32_t most = 0;
  for (const auto& s : next) most = std::max(most, bytes_to_end(here, vocab, s.next));
  return here.after_cut[state] = add_cost(most, here.transport == Transport::Raw ? kMostInside : kMostInsideJson);
}

// Bytes to all states, from the accepting ones back.
void Automaton::explore_bytes(PerVocab& here, const Vocab& vocab) {
  if (std::exchange(here.is_explored, true)) return;
  std::vector<DfaState> order{dfa_->start()};
  std::unordered_map<DfaState, uint32_t> index{{dfa_->start(), 0}};
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> before(1);  // (predecessor, bytes)
  std::vector<RegexDfa::Successor> next;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order.size() > most_searched()) return;
    dfa_->successors(order[i], next);
    for (const auto& s : next) {
      const auto [it, fresh] = index.try_emplace(s.next, static_cast<uint32_t>(order.size()));
      if (fresh) {
        order.push_back(s.next);
        before.emplace_back();
      }
      before[it->second].emplace_back(static_cast<uint32_t>(i), bytes_of(s, *dfa_, vocab, here.transport, here.class_bytes));
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
  here.widest = *std::max_element(cost.begin(), cost.end());
  for (uint32_t i = 0; i < order.size(); ++i) here.bytes.emplace(order[i], cost[i]);
}

}  // namespace mw
