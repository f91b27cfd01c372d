#include "parser.h"

#include <algorithm>

namespace mw::lark {
namespace {

void add(std::vector<NodeRef>& to, NodeRef n) {
  const auto it = std::lower_bound(to.begin(), to.end(), n);
  if (it == to.end() || *it != n) to.insert(it, n);
}

}  // namespace

bool Tables::acts(uint32_t s, uint32_t t) const {
  if (at(s, t) != 0) return true;
  if (!general) return false;
  return std::any_of(reduces[s].begin(), reduces[s].end(), [&](uint32_t r) { return follows(rules[r].lhs, t); });
}

std::span<const NodeRef> Stacks::Lists::keep(std::span<const NodeRef> list) {
  if (list.empty()) return {};
  if (list.size() > left_) {
    left_ = std::max(kChunk, list.size());
    chunks_.push_back(std::make_unique<NodeRef[]>(left_));
    at_ = chunks_.back().get();
  }
  std::copy(list.begin(), list.end(), at_);
  const std::span<const NodeRef> kept(at_, list.size());
  at_ += list.size();
  left_ -= list.size();
  return kept;
}

std::vector<NodeRef>& Stacks::Tops::at(uint32_t state) {
  if (place_[state] == kNone) {
    place_[state] = static_cast<uint32_t>(states_.size());
    states_.push_back(state);
    if (lists_.size() < states_.size()) lists_.emplace_back();
    lists_[place_[state]].clear();
  }
  return lists_[place_[state]];
}

void Stacks::Tops::clear() {
  for (const uint32_t state : states_) place_[state] = kNone;
  states_.clear();
}

const StackSet* Stacks::Feeds::find(uint64_t key) const {
  if (slots_.empty()) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t i = static_cast<size_t>(mix(33, key)) & mask;; i = (i + 1) & mask) {
    if (slots_[i].key == key) return &slots_[i].to;
    if (slots_[i].key == kNone) return nullptr;
  }
}

void Stacks::Feeds::insert(uint64_t key, StackSet to) {
  if ((count_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kNone) place(slot);
  }
  place({key, to});
  ++count_;
}

void Stacks::Feeds::place(const Slot& slot) {
  const size_t mask = slots_.size() - 1;
  size_t i = static_cast<size_t>(mix(33, slot.key)) & mask;
  while (slots_[i].key != kNone) i = (i + 1) & mask;
  slots_[i] = slot;
}

NodeRef Stacks::node(uint32_t state, std::span<const NodeRef> below) {
  uint64_t h = mix(31, state);
  for (NodeRef n : below) h = mix(h, n);
  const uint32_t found = node_index_.find(
      h, [&](uint32_t id) { return nodes_[id].state == state && std::ranges::equal(nodes_[id].below, below); });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<NodeRef>(nodes_.size());
  nodes_.push_back({state, lists_.keep(below)});
  node_index_.insert(h, id);
  return id;
}

StackSet Stacks::set(std::span<const NodeRef> tops) {
  uint64_t h = 32;
  for (NodeRef n : tops) h = mix(h, n);
  const uint32_t found = set_index_.find(h, [&](uint32_t id) { return std::ranges::equal(sets_[id], tops); });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<StackSet>(sets_.size());
  sets_.push_back(lists_.keep(tops));
  complete_.push_back(-1);
  lexers_.push_back(0);
  set_index_.insert(h, id);
  return id;
}

std::vector<StackSet> Stacks::initial() {
  std::vector<StackSet> out;
  for (const auto& start : tables_.starts) {
    const NodeRef first = node(start.state, {});
    if (!tables_.general) out.push_back(set({&first, 1}));
    else {
      scratch_.at(start.state);
      if (start.empty >= 0) add(scratch_.at(static_cast<uint32_t>(start.empty)), first);
    }
  }
  if (tables_.general) out.push_back(close());
  return out;
}

std::vector<NodeRef> Stacks::below(NodeRef n, uint32_t depth) const {
  std::vector<NodeRef> at{n}, next;
  for (; depth > 0; --depth) {
    next.clear();
    for (NodeRef x : at)
      for (NodeRef y : nodes_[x].below) add(next, y);
    at.swap(next);
  }
  return at;
}

// lalr: reductions, then the shift. At the end of the text: whether it is accepted.
StackSet Stacks::feed_one(NodeRef top, Type t, bool& accepted) {
  for (;;) {
    const int32_t a = tables_.at(nodes_[top].state, t);
    if (a == 0) return kNoStack;
    if (a > 0) {
      const NodeRef made = node(static_cast<uint32_t>(a - 1), {&top, 1});
      return set({&made, 1});
    }
    const auto& rule = tables_.rules[static_cast<size_t>(-a - 1)];
    for (uint32_t i = 0; i < rule.length; ++i) top = nodes_[top].below.front();
    const uint32_t under = nodes_[top].state;
    const int32_t to = tables_.go_to(under, rule.lhs);
    if (to < 0) return kNoStack;
    if (t == tables_.terminals && tables_.is_end(under, static_cast<uint32_t>(to))) {
      accepted = true;
      return kNoStack;
    }
    top = node(static_cast<uint32_t>(to), {&top, 1});
  }
}

