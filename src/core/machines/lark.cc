#include "lark.h"

#include <algorithm>

#include "../mask.h"
#include "../request.h"

namespace mw {

using namespace lark;

namespace {

constexpr uint32_t kMinDescendants = 100;  // below this a plain walk is as good

}  // namespace

// What one request knows.
struct LarkMachine::Memory final : MachineMemory {
  explicit Memory(Grammar& g) : stacks(g.tables(), g.lexer()) { contexts.intern({kNoStack, kNoGuards}); }
  struct Hash {
    uint64_t operator()(const Context& c) const { return mix(mix(51, c.stacks), c.guards); }
  };
  Stacks stacks;
  Interner<Context, Hash> contexts;
  std::unordered_map<State, bool> live;
  std::unordered_map<State, Jump> jumps;
  std::unordered_map<State, uint32_t> costs;
  Live::Known known;
  LooseCosts::Memo loose;
};

LarkMachine::Memory& LarkMachine::memory(Request& r) const {
  auto& slot = r.memory(id);
  if (!slot) slot = std::make_unique<Memory>(*grammar_);
  return static_cast<Memory&>(*slot);
}

State LarkMachine::before_token(Memory& m, StackSet s, Guards g) const {
  return (State{m.contexts.intern({s, g})} << 32) | m.stacks.lexer(s);
}

State LarkMachine::next(Request& r, State s, uint8_t b) const {
  if (handle(s) == 0) return kDead;
  Lexer& lexer = grammar_->lexer();
  const LexState q = lexer.next(lex(s), b);
  if (q == 0) return kDead;
  Memory& m = memory(r);
  const Context at = m.contexts[handle(s)];
  uint32_t h = handle(s);
  if (at.guards != kNoGuards) {
    const Guards g = lexer.next_guards(at.guards, b);
    if (g == kVoidGuards) return kDead;
    if (g != at.guards) h = m.contexts.intern({at.stacks, g});
  }
  const State to = (State{h} << 32) | q;
  return spelled_ || is_live(m, to) ? to : kDead;
}

bool LarkMachine::more(Request&, State s) const { return handle(s) != 0 && grammar_->lexer().more(lex(s)); }

template <class F>
void LarkMachine::each_end(Memory& m, State s, F f) const {
  if (handle(s) == 0) {
    for (const StackSet x : m.stacks.initial()) f(x, kNoGuards);
    return;
  }
  Lexer& lexer = grammar_->lexer();
  const Context at = m.contexts[handle(s)];
  for (const TokenEnd& e : lexer.ends(lex(s))) {
    const Guards g = lexer.with(at.guards, e.guard);
    if (e.ignore) f(at.stacks, g);
    if (!e.feed) continue;
    const StackSet to = m.stacks.feed(at.stacks, e.type);
    if (to != kNoStack) f(to, g);
  }
}

const LarkMachine::Jump& LarkMachine::jump_from(Memory& m, State s) const {
  const auto [it, fresh] = m.jumps.try_emplace(s);
  if (!fresh) return it->second;
  Jump made;
  each_end(m, s, [&](StackSet to, Guards g) {
    made.accepting = made.accepting || (grammar_->lexer().may_end(g) && m.stacks.complete(to));
    const State next = before_token(m, to, g);
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
      if (a.guards != b.guards) continue;
      merged = true;
      if (a.stacks == b.stacks) continue;
      other.state = (State{m.contexts.intern({m.stacks.unite(a.stacks, b.stacks), a.guards})} << 32) | lex(item.state);
    }
    if (!merged) out.push_back(item);
  }
  items = std::move(out);
}

bool LarkMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  if (handle(item.state) == 0 || !w.takes_sets()) return false;
  if (node != TokenTrie::kRoot && w.trie().descendants(node) < kMinDescendants) return false;
  Memory& m = memory(w.request());
  const Context at = m.contexts[handle(item.state)];
  const LexBase& base = bases_.get(grammar_->lexer(), w.trie(), w.vocab().size(), node, lex(item.state), at.guards);
  for (const auto& stay : base.stays) {
    const uint32_t h = stay.guards == at.guards ? handle(item.state) : m.contexts.intern({at.stacks, stay.guards});
    const State s = (State{h} << 32) | stay.q;
    if (is_live(m, s) && (!w.costs() || w.admits(w.request().item_cost({s, item.machine, item.rest})))) w.add(stay.tokens);
  }
  for (const auto& exit : base.exits) {
    const auto follow = [&](StackSet to) {
      if (to == kNoStack) return;
      const State s = before_token(m, to, exit.guards);
      if (is_live(m, s)) w.follow_exits(*exit.trie, {}, {s, item.machine, item.rest});
    };
    if (exit.ignore) follow(at.stacks);
    if (exit.feed) follow(m.stacks.feed(at.stacks, exit.type));
  }
  return true;
}

