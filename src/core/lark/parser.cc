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

NodeRef Stacks::node(uint32_t state, std::vector<NodeRef> below) {
  uint64_t h = mix(31, state);
  for (NodeRef n : below) h = mix(h, n);
  const uint32_t found =
      node_index_.find(h, [&](uint32_t id) { return nodes_[id].state == state && nodes_[id].below == below; });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<NodeRef>(nodes_.size());
  nodes_.push_back({state, std::move(below)});
  node_index_.insert(h, id);
  return id;
}

StackSet Stacks::set(std::vector<NodeRef> tops) {
  const auto [it, fresh] = set_index_.try_emplace(std::move(tops), static_cast<StackSet>(sets_.size()));
  if (fresh) {
    sets_.push_back(it->first);
    complete_.push_back(-1);
    lexers_.push_back(0);
  }
  return it->second;
}

std::vector<StackSet> Stacks::initial() {
  std::vector<StackSet> out;
  Tops tops;
  for (const auto& start : tables_.starts) {
    const NodeRef first = node(start.state, {});
    if (!tables_.general) out.push_back(set({first}));
    tops[start.state] = {};
    if (start.empty >= 0) add(tops[static_cast<uint32_t>(start.empty)], first);
  }
  if (tables_.general) out.push_back(close(std::move(tops)));
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
    if (a > 0) return set({node(static_cast<uint32_t>(a - 1), {top})});
    const auto& rule = tables_.rules[static_cast<size_t>(-a - 1)];
    for (uint32_t i = 0; i < rule.length; ++i) top = nodes_[top].below.front();
    const uint32_t under = nodes_[top].state;
    const int32_t to = tables_.go_to(under, rule.lhs);
    if (to < 0) return kNoStack;
    if (t == tables_.terminals && tables_.is_end(under, static_cast<uint32_t>(to))) {
      accepted = true;
      return kNoStack;
    }
    top = node(static_cast<uint32_t>(to), {top});
  }
}

// All reductions, until nothing is new; the tops change, what is below them is settled.
StackSet Stacks::close(Tops tops) {
  std::vector<uint32_t> work;
  for (const auto& [state, below] : tops) work.push_back(state);
  while (!work.empty()) {
    const uint32_t state = work.back();
    work.pop_back();
    for (const uint32_t r : tables_.reduces[state]) {
      const auto& rule = tables_.rules[r];
      std::vector<NodeRef> under;
      for (const NodeRef n : std::vector<NodeRef>(tops[state]))
        for (const NodeRef m : below(n, rule.length - 1)) add(under, m);
      for (const NodeRef n : under) {
        const int32_t to = tables_.go_to(nodes_[n].state, rule.lhs);
        if (to < 0) continue;
        auto& list = tops[static_cast<uint32_t>(to)];
        const size_t before = list.size();
        add(list, n);
        if (list.size() != before && std::find(work.begin(), work.end(), static_cast<uint32_t>(to)) == work.end())
          work.push_back(static_cast<uint32_t>(to));
      }
    }
  }
  std::vector<NodeRef> nodes;
  for (auto& [state, below] : tops) add(nodes, node(state, std::move(below)));
  return nodes.empty() ? kNoStack : set(std::move(nodes));
}

StackSet Stacks::make_feed(StackSet s, Type t) {
  if (!tables_.general) {
    bool accepted = false;
    return feed_one(sets_[s].front(), t, accepted);
  }
  Tops tops;
  for (const NodeRef n : std::vector<NodeRef>(sets_[s])) {
    const int32_t a = tables_.at(nodes_[n].state, t);
    if (a > 0) add(tops[static_cast<uint32_t>(a - 1)], n);
  }
  return close(std::move(tops));
}

StackSet Stacks::feed(StackSet s, Type t) {
  const uint64_t key = (uint64_t{s} << 32) | t;
  const auto hit = feeds_.find(key);
  if (hit != feeds_.end()) return hit->second;
  const StackSet made = make_feed(s, t);
  feeds_.emplace(key, made);
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
  std::vector<uint64_t> wanted((tables_.terminals + 63) / 64, 0);
  for (Type t = 0; t < tables_.terminals; ++t) {
    bool acts = lexer_.ignores(t);
    for (const NodeRef n : sets_[s]) acts = acts || tables_.at(nodes_[n].state, t) > 0;
    if (acts) wanted[t / 64] |= uint64_t{1} << (t % 64);
  }
  return lexer_.start(wanted, begin);
}

LexState Stacks::lexer(StackSet s, bool begin) {
  if (begin && lexer_.code().is_anchored()) return make_lexer(s, true);
  if (lexers_[s] == 0) lexers_[s] = make_lexer(s, false);
  return lexers_[s];
}

StackSet Stacks::unite(StackSet a, StackSet b) {
  Tops tops;
  for (const StackSet s : {a, b})
    for (const NodeRef n : sets_[s])
      for (const NodeRef m : nodes_[n].below) add(tops[nodes_[n].state], m);
  std::vector<NodeRef> nodes;
  for (const StackSet s : {a, b})  // those of the start have nothing below
    for (const NodeRef n : sets_[s])
      if (nodes_[n].below.empty()) add(nodes, n);
  for (auto& [state, below] : tops) add(nodes, node(state, std::move(below)));
  return set(std::move(nodes));
}

}  // namespace mw::lark
