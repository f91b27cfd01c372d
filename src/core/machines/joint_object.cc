#include "joint_object.h"

#include <algorithm>

#include "../mask.h"
#include "joint_cost.h"
#include "spaces.h"

namespace mw {

State JointObjectMachine::next(Request& r, State s, uint8_t b) const {
  const Phase p = phase(s);
  if (p == Open) return b == '{' ? pack(r, First, {control_, 0, 0}) : kDead;
  if (p == Done || p == Entry || p == Alternative) return kDead;
  const uint32_t w = next_space(ws_, space(s), b);
  if (w != kSpaceDead) return pack(p, record(s), w);
  if (p == KeyRead || p == AfterKey) return b == ':' ? pack(Value, record(s), 0) : kDead;
  if ((p != First && p != AfterValue) || (b != '}' && b != ',')) return kDead;
  const Control* c = control(r, s);
  if (c == nullptr) return kDead;
  if (b == '}') return c->may_close ? pack(Done, 0, 0) : kDead;
  return p == AfterValue && c->entries() > 0 ? pack(AfterComma, record(s), 0) : kDead;
}

Accept JointObjectMachine::push_key(Request& r, const Control& c, JointRecord at) {
  Accept a;
  a.push = c.keys[at.index];
  a.given = at.list;
  a.resume = pack(r, KeyRead, at);
  return a;
}

Accept JointObjectMachine::push_value(Request& r, const Control& c, const JointRecord& at) {
  Accept a;
  a.push = c.children[at.index];
  a.resume = pack(r, AfterValue, {c.nexts[at.index], at.list, 0});
  return a;
}

Accept JointObjectMachine::accept(Request& r, State s) const {
  Accept a;
  const Phase p = phase(s);
  a.pop = p == Done;
  const bool key = p == First || p == AfterComma || p == Entry, value = p == Value || p == Alternative;
  if (!key && !value) return a;
  const Control* c = control(r, s);
  if (c == nullptr) return a;
  const JointRecord at = joint(r, s);
  if (p == Entry) return push_key(r, *c, at);
  if (p == Alternative) return push_value(r, *c, at);
  if (key) {
    if (c->entries() == 1) return push_key(r, *c, {at.control, at.list, 0});
    a.split = c->entries() > 1;
    return a;
  }
  const auto [first, end] = c->range(at.index);
  if (end - first == 1) return push_value(r, *c, {at.control, at.list, first});
  a.split = true;
  return a;
}

void JointObjectMachine::branches(Request& r, State s, std::vector<State>& out) const {
  const Control* c = control(r, s);
  if (c == nullptr) return;
  const JointRecord at = joint(r, s);
  const bool value = phase(s) == Value;
  const auto [first, end] = value ? c->range(at.index) : std::pair(0u, c->entries());
  for (uint32_t i = first; i < end; ++i) out.push_back(pack(r, value ? Alternative : Entry, {at.control, at.list, i}));
}

State JointObjectMachine::resume(Request& r, State s, uint32_t value) const {
  if (phase(s) != KeyRead || value == 0) return s;
  JointRecord at = joint(r, s);
  at.list = r.records().add_typed(at.list, value - 1);
  return pack(r, AfterKey, at);
}

bool JointObjectMachine::more(Request& r, State s) const {
  const Phase p = phase(s);
  if (p == Done || p == Entry || p == Alternative) return false;
  if (p != First && p != AfterComma && p != Value) return true;
  if (space_may_follow(ws_, space(s))) return true;
  if (p != First) return false;
  const Control* c = control(r, s);
  return c != nullptr && c->may_close;
}

int JointObjectMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  int n = 0;
  const auto add = [&](uint8_t b) { out[static_cast<size_t>(n++)] = b; };
  switch (phase(s)) {
    case Open: return add('{'), 1;
    case Done: case Entry: case Alternative: return 0;
    case First: add('}'); break;
    case AfterValue: add('}'); add(','); break;
    case KeyRead: case AfterKey: add(':'); break;
    case Value: case AfterComma: break;
  }
  return list_spaces(ws_, space(s), out, n);
}

bool JointObjectMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  const Phase p = phase(item.state);
  if (p == Open || p == Done) return false;
  return walk_spaces(w, ws_, node, item, space(item.state), pack(p, record(item.state), kSpaceOver));
}

// The order of the typed keys matters no more, nor how many there are of which no text is known (see KeyMachine::forget).
State JointObjectMachine::forget(Request& r, State s, const Forget&) const {
  const Phase p = phase(s);
  if (p == Open || p == Done) return s;
  JointRecord at = joint(r, s);
  if (at.list != 0) at.list = r.records().sorted_typed(at.list, [](const TypedKey&) { return true; });
  return pack(p == KeyRead ? AfterKey : p, r.records().joint(at), space(s));
}

uint32_t JointObjectMachine::cost(Request& r, State s) const {
  const Phase p = phase(s);
  if (p == Done) return 0;
  if (p == Open) return add_cost(1, first_cost(r, control_, 0));
  const JointRecord at = joint(r, s);
  if (p == First) return first_cost(r, at.control, at.list);
  if (p == AfterValue) return control_cost(r, at.control, at.list);
  const Control* c = control(r, s);
  return c == nullptr ? kNoCost : cost_inside(r, p, at, *c);
}

uint32_t JointObjectMachine::cost_inside(Request& r, Phase p, const JointRecord& at, const Control& c) const {
  switch (p) {
    case Entry: return entry_cost(r, c, at.index, at.list);
    case KeyRead: {
      const uint32_t list = list_after(r, c.keys[at.index], at.list);
      return add_cost(1, cheapest_alternative(r, c, c.range(at.index), list));
    }
    case AfterKey: return add_cost(1, cheapest_alternative(r, c, c.range(at.index), at.list));
    case Value: return cheapest_alternative(r, c, c.range(at.index), at.list);
    case Alternative: return alternative_cost(r, c, at.index, at.list);
    default: break;  // AfterComma
  }
  uint32_t best = kNoCost;
  if (c.witness >= 0) return entry_cost(r, c, c.witness_entry, at.list);
  for (uint32_t e = 0; e < c.entries(); ++e) best = std::min(best, entry_cost(r, c, e, at.list));
  return best;
}

}  // namespace mw
