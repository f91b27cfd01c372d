#include "lark.h"

#include <algorithm>

#include "../request.h"
#include "lark_memory.h"

namespace mw {

using namespace lark;

namespace {

constexpr int kMaxCostLook = 3;             // the same for costs
constexpr int kMaxLook = 6;                // tokens in a row that leave guards which no ignored text frees

}  // namespace

LarkMachine::Memory& LarkMachine::memory(Request& r) const {
  auto& slot = r.memory(id);
  if (!slot) slot = std::make_unique<Memory>(*grammar_);
  return static_cast<Memory&>(*slot);
}

State LarkMachine::state(Memory& m, const Context& c, LexState q) const { return (State{m.contexts.intern(c)} << 32) | q; }

State LarkMachine::before_token(Memory& m, const Context& c, bool begin) const { return state(m, c, m.stacks.lexer(c.stacks, begin)); }

State LarkMachine::next(Request& r, State s, uint8_t b) const {
  if (handle(s) == 0) return kDead;
  Lexer& lexer = grammar_->lexer();
  const LexState q = lexer.next(lex(s), b);
  if (q == 0) return kDead;
  Memory& m = memory(r);
  Context to = m.contexts[handle(s)];
  uint32_t h = handle(s);
  if (to.guards != kNoGuards || lexer.has_newline()) {
    to.guards = lexer.next_guards(to.guards, b);
    if (to.guards == kVoidGuards) return kDead;
    if (lexer.has_newline()) to.layout = m.layouts.at_column(to.layout, lexer.column(q, m.layouts[to.layout].column, b));
    if (to != m.contexts[h]) h = m.contexts.intern(to);
  }
  const State made = (State{h} << 32) | q;
  return spelled_ || is_live(m, made) ? made : kDead;
}

bool LarkMachine::more(Request&, State s) const { return handle(s) != 0 && grammar_->lexer().more(lex(s)); }

template <class F>
void LarkMachine::each_end(Memory& m, State s, F f) const {
  if (handle(s) == 0) {
    for (const StackSet x : m.stacks.initial()) f(Context{x, kNoGuards, 0});
    return;
  }
  Lexer& lexer = grammar_->lexer();
  const Context at = m.contexts[handle(s)];
  for (const TokenEnd& e : lexer.ends(lex(s))) {
    const Guards g = lexer.with(at.guards, e.guard);
    if (e.ignore) f(Context{at.stacks, g, m.layouts.at_column(at.layout, -1)});
    if (!e.feed) continue;
    LayoutId layout = at.layout;
    const StackSet to = m.layouts.end(grammar_->indents(), m.stacks, at.stacks, e.type, layout);
    if (to != kNoStack) f(Context{to, g, layout});
  }
}

bool LarkMachine::is_complete(Memory& m, const Context& c) const {
  return grammar_->lexer().may_end(c.guards) && m.layouts.complete(grammar_->indents(), m.stacks, c.stacks, c.layout);
}

const LarkMachine::Jump& LarkMachine::jump_from(Memory& m, State s) const {
  const auto [it, fresh] = m.jumps.try_emplace(s);
  if (!fresh) return it->second;
  Jump made;
  each_end(m, s, [&](const Context& to) {
    made.accepting = made.accepting || is_complete(m, to);
    const State next = before_token(m, to, handle(s) == 0);
    if (grammar_->lexer().more(lex(next)) && (spelled_ || is_live(m, next))) made.states.push_back(next);
  });
  return m.jumps[s] = std::move(made);
}

Accept LarkMachine::accept(Request& r, State s) const {
  Accept a;
  if (handle(s) != 0 && grammar_->lexer().ends(lex(s)).empty()) return a;
  const Jump& jump = jump_from(memory(r), s);
  a.jump = !jump.states.empty();
  a.pop = jump.accepting;
  return a;
}

void LarkMachine::jump(Request& r, const Item& item, std::vector<Item>& out) const {
  for (const State s : jump_from(memory(r), item.state).states) out.push_back({s, item.machine, item.rest});
}

// Items that differ in their stacks alone are one: else their number would grow with every ambiguity.
void LarkMachine::merge(Request& r, std::vector<Item>& items) const {
  Memory& m = memory(r);
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(a.machine, a.rest, lex(a.state)) < std::tuple(b.machine, b.rest, lex(b.state));
  });
  std::vector<Item> out;
  for (const Item& item : items) {
    bool merged = false;
    for (size_t i = out.size(); i-- > 0 && !merged;) {
      Item& other = out[i];
      if (other.machine != item.machine || other.rest != item.rest || lex(other.state) != lex(item.state)) break;
      if (item.machine != id || handle(item.state) == 0 || handle(other.state) == 0) continue;
      const Context a = m.contexts[handle(item.state)], b = m.contexts[handle(other.state)];
      if (a.guards != b.guards || a.layout != b.layout) continue;
      merged = true;
      if (a.stacks == b.stacks) continue;
      other.state = state(m, {m.stacks.unite(a.stacks, b.stacks), a.guards, a.layout}, lex(item.state));
    }
    if (!merged) out.push_back(item);
  }
  items = std::move(out);
}

