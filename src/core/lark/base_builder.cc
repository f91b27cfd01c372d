#include "base_builder.h"

#include <algorithm>

namespace mw::lark {
namespace {

constexpr uint32_t kMinDescendants = 1000;  // below this a plain walk is as good as a base of the vocabulary
constexpr int kMinLoop = 16;                // characters

}  // namespace

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
    for (uint32_t b = 0, last = 256; b < 256; ++b) {
      const uint32_t c = lexer_.code().class_of(static_cast<uint8_t>(b));  // classes are ranges of bytes
      it->second.set(b, c == last ? it->second.test(b - 1) : lexer_.next_guards(guards, static_cast<uint8_t>(b)) != kVoidGuards);
      last = c;
    }
  return it->second;
}

void BaseBuilder::arrive(TrieNode c, Slot& to) {
  if (trie_.has_tokens(c)) {
    meet(to);
    for (const TokenId t : trie_.tokens(c)) to.tokens.push_back(t);
  }
  if (trie_.child_count(c) == 0) return;
  for (Exit* exit : to.exits) add_exit(*exit, c);
  if (to.more) stack_.push_back({c, &to});
}

void BaseBuilder::meet(Slot& s) {
  if (!s.met) met_.push_back(&s);
  s.met = true;
}

bool BaseBuilder::takes_all_beyond_ascii(Slot& s) {
  const Utf8Automata& utf8 = lexer_.code().utf8();
  std::vector<std::pair<Slot*, uint32_t>> work{{&s, lexer_.code().any()}};
  for (size_t i = 0; i < work.size(); ++i)
    for (uint32_t b = 0x80; b < 0x100; ++b) {
      const auto [at, inside] = work[i];
      const uint32_t next = utf8.next(inside, static_cast<uint8_t>(b));
      if (next == Utf8Automata::kNone) continue;
      Slot* to = at->more ? step(*at, static_cast<uint8_t>(b)) : nullptr;
      if (to == nullptr || (next == 0 && to != &s)) return false;
      if (next != 0 && std::find(work.begin(), work.end(), std::pair(to, next)) == work.end()) work.push_back({to, next});
    }
  return true;
}

// Whether many characters lead back to a state, and either all beyond ASCII or none.
bool BaseBuilder::loops(Slot& s) {
  if (s.loops >= 0) return s.loops != 0;
  s.loops = 0;
  int count = 0;
  for (uint32_t b = 0; b < 0x80; ++b) {
    const Slot* to = step(s, static_cast<uint8_t>(b));
    if (to == &s) {
      (b < 64 ? s.loop_set.lo : s.loop_set.hi) |= uint64_t{1} << (b % 64);
      ++count;
    } else if (to != nullptr) {
      s.leaves.set(b);
    }
  }
  if (count < kMinLoop) return false;
  bool beyond = false;
  for (uint32_t b = 0x80; b < 0x100; ++b) beyond = beyond || step(s, static_cast<uint8_t>(b)) != nullptr;
  s.loop_set.other = beyond;
  if (beyond && !takes_all_beyond_ascii(s)) return false;
  s.loops = 1;
  return true;
}

// Siblings are side by side, and so are their descendants: few ranges come of it.
void BaseBuilder::Run::leave_out(const TokenTrie& trie, TrieNode branch) {
  branches.push_back(branch);
  const auto add = [&](TrieNode from, TrieNode to) {
    for (auto& r : left_out)
      if (r.second == from) {
        r.second = to;
        return;
      }
    left_out.push_back({from, to});
  };
  add(branch, branch + 1);
  if (trie.child_count(branch) != 0) add(trie.first_child(branch), trie.end(branch));
}

