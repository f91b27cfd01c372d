#include "program.h"

#include <algorithm>

#include "machines/key.h"
#include "request.h"

namespace mw {

void Program::define_machine(NodeId n, std::unique_ptr<Machine> machine, State start) {
  Node& node = nodes_[static_cast<size_t>(n)];
  const auto id = static_cast<MachineId>(machines_.append());
  machine->id = id;
  if (machine->merges()) merges_.store(true, std::memory_order_relaxed);
  machines_[id] = std::move(machine);
  node.start = {id, start};
  node.defined.store(true, std::memory_order_release);
}

void Program::define_union(NodeId n, std::vector<NodeId> members) {
  Node& node = nodes_[static_cast<size_t>(n)];
  node.is_union = true;
  node.members = std::move(members);
  node.defined.store(true, std::memory_order_release);
}

void Program::define_control(NodeId n, Control control) {
  Node& node = nodes_[static_cast<size_t>(n)];
  while (control.witness >= 0 && control.offsets[control.witness_entry + 1] <= static_cast<uint32_t>(control.witness))
    ++control.witness_entry;
  node.control = std::make_unique<const Control>(std::move(control));
  node.defined.store(true, std::memory_order_release);
}

bool Program::starts(NodeId n, std::vector<Start>& out, std::vector<NodeId>& needs) const {
  std::vector<NodeId> stack{n}, seen;
  bool complete = true;
  while (!stack.empty()) {
    const NodeId at = stack.back();
    stack.pop_back();
    const Node& there = node(at);
    if (!there.defined.load(std::memory_order_acquire)) {
      needs.push_back(at);
      complete = false;
    } else if (!there.is_union) {
      if (!there.control) out.push_back(there.start);
    } else if (std::find(seen.begin(), seen.end(), at) == seen.end()) {
      seen.push_back(at);
      stack.insert(stack.end(), there.members.rbegin(), there.members.rend());
    }
  }
  return complete;
}

void Program::add_children(NodeId n, std::vector<NodeId>& out) const {
  const Node& there = node(n);
  if (there.is_union) {
    out.insert(out.end(), there.members.begin(), there.members.end());
  } else if (!there.control) {
    machine(there.start.machine).children(out);
  } else if (there.control->witness >= 0) {
    const auto w = static_cast<size_t>(there.control->witness);
    if (!there.control->keys.empty()) out.push_back(there.control->keys[there.control->witness_entry]);
    out.push_back(there.control->nexts[w]);
    out.push_back(there.control->children[w]);
  }
}

// All nodes reachable from the root, parents first; what is undefined goes to needs.
bool Program::reachable_undefined(NodeId root, std::vector<NodeId>& order, std::vector<NodeId>& needs, CostUnit unit) const {
  std::vector<uint8_t> seen(nodes_.size(), 0);
  std::vector<NodeId> stack{root}, children;
  while (!stack.empty()) {
    const NodeId at = stack.back();
    stack.pop_back();
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = 1;
    if (!is_defined(at)) {
      needs.push_back(at);
      continue;
    }
    if (costs_settled(at, unit)) continue;
    order.push_back(at);
    children.clear();
    add_children(at, children);
    for (NodeId c : children)
      if (c >= 0 && !seen[static_cast<size_t>(c)]) stack.push_back(c);
  }
  return needs.empty();
}

// Least fixpoint of the witnesses' costs (Knuth 1977, a generalisation of Dijkstra's algorithm; by plain iteration,
// children before parents where there is no recursion).
bool Program::settle_costs(NodeId root, std::vector<NodeId>& needs, CostUnit unit) {
  if (costs_settled(root, unit)) return true;
  const std::scoped_lock lock(cost_mutex_);
  std::vector<NodeId> order;
  if (!reachable_undefined(root, order, needs, unit)) return false;
  Request scratch(std::shared_ptr<Program>(std::shared_ptr<void>(), this), true);
  scratch.count_costs_in(unit);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size(); i-- > 0;) {
      Node& n = nodes_[static_cast<size_t>(order[i])];
      if (n.control) continue;  // its cost is a matter of the object's (joint_cost.cc)
      uint32_t cost = kNoCost;
      if (n.is_union)
        for (NodeId m : n.members) cost = std::min(cost, node_cost(m, unit));
      else
        cost = machine(n.start.machine).cost(scratch, n.start.state);
      std::atomic<uint32_t>& known = n.cost[static_cast<size_t>(unit)];
      if (cost < known.load(std::memory_order_relaxed)) {
        known.store(cost, std::memory_order_release);
        changed = true;
      }
    }
  }
  for (NodeId n : order)
    nodes_[static_cast<size_t>(n)].settled[static_cast<size_t>(unit)].store(true, std::memory_order_release);
  return true;
}

// Freely, if the vocabulary lacks nothing but whole characters, none of them in the syntax of JSON, and (with the texts and
// sets of characters restricted to what it has, restrict.h) every node still has a text.
bool Program::settle_spelling(std::vector<NodeId>& needs) {
  if (vocab_->is_byte_complete() || spelling_settled_.load(std::memory_order_acquire)) return true;
  bool freely = false;
  if (vocab_->is_character_closed()) {
    std::vector<NodeId> order;
    const bool all = reachable(order, needs);
    if (!needs.empty()) return false;
    freely = all && (vocab_->has_printable_ascii() || !json_.load(std::memory_order_relaxed));
    for (NodeId n : order) {
      if (!freely || node(n).control) continue;
      if (!settle_costs(n, needs, CostUnit::Tokens)) return false;
      const Machine* m = machine_at(n);
      freely = node_cost(n, CostUnit::Tokens) < kNoCost && !(m && m->key() && m->key()->may_run_out());
    }
  }
  spells_freely_.store(freely, std::memory_order_release);
  spelling_settled_.store(true, std::memory_order_release);
  return true;
}

// All nodes reachable from node 0, by all alternatives of control states. False: those are too many.
bool Program::settle_as_free() {
  if (vocab_->is_byte_complete()) return true;
  if (!vocab_->is_character_closed() || !vocab_->has_printable_ascii()) return false;
  spells_freely_.store(true, std::memory_order_release);
  spelling_settled_.store(true, std::memory_order_release);
  return true;
}

bool Program::reachable(std::vector<NodeId>& order, std::vector<NodeId>& needs) const {
  std::vector<uint8_t> seen(nodes_.size(), 0);
  std::vector<NodeId> stack{0};
  size_t controls = 0;
  while (!stack.empty()) {
    const NodeId at = stack.back();
    stack.pop_back();
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = 1;
    if (!is_defined(at)) {
      needs.push_back(at);
      continue;
    }
    order.push_back(at);
    const Control* control = node(at).control.get();
    if (control == nullptr) {
      add_children(at, stack);
      continue;
    }
    if (++controls > kMaxControls) {
      needs.clear();
      return false;
    }
    for (const auto* nodes : {&control->keys, &control->children, &control->nexts})
      stack.insert(stack.end(), nodes->begin(), nodes->end());
  }
  return true;
}

}  // namespace mw