// What comes of a reduction of the tops with a state.
void Stacks::reduce(uint32_t state, const Tables::Rule& rule, std::vector<uint32_t>& work) {
  under_ = scratch_.at(state);
  if (rule.length > 1) {
    std::vector<NodeRef> deeper;
    for (const NodeRef n : under_)
      for (const NodeRef m : below(n, rule.length - 1)) add(deeper, m);
    under_ = std::move(deeper);
  }
  for (const NodeRef n : under_) {
    const int32_t go = tables_.go_to(nodes_[n].state, rule.lhs);
    if (go < 0) continue;
    const auto to = static_cast<uint32_t>(go);
    auto& list = scratch_.at(to);
    const size_t before = list.size();
    add(list, n);
    if (list.size() != before && std::find(work.begin(), work.end(), to) == work.end()) work.push_back(to);
  }
}

// All reductions of what is in scratch_, until nothing is new; the tops change, what is below them is settled.
StackSet Stacks::close() {
  std::vector<uint32_t> work(scratch_.states().begin(), scratch_.states().end());
  while (!work.empty()) {
    const uint32_t state = work.back();
    work.pop_back();
    for (const uint32_t r : tables_.reduces[state]) reduce(state, tables_.rules[r], work);
  }
  std::vector<NodeRef> nodes;
  for (const uint32_t state : scratch_.states()) nodes.push_back(node(state, scratch_.at(state)));
  scratch_.clear();
  std::sort(nodes.begin(), nodes.end());
  return nodes.empty() ? kNoStack : set(nodes);
}

StackSet Stacks::make_feed(StackSet s, Type t) {
  if (!tables_.general) {
    bool accepted = false;
    return feed_one(sets_[s].front(), t, accepted);
  }
  for (const NodeRef n : sets_[s]) {
    const int32_t a = tables_.at(nodes_[n].state, t);
    if (a > 0) add(scratch_.at(static_cast<uint32_t>(a - 1)), n);
  }
  return close();
}

StackSet Stacks::feed(StackSet s, Type t) {
  const uint64_t key = (uint64_t{s} << 32) | t;
  if (const StackSet* known = feeds_.find(key)) return *known;
  const StackSet made = make_feed(s, t);
  feeds_.insert(key, made);
  return made;
}

bool Stacks::complete(StackSet s) {
  if (complete_[s] >= 0) return complete_[s] != 0;
  bool accepted = false;
  if (tables_.general) {
    for (const NodeRef n : sets_[s])
      for (const NodeRef m : nodes_[n].below)
        accepted = accepted || (nodes_[m].below.empty() && tables_.is_end(nodes_[m].state, nodes_[n].state));
  } else {
    feed_one(sets_[s].front(), tables_.terminals, accepted);
  }
  complete_[s] = accepted ? 1 : 0;
  return accepted;
}

bool Stacks::can_feed(StackSet s, Type t) {
  if (!tables_.general && tables_.at(nodes_[sets_[s].front()].state, t) > 0) return true;
  return feed(s, t) != kNoStack;
}

LexState Stacks::make_lexer(StackSet s, bool begin) {
  if (lexer_.kind() == Lexer::Kind::First)
    return lexer_.start(tables_.general ? 0 : tables_.lexer_of[nodes_[sets_[s].front()].state], begin);
  std::vector<uint64_t> bits;
  wanted(s, bits);
  return lexer_.start(bits, begin);
}

LexState Stacks::lexer(StackSet s, bool begin) {
  if (begin && lexer_.code().is_anchored()) return make_lexer(s, true);
  if (lexers_[s] == 0) lexers_[s] = make_lexer(s, false);
  return lexers_[s];
}

void Stacks::wanted(StackSet s, std::vector<uint64_t>& out) {
  const size_t words = ignored_.size();
  if (wanted_known_.size() <= s) {
    wanted_known_.resize(2 * (size_t{s} + 1), false);
    wanted_.resize(wanted_known_.size() * words);
  }
  const auto here = wanted_.begin() + static_cast<std::ptrdiff_t>(s * words);
  if (!wanted_known_[s]) {
    wanted_known_[s] = true;
    std::copy(ignored_.begin(), ignored_.end(), here);
    for (const NodeRef n : sets_[s])
      for (size_t i = 0; i < words; ++i) wanted_[s * words + i] |= tables_.shifts[nodes_[n].state * words + i];
  }
  out.assign(here, here + static_cast<std::ptrdiff_t>(words));
}

StackSet Stacks::unite(StackSet a, StackSet b) {
  std::vector<NodeRef> nodes;
  for (const StackSet s : {a, b})
    for (const NodeRef n : sets_[s]) {
      if (nodes_[n].below.empty()) add(nodes, n);  // those of the start
      for (const NodeRef m : nodes_[n].below) add(scratch_.at(nodes_[n].state), m);
    }
  for (const uint32_t state : scratch_.states()) add(nodes, node(state, scratch_.at(state)));
  scratch_.clear();
  return set(nodes);
}

}  // namespace mw::lark