// ---------------------------------------------------------------- what can be finished

bool LarkMachine::is_live(Memory& m, State s) const {
  if (grammar_->is_loose()) {
    const Context& c = m.contexts[handle(s)];
    if (c.guards == kNoGuards && (wants_token(m, c, lex(s)) || surely_goes_on(m, c, lex(s)))) return true;
  }
  const auto [it, fresh] = m.live.try_emplace(s, false);
  if (fresh) {
    const bool lives = find_live(m, s);
    m.live[s] = lives;
    return lives;
  }
  return it->second;
}

// Some token that may come of this one is wanted by the parser, or passed over.
bool LarkMachine::can_go_on(Memory& m, const Context& c, LexState q) const {
  const auto& parts = grammar_->lexer().parts(q);
  return std::any_of(parts.begin(), parts.end(), [&](LexState part) {
    const auto& reach = grammar_->lexer().reach(part);
    if (reach.passes || (reach.newline && m.layouts[c.layout].brackets > 0)) return true;
    return std::any_of(reach.types.begin(), reach.types.end(), [&](Type t) { return m.stacks.can_feed(c.stacks, t); });
  });
}

// Before a token of a loose grammar: whether the parser wants one (of text). Then it can be had.
bool LarkMachine::wants_token(const Memory& m, const Context& c, LexState q) const {
  if (q != m.stacks.known_lexer(c.stacks)) return false;
  const Tables& tables = grammar_->tables();
  const Indents& indents = grammar_->indents();
  for (const NodeRef n : m.stacks.tops(c.stacks))
    for (Type t = 0; t < tables.terminals; ++t)
      if (tables.at(m.stacks.node(n).state, t) > 0 && !(indents.on && (t == indents.newline || t == indents.indent || t == indents.dedent)))
        return true;
  return false;
}

// The same where a look at the tables is enough to say so, and nothing is left to be seen to behind that token.
bool LarkMachine::surely_goes_on(const Memory& m, const Context& c, LexState q) const {
  const Tables& tables = grammar_->tables();
  const Indents& indents = grammar_->indents();
  if (grammar_->lexer().kind() != Lexer::Kind::First) {  // nothing but what is wanted is looked for
    const auto& parts = grammar_->lexer().parts(q);
    return std::any_of(parts.begin(), parts.end(), [&](LexState part) { return !grammar_->lexer().reach(part).types.empty(); });
  }
  const auto& reach = grammar_->lexer().reach(q);
  if (reach.passes_freely) return true;
  for (const NodeRef n : m.stacks.tops(c.stacks))
    for (size_t i = 0; i < reach.types.size() && i < 4; ++i)
      if (tables.at(m.stacks.node(n).state, reach.types[i]) > 0 && !(indents.on && reach.types[i] == indents.newline)) return true;
  return false;
}

const std::vector<LarkMachine::LineEnd>& LarkMachine::line_ends(Memory& m, LexState q, Guards g, int32_t column, int32_t most) const {
  Lexer& lexer = grammar_->lexer();
  const auto [it, fresh] = m.line_ends.try_emplace({q, g, column, most});
  std::vector<LineEnd>& out = it->second;
  if (!fresh) return out;
  using At = std::tuple<LexState, Guards, int32_t>;
  std::map<At, uint32_t> seen;
  std::vector<std::pair<At, uint32_t>> work{{{q, g, column}, 0}};
  seen.insert(work[0]);
  for (size_t i = 0; i < work.size(); ++i) {
    const auto [at, bytes] = work[i];
    const auto& [q_at, g_at, column_at] = at;
    for (const TokenEnd& e : lexer.ends(q_at))
      if (e.feed && e.type == grammar_->indents().newline) out.push_back({lexer.with(g_at, e.guard), column_at, bytes});
    const auto step = [&](uint8_t b) {
      const LexState next = lexer.next(std::get<0>(at), b);
      const Guards to = next == 0 ? kVoidGuards : lexer.next_guards(std::get<1>(at), b);
      if (to == kVoidGuards || !lexer.reach(next).newline) return;
      const At made{next, to, std::min(lexer.column(next, std::get<2>(at), b), most)};
      if (seen.try_emplace(made, bytes + 1).second) work.push_back({made, bytes + 1});
    };
    for (uint32_t k = 0; k < lexer.code().class_count(); ++k) step(lexer.code().byte_of(k));
    for (const char b : {' ', '\t', '\n'}) step(static_cast<uint8_t>(b));
  }
  return out;
}

