#include "joint_cost.h"

#include <algorithm>

#include "key.h"

namespace mw {
namespace {

const KeyMachine* key_at(Request& r, NodeId node) {
  const Machine* m = r.program().machine_at(node);
  return m ? m->key() : nullptr;
}

// How many keys of each kind a way has typed.
class Kinds {
 public:
  uint32_t next(uint32_t kind) {
    const auto it = std::find_if(counts_.begin(), counts_.end(), [&](const auto& k) { return k.first == kind; });
    if (it != counts_.end()) return it->second++;
    counts_.emplace_back(kind, 1);
    return 0;
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> counts_;
};

// Down the witnesses; `r` has settled the costs of all that they lead to, or is just doing so.
uint32_t follow_witnesses(Request& r, NodeId at, uint32_t list) {
  const Program& p = r.program();
  Kinds kinds;
  uint32_t sum = 0;
  for (size_t steps = p.node_count(); steps > 0; --steps) {
    const Control* c = p.control(at, r.needs());
    if (c == nullptr) return kNoCost;
    if (c->may_close) return add_cost(sum, 1);
    if (c->witness < 0) return kNoCost;
    const auto w = static_cast<size_t>(c->witness);
    sum = add_cost(sum, add_cost(1, std::max(c->dearest, r.costs().node_cost(c->children[w]))));
    if (!c->keys.empty()) {
      const NodeId node = c->keys[c->witness_entry];
      const KeyMachine* key = key_at(r, node);
      sum = add_cost(sum, add_cost(1, key ? key->fresh_cost(r, list, kinds.next(key->kind())) : r.costs().node_cost(node)));
    }
    at = c->nexts[w];
  }
  return kNoCost;  // the witnesses go round in a circle
}

}  // namespace

uint32_t control_cost(Request& r, NodeId control, uint32_t list) {
  if (r.is_settling()) return follow_witnesses(r, control, list);
  if (!r.settle_cost(control)) return kNoCost;
  const uint64_t key = static_cast<uint64_t>(control) << 32 | list;
  const auto known = r.control_costs().find(key);
  if (known != r.control_costs().end()) return known->second;
  return r.control_costs()[key] = follow_witnesses(r, control, list);
}

uint32_t first_cost(Request& r, NodeId control, uint32_t list) {
  const uint32_t cost = control_cost(r, control, list);
  const Control* c = r.program().control(control, r.needs());
  return c == nullptr || c->may_close || cost >= kNoCost ? cost : cost - 1;
}

uint32_t alternative_cost(Request& r, const Control& c, uint32_t alternative, uint32_t list) {
  const NodeId child = c.children[alternative];
  if (!r.settle_cost(child)) return kNoCost;
  return add_cost(std::max(c.dearest, r.costs().node_cost(child)), control_cost(r, c.nexts[alternative], list));
}

uint32_t cheapest_alternative(Request& r, const Control& c, std::pair<uint32_t, uint32_t> range, uint32_t list) {
  const auto w = static_cast<uint32_t>(c.witness);
  if (c.witness >= 0 && range.first <= w && w < range.second) return alternative_cost(r, c, w, list);
  uint32_t best = kNoCost;
  for (uint32_t a = range.first; a < range.second; ++a) best = std::min(best, alternative_cost(r, c, a, list));
  return best;
}

uint32_t list_after(Request& r, NodeId key, uint32_t list) {
  const KeyMachine* machine = key_at(r, key);
  return machine ? machine->with_unknown(r.records(), list) : list;
}

uint32_t entry_cost(Request& r, const Control& c, uint32_t entry, uint32_t list) {
  const NodeId node = c.keys[entry];
  if (!r.settle_cost(node)) return kNoCost;
  const KeyMachine* machine = key_at(r, node);
  const uint32_t key = machine ? machine->fresh_cost(r, list, 0) : r.costs().node_cost(node);
  return add_cost(add_cost(key, 1), cheapest_alternative(r, c, c.range(entry), list_after(r, node, list)));
}

}  // namespace mw
