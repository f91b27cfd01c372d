#include "joint_array.h"

#include "../mask.h"
#include "joint_cost.h"
#include "spaces.h"

namespace mw {

// As ArrayMachine::item_ends.
bool JointArrayMachine::item_ends(Request& r, State s) const {
  if (!unique_ || phase(s) == First) return true;
  if (r.recording() != 0) return unique_->admits(r);
  if (open_item(s)) r.doubt();
  return true;
}

State JointArrayMachine::next(Request& r, State s, uint8_t b) const {
  const Phase p = phase(s);
  if (p == Open) return b == '[' ? pack(r, First, control_) : kDead;
  if (p == Done || p == Branch) return kDead;
  const uint32_t w = next_space(ws_, space(s), b);
  if (w != kSpaceDead) return pack(p, record(s), w) | (s & kOpenItem);
  if (p == AfterComma || (b != ']' && b != ',')) return kDead;
  const Control* c = control(r, s);
  if (c == nullptr) return kDead;
  const State open = unique_ && r.recording() == 0 ? kOpenItem : 0;
  if (b == ']') return c->may_close && item_ends(r, s) ? pack(Done, 0, 0) : kDead;
  return p == AfterItem && c->items() > 0 && item_ends(r, s) ? pack(AfterComma, record(s), 0) | open : kDead;
}

Accept JointArrayMachine::push(Request& r, const Control& c, uint32_t alternative) {
  Accept a;
  a.push = c.children[alternative];
  a.resume = pack(r, AfterItem, c.nexts[alternative]);
  return a;
}

Accept JointArrayMachine::accept(Request& r, State s) const {
  Accept a;
  const Phase p = phase(s);
  a.pop = p == Done;
  if (p != First && p != AfterComma && p != Branch) return a;
  const Control* c = control(r, s);
  if (c == nullptr) return a;
  if (p == Branch || c->items() == 1) {
    a = push(r, *c, p == Branch ? joint(r, s).index : 0);
    a.resume |= s & kOpenItem;
    return a;
  }
  a.split = c->items() > 1;
  return a;
}

void JointArrayMachine::branches(Request& r, State s, std::vector<State>& out) const {
  const NodeId at = joint(r, s).control;
  const Control* c = control(r, s);
  for (uint32_t a = 0; c != nullptr && a < c->items(); ++a) out.push_back(pack(r, Branch, at, a) | (s & kOpenItem));
}

bool JointArrayMachine::more(Request& r, State s) const {
  const Phase p = phase(s);
  if (p == Done || p == Branch) return false;
  if (p == Open || p == AfterItem || space_may_follow(ws_, space(s))) return true;
  if (p == AfterComma) return false;
  const Control* c = control(r, s);
  return c != nullptr && c->may_close;
}

int JointArrayMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  const Phase p = phase(s);
  int n = 0;
  if (p == Open) {
    out[0] = '[';
    return 1;
  }
  if (p == First || p == AfterItem) out[static_cast<size_t>(n++)] = ']';
  if (p == AfterItem) out[static_cast<size_t>(n++)] = ',';
  return list_spaces(ws_, space(s), out, n);
}

bool JointArrayMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  const Phase p = phase(item.state);
  if (p == Open || p == Done) return false;
  return walk_spaces(w, ws_, node, item, space(item.state), pack(p, record(item.state), kSpaceOver) | (item.state & kOpenItem));
}

uint32_t JointArrayMachine::cost(Request& r, State s) const {
  const Phase p = phase(s);
  if (p == Done) return 0;
  if (p == Open) return add_cost(1, first_cost(r, control_, 0));
  const JointRecord at = joint(r, s);
  if (p == First) return first_cost(r, at.control, 0);
  if (p == AfterItem) return control_cost(r, at.control, 0);
  const Control* c = control(r, s);
  if (c == nullptr) return kNoCost;
  if (p == Branch) return alternative_cost(r, *c, at.index, 0);
  return cheapest_alternative(r, *c, {0, c->items()}, 0);
}

}  // namespace mw