template <class F>
bool LarkMachine::any_line_end(Memory& m, const Context& c, LexState q, F f) const {
  const auto most = static_cast<int32_t>(m.layouts.top(m.layouts[c.layout].columns)) + 1;  // wider columns are alike
  for (const LineEnd& end : line_ends(m, q, c.guards, std::min(m.layouts[c.layout].column, most), most)) {
    LayoutId layout = m.layouts.at_column(c.layout, end.column);
    const StackSet to = m.layouts.end(grammar_->indents(), m.stacks, c.stacks, grammar_->indents().newline, layout);
    if (to != kNoStack && f(Context{to, end.guards, layout}, end.bytes)) return true;
  }
  return false;
}

// A token has just ended. `newline`: one that ends a line, behind which the parser wants something at once.
bool LarkMachine::is_free(Memory& m, const Context& c, bool newline, int depth) const {
  if (is_complete(m, c)) return true;
  if (!newline && (grammar_->lexer().next_guards(c.guards, grammar_->rest_byte()) == kNoGuards || grammar_->is_rest(c.guards)))
    return true;
  return depth > 0 && comes_free(m, c, m.stacks.lexer(c.stacks), depth - 1);
}

bool LarkMachine::comes_free(Memory& m, const Context& c, LexState q, int depth) const {
  const std::pair key{state(m, c, q), depth};
  if (const auto hit = m.comes_free.find(key); hit != m.comes_free.end()) return hit->second;
  const bool free = find_free(m, c, q, depth);
  m.comes_free.emplace(key, free);
  return free;
}

bool LarkMachine::find_free(Memory& m, const Context& c, LexState q, int depth) const {
  const Indents& indents = grammar_->indents();
  for (const TokenEnd& e : grammar_->lexer().ends(q)) {  // often the token can end at once
    const Guards g = grammar_->lexer().with(c.guards, e.guard);
    if (grammar_->lexer().next_guards(g, grammar_->rest_byte()) != kNoGuards && !grammar_->is_rest(g)) continue;
    if (e.ignore || (e.feed && !(indents.on && e.type == indents.newline) && m.stacks.can_feed(c.stacks, e.type))) return true;
  }
  Live& live = grammar_->exact();
  std::vector<std::pair<Context, bool>> ends;
  {
    const std::scoped_lock lock(live.mutex());
    for (const auto& o : live.outcomes(q, live.control(c.guards))) {
      const Guards g = live.guards(o.control);
      if (o.ignore) ends.push_back({{c.stacks, g, m.layouts.at_column(c.layout, -1)}, false});
      if (!o.feed || (indents.on && o.type == indents.newline)) continue;
      LayoutId layout = c.layout;
      const StackSet to = m.layouts.end(indents, m.stacks, c.stacks, o.type, layout);
      if (to != kNoStack) ends.push_back({{to, g, layout}, false});
    }
  }
  for (const auto& [end, newline] : ends)
    if (is_free(m, end, newline, depth)) return true;
  if (!indents.on || !grammar_->lexer().reach(q).newline) return false;
  return any_line_end(m, c, q, [&](const Context& end, uint32_t) { return is_free(m, end, true, depth); });
}

bool LarkMachine::find_live(Memory& m, State s) const {
  const Context c = m.contexts[handle(s)];
  const LexState q = lex(s);
  const bool between = grammar_->lexer().is_between(q);
  if (between && is_complete(m, c)) return true;
  if (grammar_->is_loose()) {
    if (!can_go_on(m, c, q)) return false;
    const Indents& indents = grammar_->indents();
    if (c.guards == kNoGuards) {
      if (!indents.on) return true;
      for (const Type t : grammar_->lexer().reach(q).types)
        if (t != indents.newline && m.stacks.can_feed(c.stacks, t)) return true;
    }
    if (!indents.on && between && grammar_->lexer().next_guards(c.guards, grammar_->rest_byte()) == kNoGuards) return true;
    if (indents.on) return comes_free(m, c, q, kMaxLook);
    if (comes_free(m, c, q, 0)) return true;
  }
  return grammar_->exact().cost(m.stacks, c.stacks, q, c.guards, m.known) < kNoCost;
}