// Whether most of what may be read at a node leads to one state that loops.
bool BaseBuilder::begins_run(TrieNode node, Slot& s, Run& out) {
  if (!s.leads || &s == s.leads_to) return false;
  if (s.leads_to == nullptr) {
    std::map<Slot*, int> counts;
    for (uint32_t b = 0; b < 0x80; ++b)
      if (Slot* to = step(s, static_cast<uint8_t>(b)); to != nullptr && to != &s && ++counts[to] >= kMinLoop) s.leads_to = to;
    s.leads = s.leads_to != nullptr && s.leads_to->more && loops(*s.leads_to);
    for (uint32_t b = 0; b < 0x100 && s.leads; ++b) {
      const Slot* to = step(s, static_cast<uint8_t>(b));
      s.leads = b < 0x80 ? to != s.leads_to || step(*s.leads_to, static_cast<uint8_t>(b)) == s.leads_to : to == nullptr;
    }
    if (!s.leads) return false;
  }
  out = {node, s.leads_to, false, {}, {}};
  for (TrieNode c = trie_.first_child(node), e = c + trie_.child_count(node); c < e; ++c) {
    Slot* to = step(s, trie_.byte(c));
    if (to == s.leads_to) continue;
    if (step(*s.leads_to, trie_.byte(c)) != nullptr) out.leave_out(trie_, c);
    if (to != nullptr) arrive(c, *to);
  }
  return true;
}

// What one base of the vocabulary knows of it.
void BaseBuilder::take_run(const Run& at) {
  Slot& s = *at.slot;
  const std::shared_ptr<const ClassBase> run = store_->run(at.node, s.loop_set);
  meet(s);
  Words stay = run->stay().words();
  if (!run->stay().dense()) {
    stay.assign(words_for(store_->vocab_size()), 0);
    for (const TokenId t : run->stay().list()) set_bit(stay.data(), t);
  }
  std::vector<TokenId> other;
  for (const TrieNode branch : at.branches) trie_.collect(branch, other);
  for (const TokenId t : other) clear_bit(stay.data(), t);
  if (s.run.empty()) s.run = std::move(stay);
  else
    for (size_t i = 0; i < s.run.size(); ++i) s.run[i] |= stay[i];
  leave_run(at, *run);
}

// What follows the run: what its state leads to, and what may come behind ends of tokens in it.
void BaseBuilder::leave_run(const Run& at, const ClassBase& run) {
  Slot& s = *at.slot;
  std::bitset<256> ends, goes_on;  // bytes behind ends of tokens; bytes of the run
  for (const Exit* exit : s.exits) ends |= *exit->firsts;
  for (uint32_t b = 0; b < 256; ++b) goes_on.set(b, !s.leaves.test(b) && step(s, static_cast<uint8_t>(b)) != nullptr);
  const auto end = [&](TrieNode n, uint8_t b) {
    if (!at.has(n)) return;
    for (Exit* exit : s.exits)
      if (exit->firsts->test(b)) {
        if (exit->members.empty()) left_.push_back(exit);
        if (exit->members.empty() || exit->members.back() != n) exit->members.push_back(n);
      }
  };
  const auto look = [&](TrieNode c, uint8_t b, uint32_t) {
    const TrieNode from = trie_.parent(c);
    if (ends.test(b)) end(from, b);
    if (s.leaves.test(b) && (at.whole || at.has(from))) arrive(c, *step(s, b));
  };
  if ((ends & goes_on).none()) return run.each_exit(ends | s.leaves, look);
  const auto all = [&](TrieNode n, uint32_t) {
    for (TrieNode c = trie_.first_child(n), e = c + trie_.child_count(n); c < e; ++c) look(c, trie_.byte(c), 0);
  };
  all(at.node, 0);
  run.each_end(all);
}

void BaseBuilder::add_exit(Exit& exit, TrieNode node) {
  for (TrieNode c = trie_.first_child(node), e = c + trie_.child_count(node); c < e; ++c)
    if (exit.firsts->test(trie_.byte(c))) {
      if (exit.members.empty()) left_.push_back(&exit);
      exit.members.push_back(node);
      return;
    }
}

void BaseBuilder::walk_on(bool runs) {
  while (!stack_.empty()) {
    const At at = stack_.back();
    stack_.pop_back();
    if (runs && store_ != nullptr && trie_.descendants(at.node) >= kMinDescendants) {
      Run run{at.node, at.slot, true, {}, {}};
      if (loops(*at.slot) || begins_run(at.node, *at.slot, run)) {
        take_run(run);
        continue;
      }
    }
    for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c)
      if (Slot* to = step(*at.slot, trie_.byte(c))) arrive(c, *to);
  }
}

