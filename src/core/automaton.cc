#include "automaton.h"

#include <algorithm>
#include <deque>

namespace mw {
namespace {

uint64_t key_of(DfaState state, Sub sub) { return (uint64_t{state} << kSubBits) | sub; }
constexpr uint64_t kFinished = ~uint64_t{0};

uint32_t bytes_of(uint32_t cp) {  // in a JSON string; raw text takes no more
  if (cp == '"' || cp == '\\') return 2;
  if (is_control(cp)) return needs_hex_escape(cp) ? 6 : 2;
  uint8_t bytes[4];
  return static_cast<uint32_t>(encode_utf8(cp, bytes));
}

// Where single tokens lead from a state: the distinct ends, kFinished for tokens that close a JSON string.
class OneToken {
 public:
  OneToken(Vocab& vocab, RegexDfa& dfa, Transport transport)
      : store_(vocab.bases()), trie_(vocab.trie()), dfa_(dfa), json_(transport != Transport::Raw),
        any_escapes_(transport == Transport::JsonAny) {}

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
    const Decoded d = json_ ? decode_json(sub, trie_.byte(c), any_escapes_) : decode_utf8(sub, trie_.byte(c));
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
      if (!partial_is_live(next_sub, any_escapes_, live)) return;
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
  bool json_, any_escapes_;
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

// Breadth first over the states that cannot end yet; then backward from the ends, which settles every state that was
// looked into. Accepting states cost nothing and are not looked into, so a long optional tail is free.
uint32_t Automaton::finish_tokens(Vocab& vocab, Transport transport, DfaState state, Sub sub) {
  if (transport == Transport::Raw && sub == 0 && dfa_->accepting(state)) return 0;
  const std::scoped_lock lock(mutex_);
  auto& known = per_vocab(vocab, transport).finish;
  const uint64_t from = key_of(state, sub);
  if (const auto it = known.find(from); it != known.end()) return it->second;
  const auto is_end = [&](uint64_t k) {
    if (k == kFinished) return true;
    return transport == Transport::Raw && (k & kSubMask) == 0 && dfa_->accepting(static_cast<DfaState>(k >> kSubBits));
  };
  OneToken one(vocab, *dfa_, transport);
  std::unordered_map<uint64_t, std::vector<uint64_t>> before;  // successor -> predecessors
  std::vector<uint64_t> order{from};
  std::unordered_map<uint64_t, uint32_t> cost;
  std::vector<uint64_t> settled;
  std::unordered_map<uint64_t, bool> seen{{from, true}};
  for (size_t i = 0; i < order.size() && i < kMaxSearch; ++i) {
    const uint64_t at = order[i];
    for (uint64_t next : one.ends(static_cast<DfaState>(at >> kSubBits), static_cast<Sub>(at & kSubMask))) {
      before[next].push_back(at);
      if (!seen.try_emplace(next, true).second) continue;
      const auto old = known.find(next);
      if (is_end(next)) cost[next] = 0;
      else if (old != known.end()) cost[next] = old->second;
      else order.push_back(next);
    }
  }
  if (order.size() > kMaxSearch) {
    const int64_t length = dfa_->min_length(state);
    return length >= kNoCost / 8 ? kNoCost : static_cast<uint32_t>(6 * length + 12);
  }
  // Backward in order of cost (known costs may differ, so by buckets).
  std::vector<std::vector<uint64_t>> buckets(1);
  const auto put = [&](uint64_t k, uint32_t c) {
    if (c >= kNoCost) return;
    if (buckets.size() <= c) buckets.resize(c + 1);
    buckets[c].push_back(k);
  };
  for (const auto& [k, c] : cost) put(k, c);
  for (uint32_t c = 0; c < buckets.size(); ++c)
    for (size_t i = 0; i < buckets[c].size(); ++i) {
      const uint64_t k = buckets[c][i];
      if (cost[k] != c) continue;
      for (uint64_t p : before[k]) {
        const auto it = cost.find(p);
        if (it != cost.end() && it->second <= c + 1) continue;
        cost[p] = c + 1;
        put(p, c + 1);
      }
    }
  for (uint64_t k : order) {
    const auto it = cost.find(k);
    known[k] = it == cost.end() ? kNoCost : it->second;
  }
  return known[from];
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
        before[it->second].emplace_back(static_cast<uint32_t>(i), bytes_of(s.code_point));
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
