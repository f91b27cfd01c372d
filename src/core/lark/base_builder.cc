#include "base_builder.h"

#include <algorithm>

namespace mw::lark {

BaseBuilder::Slot* BaseBuilder::make_step(const Slot& from, uint8_t b) {
  const LexState q = lexer_.next(from.q, b);
  const Guards g = q == 0 ? kVoidGuards : lexer_.next_guards(from.guards, b);
  return g == kVoidGuards ? &dead_ : slot(q, g, lexer_.column(q, from.column, b));
}

BaseBuilder::Slot* BaseBuilder::slot(LexState q, Guards g, int32_t column) {
  const auto [it, fresh] = slot_index_.try_emplace({q, g, column}, nullptr);
  if (!fresh) return it->second;
  Slot& made = slots_.emplace_back();
  it->second = &made;
  made.q = q;
  made.guards = g;
  made.column = column;
  made.more = lexer_.more(q);
  if (made.more) made.row.resize(256, nullptr);
  for (const TokenEnd& e : lexer_.ends(q)) {
    const Guards guards = lexer_.with(g, e.guard);
    Exit*& exit = exit_index_[{e.type, e.ignore, e.feed, guards, column}];
    if (exit == nullptr) {
      exits_.push_back({e.type, e.ignore, e.feed, guards, column, &survivors(guards), {}});
      exit = &exits_.back();
    }
    made.exits.push_back(exit);
  }
  return &made;
}

const std::bitset<256>& BaseBuilder::survivors(Guards guards) {
  const auto [it, fresh] = survivors_.try_emplace(guards);
  if (fresh)
    for (uint32_t b = 0; b < 256; ++b) it->second.set(b, lexer_.next_guards(guards, static_cast<uint8_t>(b)) != kVoidGuards);
  return it->second;
}

void BaseBuilder::arrive(TrieNode c, Slot& to) {
  if (trie_.has_tokens(c)) {
    if (!to.met) met_.push_back(&to);
    to.met = true;
    for (const TokenId t : trie_.tokens(c)) to.tokens.push_back(t);
  }
  if (trie_.child_count(c) == 0) return;
  for (Exit* exit : to.exits)
    for (TrieNode n = trie_.first_child(c), e = n + trie_.child_count(c); n < e; ++n)
      if (exit->firsts->test(trie_.byte(n))) {
        if (exit->members.empty()) left_.push_back(exit);
        exit->members.push_back(c);
        break;
      }
  if (to.more) stack_.push_back({c, &to});
}

void BaseBuilder::walk_on() {
  while (!stack_.empty()) {
    const At at = stack_.back();
    stack_.pop_back();
    for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c)
      if (Slot* to = step(*at.slot, trie_.byte(c))) arrive(c, *to);
  }
}

void BaseBuilder::walk(TrieNode node, LexState q, Guards g, int32_t column) {
  if (!lexer_.more(q)) return;
  stack_.push_back({node, slot(q, g, column)});
  walk_on();
}

void BaseBuilder::walk(const Place& place, LexState q) {
  if (!lexer_.more(q)) return;
  Slot& from = *slot(q, place.guards(), -1);
  const auto& children = place.children();
  for (size_t i = 0; i < children.size();) {
    const uint8_t b = trie_.byte(children[i]);
    Slot* to = step(from, b);
    for (; i < children.size() && trie_.byte(children[i]) == b; ++i)
      if (to != nullptr) arrive(children[i], *to);
  }
  walk_on();
}

LexBase::Stay BaseBuilder::stay(const Slot& s, size_t vocab_size) const { return {s.q, s.guards, s.column, TokenSet(s.tokens, vocab_size)}; }

std::unique_ptr<LexBase> BaseBuilder::finish(LarkBases& bases, const LarkBases::Over& over, bool sorted) {
  auto out = std::make_unique<LexBase>();
  std::vector<TokenId> sure;
  std::map<const Lexer::Reach*, std::vector<Slot*>> groups;
  const bool first = lexer_.kind() == Lexer::Kind::First;
  for (Slot* s : met_) {
    if (!sorted || !over.loose || s->guards != kNoGuards) {
      out->stays.push_back(stay(*s, over.vocab_size));
      continue;
    }
    const auto& reach = lexer_.reach(s->q);
    if (reach.passes_freely || (!first && !reach.types.empty())) sure.insert(sure.end(), s->tokens.begin(), s->tokens.end());
    else groups[&reach].push_back(s);
  }
  out->sure = TokenSet(std::move(sure), over.vocab_size);
  for (const auto& [reach, slots] : groups) {
    auto& made = out->groups.emplace_back(LexBase::Group{reach, {}, {}});
    std::vector<TokenId> all;
    for (const Slot* s : slots) {
      all.insert(all.end(), s->tokens.begin(), s->tokens.end());
      if (over.indents) made.stays.push_back(stay(*s, over.vocab_size));
    }
    made.tokens = TokenSet(std::move(all), over.vocab_size);
  }
  take_exits(bases, over, *out);
  for (Slot* s : met_) {
    s->tokens.clear();
    s->met = false;
  }
  met_.clear();
  return out;
}

void BaseBuilder::take_exits(LarkBases& bases, const LarkBases::Over& over, LexBase& out) {
  for (Exit* e : left_) {
    std::sort(e->members.begin(), e->members.end());
    e->members.erase(std::unique(e->members.begin(), e->members.end()), e->members.end());
    out.exits.push_back({e->type, e->ignore, e->feed, e->column, &bases.place(over, e->members, e->guards)});
    e->members.clear();
  }
  left_.clear();
}

}  // namespace mw::lark