// ---------------------------------------------------------------- what can be finished

bool LarkMachine::is_live(Memory& m, State s) const {
  if (grammar_->is_loose()) {
    const Context& c = m.contexts[handle(s)];
    if (c.guards == kNoGuards && surely_goes_on(m, c.stacks, lex(s))) return true;
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
bool LarkMachine::can_go_on(Memory& m, StackSet stacks, LexState q) const {
  const auto& reach = grammar_->lexer().reach(q);
  return reach.passes || std::any_of(reach.types.begin(), reach.types.end(), [&](Type t) { return m.stacks.can_feed(stacks, t); });
}

// The same where a look at the tables is enough to say so.
bool LarkMachine::surely_goes_on(const Memory& m, StackSet stacks, LexState q) const {
  const Tables& tables = grammar_->tables();
  if (tables.general && grammar_->lexer().kind() != Lexer::Kind::First) return true;  // nothing else is looked for
  const auto& reach = grammar_->lexer().reach(q);
  if (reach.passes) return true;
  for (const NodeRef n : m.stacks.tops(stacks))
    for (size_t i = 0; i < reach.types.size() && i < 4; ++i)
      if (tables.at(m.stacks.node(n).state, reach.types[i]) > 0) return true;
  return false;
}

bool LarkMachine::find_live(Memory& m, State s) const {
  Lexer& lexer = grammar_->lexer();
  const Context c = m.contexts[handle(s)];
  const LexState q = lex(s);
  const bool between = q == m.stacks.lexer(c.stacks);
  if (grammar_->is_loose()) {
    if (between && m.stacks.complete(c.stacks) && lexer.may_end(c.guards)) return true;
    if (!can_go_on(m, c.stacks, q)) return false;
    if (c.guards == kNoGuards) return true;
    if (between && lexer.next_guards(c.guards, grammar_->rest_byte()) == kNoGuards) return true;
    Live& live = grammar_->exact();
    const std::scoped_lock lock(live.mutex());
    for (const auto& o : live.outcomes(q, live.control(c.guards))) {
      const Guards g = live.guards(o.control);
      const bool freed = lexer.next_guards(g, grammar_->rest_byte()) == kNoGuards || (o.ignore && grammar_->is_rest(g));
      if (freed && (o.ignore || m.stacks.can_feed(c.stacks, o.type))) return true;
    }
  } else if (between && m.stacks.complete(c.stacks) && lexer.may_end(c.guards)) {
    return true;
  }
  return grammar_->exact().cost(m.stacks, c.stacks, q, c.guards, m.known) < kNoCost;
}

uint32_t LarkMachine::cost_of_start() const {
  uint32_t best = kNoCost;
  for (uint32_t i = 0; i < grammar_->tables().starts.size(); ++i)
    best = std::min(best, grammar_->is_loose() ? grammar_->costs().cost_of_start(i) : grammar_->exact().cost_of_start(i));
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
    cost = grammar_->is_loose() ? grammar_->costs().cost(m.stacks, m.loose, c.stacks, lex(s), c.guards)
                                : grammar_->exact().cost(m.stacks, c.stacks, lex(s), c.guards, m.known);
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
  for (const Type t : grammar_->lexer().reach(lex(s)).types)
    if (m.stacks.can_feed(at.stacks, t)) out.push_back(t);
}

}  // namespace mw
