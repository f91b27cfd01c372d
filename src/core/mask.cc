#include "mask.h"

#include <algorithm>
#include <cstring>

#include "spelling.h"
#include "uniqueness.h"

namespace mw {
namespace {

constexpr uint32_t kBaseMinDescendants = 24;  // below this a plain walk is cheaper than a base
constexpr size_t kMaxSplit = 16;              // exit nodes with fewer members are walked member by member, with bases

}  // namespace

size_t MaskRecord::bytes_used() const {
  const auto of = [](const MaskPart& p) {
    return sizeof(MaskPart) + p.dense.size() * sizeof(void*) + (p.add.size() + p.remove.size()) * sizeof(TokenId);
  };
  size_t n = sizeof(MaskRecord) + owned_bytes + of(plain) + doubts.size() * sizeof(TokenId) + kept.size() * sizeof(kept[0]);
  for (const MaskPart& p : repaired) n += of(p);
  return n;
}

void MaskRecord::write(std::span<uint32_t> row) const {
  const auto unite = [&](const Words& words) {
    for (size_t i = 0; i < words.size(); ++i) row[i] |= words[i];
  };
  bool blank = true;
  const auto add_sets = [&](const MaskPart& p) {
    for (const Words* words : p.dense) {
      if (blank) std::memcpy(row.data(), words->data(), words->size() * sizeof(uint32_t));
      else unite(*words);
      blank = false;
    }
    if (blank) std::fill(row.begin(), row.end(), 0u);
    blank = false;
    for (TokenId t : p.add) set_bit(row.data(), t);
  };
  // Removals concern their own part alone, so the first such part goes into the empty row, others are made aside.
  for (size_t i = 0; i < repaired.size(); ++i) {
    if (i == 0) {
      add_sets(repaired[0]);
      for (TokenId t : repaired[0].remove) clear_bit(row.data(), t);
      continue;
    }
    Words aside(row.size(), 0);
    MaskRecord one;
    one.plain = repaired[i];
    one.write(aside);
    for (TokenId t : repaired[i].remove) clear_bit(aside.data(), t);
    unite(aside);
  }
  add_sets(plain);
}

bool Walker::admits(uint32_t cost) {
  if (!costs_) return true;
  if (cost > limit_) {
    dropped_ = true;
    return false;
  }
  max_cost_ = std::max(max_cost_, cost);
  return true;
}

bool Walker::fits(uint32_t bound) {
  if (costs_ && bound > limit_) return false;
  max_cost_ = std::max(max_cost_, bound);
  return true;
}

void Walker::add(const TokenSet& set) {
  if (set.dense()) part().dense.push_back(&set.words());
  else add(set.list());
}

void Walker::add(std::span<const TokenId> tokens) {
  auto& list = part().add;
  list.insert(list.end(), tokens.begin(), tokens.end());
}

bool Walker::admits_end(const Item& end) {
  if (tests_tokens_ && !can_be_spelled(request_, end)) return false;
  return !costs_ || admits(request_.item_cost(end));
}

bool Walker::opens_item(const Item& item) const {
  return request_.uniqueness() &&
         (request_.rest_has_open_item(item.rest) || request_.machine(item.machine).open_item(item.state));
}

// Whether what becomes of a further item, begun by the same token, depends on the text so far.
bool Walker::is_doubtful(const Item& item) const {
  return opens_item(item) && (costs_ || !request_.machine(item.machine).endless(request_, item.state));
}

void Walker::emit(std::span<const TokenId> tokens, const Item& end) {
  if (is_doubtful(end)) {
    doubts_.insert(doubts_.end(), tokens.begin(), tokens.end());
    return;
  }
  if (!tokens.empty() && admits_end(end)) add(tokens);
}

int Walker::open_part(std::vector<TokenId> removed) {
  const int outer = part_;
  if (removed.empty()) return outer;
  const auto& around = part().remove;
  removed.insert(removed.end(), around.begin(), around.end());
  out_.repaired.emplace_back();
  out_.repaired.back().remove = std::move(removed);
  part_ = static_cast<int>(out_.repaired.size()) - 1;
  return outer;
}

void Walker::run(ConfigId id) {
  const auto configs = static_cast<ConfigId>(request_.config_count());
  const Config& config = request_.config(id);
  for (const Item& item : config.items) walk(TokenTrie::kRoot, item);
  walk_later();
  if (request_.uniqueness()) {
    std::sort(doubts_.begin(), doubts_.end());
    doubts_.erase(std::unique(doubts_.begin(), doubts_.end()), doubts_.end());
    out_.doubts = std::move(doubts_);
  } else {
    settle_doubts(id);
  }
  if (costs_ && !dropped_) out_.max_cost = max_cost_;
  count(configs);
}

void Walker::count(ConfigId configs_before) {
  Counters& counters = request_.program().counters();
  Counters::add(counters.masks, 1);
  Counters::add(counters.live_nodes, live_nodes_);
  Counters::add(counters.dead_probes, dead_probes_);
  Counters::add(counters.configurations, request_.config_count() - configs_before);
}

void Walker::walk_later() {
  while (!later_.empty() || !later_exits_.empty()) {
    if (!later_.empty()) {
      const Later at = later_.back();
      later_.pop_back();
      part_ = at.part;
      follow(at.node, at.item);
    } else {
      const LaterExit at = later_exits_.back();
      later_exits_.pop_back();
      part_ = at.part;
      follow_exit(at.exit, *at.node, at.item);
    }
  }
  part_ = -1;
}

void Walker::walk(TrieNode node, const Item& item) {
  const Machine& m = request_.machine(item.machine);
  if (trie_.descendants(node) >= kBaseMinDescendants && !opens_item(item) && m.walk_base(*this, node, item)) return;
  uint8_t bytes[8];
  const int n = m.candidates(request_, item.state, bytes);
  const auto step = [&](TrieNode c, uint8_t b) {
    const State s = m.next(request_, item.state, b);
    if (s == kDead) {
      ++dead_probes_;
      return;
    }
    ++live_nodes_;
    if (request_.take_doubt()) trie_.collect(c, doubts_);
    else reach(c, {s, item.machine, item.rest});
  };
  if (n >= 0) {
    for (int i = 0; i < n; ++i) {
      const TrieNode c = trie_.child(node, bytes[i]);
      if (c != kNoNode) step(c, bytes[i]);
    }
    return;
  }
  for (TrieNode c = trie_.first_child(node), e = c + trie_.child_count(node); c < e; ++c) step(c, trie_.byte(c));
}

void Walker::reach(TrieNode node, const Item& item) {
  if (trie_.has_tokens(node)) emit(trie_.tokens(node), item);
  if (trie_.child_count(node) == 0) return;
  if (depth_ == kMaxDepth) return later_.push_back({node, item, part_});
  ++depth_;
  follow(node, item);
  --depth_;
}

template <class F>
void Walker::each_branch(const Machine& m, const Item& item, F go_on) {
  std::vector<State> states;
  m.branches(request_, item.state, states);
  for (State s : states) go_on(Item{s, item.machine, item.rest});
}

void Walker::follow(TrieNode node, const Item& item) {
  const Machine& m = request_.machine(item.machine);
  if (m.more(request_, item.state)) walk(node, item);
  const Accept a = m.accept(request_, item.state);
  const auto go = [&](ConfigId id) {
    if (request_.lacks_nodes()) return;
    for (const Item& next : request_.config(id).items) walk(node, next);
  };
  if (a.pop && item.rest != kEndOfText) go(request_.after_pop(item.rest, a.value));
  if (a.push != kNoChild) go(request_.after_push(item, a));
  if (a.split) [[unlikely]] each_branch(m, item, [&](const Item& branch) { follow(node, branch); });
  if (!a.jump) return;
  std::vector<Item> items;
  m.jump(request_, item, items);
  for (const Item& next : items) walk(node, next);
}

void Walker::follow_exits(ExitTrie& exits, CharRange range, const Item& item) {
  if (exits.empty()) return;
  const Exit exit{&exits, range};
  follow_exit(exit, exits.root(), item);
}

void Walker::pop_exits(ExitTrie& exits, CharRange range, RestId rest) {
  if (exits.empty() || rest == kEndOfText) return;
  const ConfigId after = request_.after_pop(rest, 0);
  if (request_.lacks_nodes()) return;
  const Exit exit{&exits, range};
  for (const Item& next : request_.config(after).items) walk_exit(exit, exits.root(), next);
}

void Walker::follow_exit(const Exit& exit, ExitTrie::Node& node, const Item& item) {
  const Machine& m = request_.machine(item.machine);
  if (m.more(request_, item.state)) walk_exit(exit, node, item);
  const Accept a = m.accept(request_, item.state);
  const auto go = [&](ConfigId id) {
    if (request_.lacks_nodes()) return;
    for (const Item& next : request_.config(id).items) walk_exit(exit, node, next);
  };
  if (a.pop && item.rest != kEndOfText) go(request_.after_pop(item.rest, a.value));
  if (a.push != kNoChild) go(request_.after_push(item, a));
  if (a.split) [[unlikely]] each_branch(m, item, [&](const Item& branch) { follow_exit(exit, node, branch); });
  if (!a.jump) return;
  std::vector<Item> items;
  m.jump(request_, item, items);
  for (const Item& next : items) walk_exit(exit, node, next);
}

void Walker::step_exit(const Exit& exit, ExitTrie::Node& child, const Item& item, uint8_t b) {
  const State s = request_.machine(item.machine).next(request_, item.state, b);
  if (s == kDead) {
    ++dead_probes_;
    return;
  }
  ++live_nodes_;
  if (request_.take_doubt()) doubt_exit(exit, child);
  else reach_exit(exit, child, {s, item.machine, item.rest});
}

void Walker::walk_exit(const Exit& exit, ExitTrie::Node& node, const Item& item) {
  const Machine& m = request_.machine(item.machine);
  if (node.members.size() <= kMaxSplit && m.has_base(request_, item.state)) {
    for (const ExitTrie::Member& member : node.members)
      if (exit.range.holds(member.chars)) walk(member.node, item);
    return;
  }
  uint8_t bytes[8];
  const int n = m.candidates(request_, item.state, bytes);
  if (n >= 0) {
    for (int i = 0; i < n; ++i)
      if (ExitTrie::Node* c = exit.trie->child(node, bytes[i])) step_exit(exit, *c, item, bytes[i]);
    return;
  }
  for (size_t i = 0; i < node.bytes.size(); ++i)
    step_exit(exit, exit.trie->expand(*node.children[i]), item, node.bytes[i]);
}

void Walker::reach_exit(const Exit& exit, ExitTrie::Node& node, const Item& item) {
  if (!node.tokens.empty() && is_doubtful(item)) {
    for (const ExitTrie::Token& t : node.tokens)
      if (exit.range.holds(t.chars)) doubts_.push_back(t.id);
  } else if (!node.tokens.empty() && admits_end(item)) {
    for (const ExitTrie::Token& t : node.tokens)
      if (exit.range.holds(t.chars)) part().add.push_back(t.id);
  }
  if (node.children.empty()) return;
  if (depth_ == kMaxDepth) return later_exits_.push_back({exit, &node, item, part_});
  ++depth_;
  follow_exit(exit, node, item);
  --depth_;
}

void Walker::doubt_exit(const Exit& exit, ExitTrie::Node& node) {
  for (const ExitTrie::Member& member : node.members)
    if (exit.range.holds(member.chars)) trie_.collect(member.node, doubts_);
}

void Walker::settle_doubts(ConfigId config) {
  for (TokenId t : doubts_) {
    const ConfigId end = request_.advance(config, vocab_.bytes(t));
    if (end == Request::kNoConfig || request_.lacks_nodes()) continue;
    if (!costs_ || admits(request_.config_cost(end))) out_.plain.add.push_back(t);
  }
}

}  // namespace mw