uint32_t LarkMachine::cost_of_start() const {
  uint32_t best = kNoCost;
  for (uint32_t i = 0; i < grammar_->tables().starts.size(); ++i)
    best = std::min(best, grammar_->is_loose() ? grammar_->costs().cost_of_start(i) : grammar_->exact().cost_of_start(i));
  return best;
}

// A token has just ended.
uint32_t LarkMachine::cost_behind(Memory& m, const Context& c, bool newline, int depth) const {
  if (is_complete(m, c)) return 0;
  const bool rests = c.guards == kNoGuards || grammar_->is_rest(c.guards);
  if (!newline && (rests || grammar_->lexer().next_guards(c.guards, grammar_->rest_byte()) == kNoGuards))
    return add_cost(rests ? 0 : 1, grammar_->costs().stack_cost(m.stacks, m.loose, c.stacks, m.layouts.top(m.layouts[c.layout].columns)));
  return depth > 0 ? loose_cost(m, c, m.stacks.lexer(c.stacks), depth - 1) : kNoCost;
}

uint32_t LarkMachine::loose_cost(Memory& m, const Context& c, LexState q, int depth) const {
  const Indents& indents = grammar_->indents();
  Live& live = grammar_->exact();
  std::vector<std::pair<Context, uint32_t>> ends;
  {
    const std::scoped_lock lock(live.mutex());
    for (const auto& o : live.outcomes(q, live.control(c.guards))) {
      const Guards g = live.guards(o.control);
      if (o.ignore) ends.push_back({{c.stacks, g, m.layouts.at_column(c.layout, -1)}, o.cost});
      if (!o.feed || (indents.on && o.type == indents.newline)) continue;
      LayoutId layout = c.layout;
      const StackSet to = m.layouts.end(indents, m.stacks, c.stacks, o.type, layout);
      if (to != kNoStack) ends.push_back({{to, g, layout}, o.cost});
    }
  }
  uint32_t best = kNoCost;
  for (const auto& [end, bytes] : ends)
    if (bytes < best) best = std::min(best, add_cost(bytes, cost_behind(m, end, false, depth)));
  if (!indents.on || !grammar_->lexer().reach(q).newline) return best;
  any_line_end(m, c, q, [&](const Context& end, uint32_t bytes) {
    if (bytes < best) best = std::min(best, add_cost(bytes, cost_behind(m, end, true, depth)));
    return false;
  });
  return best;
}

uint32_t LarkMachine::cost(Request& r, State s) const {
  if (handle(s) == 0) return cost_of_start();
  Memory& m = memory(r);
  const auto hit = m.costs.find(s);
  if (hit != m.costs.end()) return hit->second;
  const Context c = m.contexts[handle(s)];
  uint32_t cost = 0;
  if (grammar_->lexer().ends(lex(s)).empty() || !jump_from(m, s).accepting)
    cost = grammar_->is_loose() ? loose_cost(m, c, lex(s), kMaxCostLook) : grammar_->exact().cost(m.stacks, c.stacks, lex(s), c.guards, m.known);
  m.costs.emplace(s, cost);
  return cost;
}

int LarkMachine::spelled(Request& r, State s) const {
  if (handle(s) == 0) return cost(r, s) < kNoCost ? 1 : 0;
  Memory& m = memory(r);
  return is_live(m, s) ? 1 : 0;
}

void LarkMachine::expected(Request& r, State s, std::vector<uint32_t>& out) const {
  if (handle(s) == 0) return;
  Memory& m = memory(r);
  const Context at = m.contexts[handle(s)];
  for (const LexState part : grammar_->lexer().parts(lex(s)))
    for (const Type t : grammar_->lexer().reach(part).types)
      if (m.stacks.can_feed(at.stacks, t)) out.push_back(t);
}

void LarkMachine::parser_states(Request& r, State s, std::vector<uint32_t>& out) const {
  Memory& m = memory(r);
  if (handle(s) == 0)
    for (const auto& start : grammar_->tables().starts) out.push_back(start.state);
  else
    for (const NodeRef n : m.stacks.tops(m.contexts[handle(s)].stacks)) out.push_back(m.stacks.node(n).state);
}

}  // namespace mw
