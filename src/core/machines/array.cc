#include "array.h"

#include <algorithm>

#include "../mask.h"
#include "../spelling.h"
#include "spaces.h"

namespace mw {

ArrayMachine::ArrayMachine(std::vector<NodeId> prefix, NodeId items, uint64_t min_items, uint64_t max_items,
                           Whitespace ws, std::unique_ptr<const UniqueItems> unique)
    : prefix_(std::move(prefix)), items_(items), min_(min_items), max_(max_items), ws_(ws), unique_(std::move(unique)) {
  if (items_ == kNoChild) max_ = std::min<uint64_t>(max_, prefix_.size());
  horizon_ = std::max<uint64_t>(prefix_.size(), max_ == kNoMax ? min_ : max_);
}

// Whether the item that came may have been what it was. In a walk: yes, if it was begun before; else that is left open.
bool ArrayMachine::item_ends(Request& r, State s) const {
  if (!unique_) return true;
  if (r.recording() != 0) return unique_->admits(r);
  if (open_item(s)) r.doubt();
  return true;
}

State ArrayMachine::next(Request& r, State s, uint8_t b) const {
  const Phase p = phase(s);
  const uint64_t n = count(s);
  const State open = unique_ && r.recording() == 0 ? kOpenItem : 0;
  if (p == Open) return b == '[' ? pack(First, 0, 0) | (unique_ && unique_->starves() ? open : 0) : kDead;
  if (p == Done) return kDead;
  const uint32_t w = next_space(ws_, space(s), b);
  if (w != kSpaceDead) return pack(p, n, w) | (s & kOpenItem);
  if (p == First && b == ']' && may_end(0)) return pack(Done, 0, 0);
  if (p == AfterItem) {
    if (b == ']' && may_end(n)) return item_ends(r, s) ? pack(Done, 0, 0) : kDead;
    if (b == ',' && may_go_on(n)) return item_ends(r, s) ? pack(AfterComma, n, 0) | open : kDead;
  }
  return kDead;
}

Accept ArrayMachine::accept(Request&, State s) const {
  Accept a;
  const Phase p = phase(s);
  a.pop = p == Done;
  const uint64_t n = count(s);
  if (p == AfterComma || (p == First && may_go_on(0))) {
    a.push = item(n);
    a.resume = pack(AfterItem, counted(n + 1), 0) | (s & kOpenItem);
  }
  return a;
}

bool ArrayMachine::more(Request&, State s) const {
  const Phase p = phase(s);
  if (p == Done) return false;
  if (p == Open || p == AfterItem || (p == First && may_end(0))) return true;
  return space_may_follow(ws_, space(s));
}

int ArrayMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
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

bool ArrayMachine::walk_base(Walker& w, TrieNode node, const Item& it) const {
  const Phase p = phase(it.state);
  if (p == Open || p == Done) return false;
  const State rest = pack(p, count(it.state), kSpaceOver) | (it.state & kOpenItem);
  return walk_spaces(w, ws_, node, it, space(it.state), rest);
}

// Where items must differ, the cheapest may be there already.
uint32_t ArrayMachine::item_cost(const NodeCosts& p, uint64_t n) const {
  return std::max(p.node_cost(item(n)), unique_ ? unique_->dearest() : 0);
}

uint32_t ArrayMachine::cost_of_rest(const NodeCosts& p, uint64_t n) const {
  uint32_t sum = 1;
  for (; n < min_ && n < prefix_.size(); ++n) sum = add_cost(sum, add_cost(1, item_cost(p, n)));
  if (n < min_) {
    const uint64_t each = uint64_t{1} + item_cost(p, n), rest = min_ - n;
    sum = rest >= kNoCost || each * rest >= kNoCost ? kNoCost : add_cost(sum, static_cast<uint32_t>(each * rest));
  }
  return sum;
}

uint32_t ArrayMachine::cost(Request& r, State s) const {
  const NodeCosts p = r.costs();
  const uint64_t n = count(s);
  switch (phase(s)) {
    case Open: return add_cost(1, cost(r, pack(First, 0, 0)));
    case First: return may_end(0) ? 1 : add_cost(item_cost(p, 0), cost_of_rest(p, 1));
    case AfterItem: return cost_of_rest(p, n);
    case AfterComma: return add_cost(item_cost(p, n), cost_of_rest(p, n + 1));
    case Done: return 0;
  }
  return kNoCost;
}

// Because of an item that has not begun yet.
bool ArrayMachine::endless(Request& r, State s) const {
  const Phase p = phase(s);
  if (p == Done || (p == AfterItem && open_item(s))) return false;
  if (!unique_ && max_ == kNoMax) return true;  // by its length
  const uint64_t n = count(s);
  return may_go_on(n) && node_is_endless(r, item(n));
}

// Behind the prefix all items are alike.
State ArrayMachine::forget(Request&, State s, const Forget& f) const {
  const uint64_t n = count(s), first = prefix_.size();
  if (n < first || phase(s) == Done || phase(s) == Open) return s;
  return pack(phase(s), forget_count(n, std::max(min_, first), max_, f), space(s));
}

void ArrayMachine::children(std::vector<NodeId>& out) const {
  for (size_t i = 0; i < prefix_.size() && i < max_; ++i) out.push_back(prefix_[i]);
  if (items_ != kNoChild && max_ > prefix_.size()) out.push_back(items_);
}

}  // namespace mw