void BaseBuilder::walk(TrieNode node, LexState q, Guards g, int32_t column, bool runs) {
  if (!lexer_.more(q)) return;
  stack_.push_back({node, slot(q, g, column)});
  walk_on(runs);
}

void BaseBuilder::walk(const Place& place, LexState q) {
  if (!lexer_.more(q)) return;
  Slot& from = *slot(q, place.guards(), -1);
  bool large = false;
  for (const TrieNode n : place.members())
    if (trie_.descendants(n) >= kMinDescendants) {
      stack_.push_back({n, &from});
      large = true;
    }
  const auto& children = place.children();
  for (size_t i = 0; i < children.size();) {
    const uint8_t b = trie_.byte(children[i]);
    Slot* to = step(from, b);
    for (; i < children.size() && trie_.byte(children[i]) == b; ++i)
      if (to != nullptr && !(large && trie_.descendants(trie_.parent(children[i])) >= kMinDescendants)) arrive(children[i], *to);
  }
  walk_on(true);
}

TokenSet BaseBuilder::tokens(Slot& s, size_t vocab_size) const {
  if (s.run.empty()) return TokenSet(s.tokens, vocab_size);
  for (const TokenId t : s.tokens) set_bit(s.run.data(), t);
  return TokenSet(s.run);
}

LexBase::Stay BaseBuilder::stay(Slot& s, size_t vocab_size) const { return {s.q, s.guards, s.column, tokens(s, vocab_size)}; }

TokenSet BaseBuilder::united(const std::vector<Slot*>& slots, size_t vocab_size) const {
  if (slots.size() == 1) return tokens(*slots[0], vocab_size);
  std::vector<TokenId> listed;
  Words all;
  for (const Slot* s : slots) {
    listed.insert(listed.end(), s->tokens.begin(), s->tokens.end());
    if (s->run.empty()) continue;
    all.resize(s->run.size(), 0);
    for (size_t i = 0; i < all.size(); ++i) all[i] |= s->run[i];
  }
  if (all.empty()) return TokenSet(std::move(listed), vocab_size);
  for (const TokenId t : listed) set_bit(all.data(), t);
  return TokenSet(std::move(all));
}

void BaseBuilder::take_stays(const LarkBases::Over& over, bool sorted, LexBase& out) {
  std::vector<Slot*> sure;
  std::map<std::pair<std::vector<Type>, bool>, std::vector<Slot*>> groups;
  for (Slot* s : met_) {
    if (!sorted || !over.loose || s->guards != kNoGuards) {
      out.stays.push_back(stay(*s, over.vocab_size));
      continue;
    }
    if (lexer_.kind() != Lexer::Kind::First) {  // all that is there was wanted
      if (!lexer_.reach(s->q).types.empty()) sure.push_back(s);
      continue;
    }
    std::vector<Type> types;
    bool ignored = false;
    for (const TokenEnd& e : lexer_.ends(s->q)) {
      ignored = ignored || e.ignore;
      if (e.feed) types.push_back(e.type);
    }
    groups[{std::move(types), ignored}].push_back(s);
  }
  if (!sure.empty()) out.sure = united(sure, over.vocab_size);
  for (const auto& [key, slots] : groups) {
    LexBase::Group& made = out.groups.emplace_back();
    made.types = key.first;
    made.ignored = key.second;
    made.tokens = united(slots, over.vocab_size);
    for (Slot* s : slots) made.stays.push_back(stay(*s, over.vocab_size));
  }
}

std::unique_ptr<LexBase> BaseBuilder::finish(LarkBases& bases, const LarkBases::Over& over, bool sorted) {
  auto out = std::make_unique<LexBase>();
  take_stays(over, sorted, *out);
  take_exits(bases, over, *out);
  for (Slot* s : met_) {
    s->tokens.clear();
    s->run.clear();
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
