#include "request.h"

#include <algorithm>
#include <utility>

#include "mask.h"
#include "uniqueness.h"

namespace mw {
namespace {

uint64_t hash_items(std::span<const Item> items, uint64_t seed) {
  uint64_t h = seed;
  for (const Item& i : items) h = mix(mix(mix(h, i.state), i.machine), i.rest);
  return h;
}

void normalise(std::vector<Item>& items) {
  if (items.size() < 2) return;
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

Request::Request(std::shared_ptr<Program> program, bool settling) : program_(std::move(program)), settling_(settling) {
  rests_.emplace_back();  // kEndOfText
  after_pop_.push_back(kNoConfig);
  for (auto& costs : rest_costs_) costs.push_back(0);
  rest_notes_.emplace_back();
  if (program_->has_unique()) uniqueness_ = std::make_unique<Uniqueness>(*this);
}

Request::~Request() = default;

std::unique_ptr<Request> Request::for_matchers(std::shared_ptr<Program> program) {
  std::unique_ptr<Request> request = program->idle_requests().take();
  if (!request) return std::make_unique<Request>(std::move(program));
  request->program_ = std::move(program);
  return request;
}

// What items were written is remembered in no bounded way: such requests are not kept. An idle one must not hold on to its
// program, which holds it.
void Request::let_go(std::unique_ptr<Request> request) {
  if (!request || request->uniqueness_ || !request->program_) return;
  const std::shared_ptr<Program> program = std::move(request->program_);
  request->needs_.clear();
  request->doubt_ = false;
  request->recording_ = 0;
  program->idle_requests().give(std::move(request));
}

ConfigId Request::root() {
  if (root_ != kNoConfig) return root_;
  std::vector<Start> starts;
  if (!program_->starts(0, starts, needs_)) return 0;
  std::vector<Item> items;
  bool accepting = false;
  for (const Start& s : starts) expand({s.state, s.machine, kEndOfText}, items, accepting);
  if (lacks_nodes()) return 0;
  root_ = intern(std::move(items), accepting);
  return root_;
}

// An entry takes some 100 bytes beside the record: a node of the table, and what the allocator adds.
const MaskRecord& Request::keep_mask(ConfigId id, std::unique_ptr<MaskRecord> mask) {
  constexpr size_t kEntry = 100;
  const size_t bytes = mask->bytes_used() + kEntry;
  if (mask_bytes_ + bytes > program_->memo_limit() && !masks_.empty()) {
    dropped_.clear();
    masks_.swap(dropped_);  // both keep their tables
    masks_.reserve(dropped_.size());
    mask_bytes_ = 0;
    Counters::add(program_->counters().memo_evictions, 1);
  }
  constexpr int kFreed = 4;
  for (int i = 0; i < kFreed && !dropped_.empty(); ++i) dropped_.erase(dropped_.begin());
  mask_bytes_ += bytes;
  auto& slot = masks_[id];
  slot = std::move(mask);
  return *slot;
}

// Sorted, each once; those that are one together are merged.
void Request::settle(std::vector<Item>& items) {
  normalise(items);
  if (!program_->merges() || items.size() < 2) return;
  for (size_t i = 0; i < items.size(); ++i)
    if (const Machine& m = machine(items[i].machine); m.merges()) m.merge(*this, items);
  normalise(items);
}

ConfigId Request::intern(std::vector<Item>&& items, bool accepting) {
  settle(items);
  const uint64_t h = hash_items(items, accepting ? 7 : 6);
  const uint32_t found = config_index_.find(
      h, [&](uint32_t id) { return configs_[id]->accepting == accepting && configs_[id]->items == items; });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<ConfigId>(configs_.size());
  bytes_used_ += sizeof(Config) + items.size() * sizeof(Item) + 24;
  configs_.push_back(std::make_unique<Config>(Config{std::move(items), accepting, 0}));
  config_index_.insert(h, id);
  return id;
}

RestId Request::intern_rest(const Item& frame) {
  const uint64_t h = hash_items(std::span(&frame, 1), 8);
  const uint32_t found =
      rest_index_.find(h, [&](uint32_t id) { return rests_[id].size() == 1 && rests_[id][0] == frame; });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<RestId>(rests_.size());
  bytes_used_ += sizeof(Item) + 64;
  rests_.push_back({frame});
  after_pop_.push_back(kNoConfig);
  for (auto& costs : rest_costs_) costs.push_back(kNoCost + 1);
  const Machine& m = machine(frame.machine);
  const RestNotes& below = rest_notes_[frame.rest];
  rest_notes_.push_back({below.depth + 1, below.unique || m.unique() != nullptr, below.open_item || m.open_item(frame.state)});
  rest_index_.insert(h, id);
  return id;
}

void Request::expand(const Item& item, std::vector<Item>& out, bool& accepting) {
  const Machine& m = machine(item.machine);
  if (m.more(*this, item.state)) out.push_back(item);
  const Accept a = m.accept(*this, item.state);
  const auto take = [&](ConfigId id) {
    if (lacks_nodes()) return;
    const Config& c = config(id);
    out.insert(out.end(), c.items.begin(), c.items.end());
    accepting = accepting || c.accepting;
  };
  if (a.pop) {
    if (item.rest == kEndOfText) accepting = true;
    else take(after_pop(item.rest, a.value));
  }
  if (a.push != kNoChild) take(after_push(item, a));
  if (a.split) [[unlikely]] {
    std::vector<State> states;
    m.branches(*this, item.state, states);
    for (State s : states) expand({s, item.machine, item.rest}, out, accepting);
  }
  if (a.jump) m.jump(*this, item, out);
}

ConfigId Request::after_pop(RestId rest, uint32_t value) {
  if (value == 0) {
    if (after_pop_[rest] == kNoConfig) {
      const ConfigId id = pop_to(rest, 0);
      if (lacks_nodes()) return 0;
      after_pop_[rest] = id;
    }
    return after_pop_[rest];
  }
  const uint64_t key = static_cast<uint64_t>(rest) << 32 | value;
  const auto hit = after_value_.find(key);
  if (hit != after_value_.end()) return hit->second;
  const ConfigId id = pop_to(rest, value);
  if (lacks_nodes()) return 0;
  after_value_.emplace(key, id);
  bytes_used_ += sizeof(key) + 24;
  return id;
}

ConfigId Request::pop_to(RestId rest, uint32_t value) {
  std::vector<Item> items;
  bool accepting = false;
  const std::vector<Item> frames = rests_[rest];  // a copy: expanding may add rests
  for (const Item& f : frames) {
    const State s = machine(f.machine).resume(*this, f.state, value);
    if (s != kDead) expand({s, f.machine, f.rest}, items, accepting);
  }
  return lacks_nodes() ? 0 : intern(std::move(items), accepting);
}

ConfigId Request::after_push(const Item& at, const Accept& a) {
  const PushKey key{a.resume, at.machine, at.rest, a.push, a.given};
  const auto hit = after_push_.find(key);
  if (hit != after_push_.end()) return hit->second;
  std::vector<Start> starts;
  if (!program_->starts(a.push, starts, needs_)) return 0;
  const RestId rest = intern_rest({a.resume, at.machine, at.rest});
  std::vector<Item> items;
  bool accepting = false;
  for (const Start& s : starts) {
    const State from = a.given == 0 ? s.state : machine(s.machine).enter(*this, s.state, a.given);
    if (from != kDead) expand({from, s.machine, rest}, items, accepting);
  }
  if (lacks_nodes()) return 0;
  const ConfigId id = intern(std::move(items), accepting);
  after_push_.emplace(key, id);
  bytes_used_ += sizeof(PushKey) + 32;
  return id;
}

void Request::step(std::span<const Item> from, uint8_t b, std::vector<Item>& to, bool& accepting) {
  to.clear();
  accepting = false;
  for (const Item& i : from) {
    const State s = machine(i.machine).next(*this, i.state, b);
    if (s != kDead) expand({s, i.machine, i.rest}, to, accepting);
  }
  settle(to);
}

ConfigId Request::advance(ConfigId from, std::string_view bytes) {
  // Taken out, so that an advance within this one would have others.
  std::vector<Item> items = std::move(scratch_[0]), next = std::move(scratch_[1]);
  items = config(from).items;
  bool accepting = config(from).accepting, dead = false;
  for (char c : bytes) {
    step(items, static_cast<uint8_t>(c), next, accepting);
    dead = lacks_nodes() || (next.empty() && !accepting);
    if (dead) break;
    items.swap(next);
  }
  const ConfigId to = dead ? kNoConfig : intern(std::move(items), accepting);  // takes them only where it is new
  scratch_[0] = std::move(items);
  scratch_[1] = std::move(next);
  return to;
}

}  // namespace mw
