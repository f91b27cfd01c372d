#include "uniqueness.h"

#include <algorithm>

#include "machines/unique.h"

namespace mw {

bool Uniqueness::enter(NodeId node) {
  if (std::find(entered_.begin(), entered_.end(), node) != entered_.end()) return false;
  entered_.push_back(node);
  return true;
}

// Whether some array around the item, or the item's own machine, has items that must differ.
bool Uniqueness::concerns(const Item& item) const {
  return request_.rest_is_unique(item.rest) || request_.machine(item.machine).unique() != nullptr;
}

Uniqueness::Place Uniqueness::step(const Place& from, uint8_t b) {
  Place to;
  request_.set_recording(from.recording);
  request_.step(from.items, b, to.items, to.accepting);
  request_.set_recording(0);
  to.recording = recorder_.next(from.recording, b);
  return to;
}

Position Uniqueness::advance(const Position& from, std::string_view bytes) {
  const Config& c = request_.config(from.config);
  Place at{c.items, c.accepting, from.recording};
  const Position none{Request::kNoConfig, 0};
  for (char b : bytes) {
    at = step(at, static_cast<uint8_t>(b));
    if (request_.lacks_nodes() || (at.items.empty() && !at.accepting)) return none;
  }
  std::vector<Item> living;
  for (const Item& item : at.items) {
    if (lives(item, at.recording)) living.push_back(item);
    if (request_.lacks_nodes()) return none;
  }
  if (living.empty() && !at.accepting) return none;
  return {request_.intern(std::move(living), at.accepting), at.recording};
}

// ---------------------------------------------------------------- can it be finished

bool Uniqueness::is_free(const Item& item, RecordingId recording) {
  return !concerns(item) || is_free_at(item, recording, false, nullptr);
}

// From the innermost container outwards: where a value can become one of endlessly many, it is free, and so are those
// around it (by_number: so it can be finished, but not by any bytes). Where it is not, collects the bytes that keep a string on the way to what is forbidden.
bool Uniqueness::is_free_at(const Item& item, RecordingId recording, bool by_number, std::vector<uint8_t>* next_bytes) {
  open_.clear();
  recorder_.open(recording, open_);
  const std::vector<ContainerId> path = open_;
  const size_t depth = path.size(), frames = request_.rest_depth(item.rest);
  const bool inside = frames + 1 == depth;  // the item's machine is that of the innermost container, between its members
  Item at = item;
  bool endless = by_number && !inside && request_.machine(item.machine).endless(request_, item.state);
  bool free = true;
  for (size_t i = 0; i < depth && !endless; ++i) {
    if (i > 0 || !inside) at = request_.frames(at.rest).front();
    const Machine& m = request_.machine(at.machine);
    if (const UniqueItems* unique = m.unique()) {
      values_.clear();
      unique->forbidden(request_, recorder_.container(path[i]).data, values_);
      forbidden_ = std::max(forbidden_, values_.size());
      const std::span<const ContainerId> below = std::span(path).first(i);
      for (const ValueId v : std::vector<ValueId>(values_)) {
        if (!recorder_.may_become(recording, below, inside, v)) continue;
        free = false;
        if (next_bytes == nullptr) return false;
        recorder_.next_bytes(recording, below, v, *next_bytes);
      }
    }
    endless = by_number && m.endless(request_, at.state);
  }
  return free;
}

bool Uniqueness::lives(const Item& item, RecordingId recording) {
  if (!concerns(item) || is_free_at(item, recording, true, nullptr)) return true;
  const ConfigId config = request_.intern({item}, false);
  const uint64_t k = key({config, recording});
  const auto known = lives_.find(k);
  if (known != lives_.end()) return known->second;
  const bool found = search(config, recording);
  if (request_.lacks_nodes()) return true;  // of no account: the caller starts again
  lives_[k] = found;
  return found;
}

bool Uniqueness::all_free(const Place& place) {
  return std::all_of(place.items.begin(), place.items.end(), [&](const Item& i) { return is_free(i, place.recording); });
}

// Whether tokens may end in a place.
bool Uniqueness::any_fits(const Place& place) {
  return place.accepting || std::any_of(place.items.begin(), place.items.end(), [&](const Item& i) {
           return limit_ < kNoCost ? cost(i, place.recording) <= limit_ : lives(i, place.recording);
         });
}

// Nearest first. It ends: what is not free begins like one of finitely many values, and equal beginnings are one place;
// white space is left out (but for the first byte: some stacks read nothing else), and so are zeros in a row beyond those
// that could make one value more.
bool Uniqueness::search(ConfigId from, RecordingId recording) {
  visited_.clear();
  std::vector<Visit> queue{{from, recording, 0}};
  for (size_t i = 0; i < queue.size(); ++i) {
    if (visit(Visit(queue[i]), i == 0, queue)) return true;
    if (request_.lacks_nodes()) return true;
  }
  return false;
}

bool Uniqueness::visit(const Visit& at, bool spaces, std::vector<Visit>& queue) {
  const std::vector<Item> items = request_.config(at.config).items;
  for (uint8_t b : bytes_from(items, at.recording, spaces))
    if (visit_byte(at, b, queue)) return true;
  return false;
}

bool Uniqueness::visit_byte(const Visit& at, uint8_t b, std::vector<Visit>& queue) {
  const Place to = step({request_.config(at.config).items, false, at.recording}, b);
  if (request_.lacks_nodes() || to.accepting) return true;
  if (to.items.empty()) return false;
  if (std::any_of(to.items.begin(), to.items.end(), [&](const Item& i) { return !concerns(i) || is_free_at(i, to.recording, true, nullptr); })) return true;
  const ConfigId config = request_.intern(std::vector<Item>(to.items), false);
  const uint32_t zeros = b == '0' && config == at.config ? at.zeros + 1 : 0;
  if (zeros > forbidden_ + 1) return false;
  if (visited_.try_emplace(key({config, to.recording}), uint8_t{1}).second) queue.push_back({config, to.recording, zeros});
  return false;
}

// The bytes that may go on; `spaces`: also those between the tokens of JSON.
std::vector<uint8_t> Uniqueness::bytes_from(const std::vector<Item>& items, RecordingId recording, bool spaces) {
  std::vector<uint8_t> out;
  bool all = false;
  for (const Item& i : items) {
    uint8_t some[8];
    const int n = request_.machine(i.machine).candidates(request_, i.state, some);
    all = all || n < 0;
    if (n > 0) out.insert(out.end(), some, some + n);
  }
  if (all) {
    out.resize(256);
    for (size_t b = 0; b < 256; ++b) out[b] = static_cast<uint8_t>(b);
  }
  if (!request_.vocab().is_byte_complete()) std::erase_if(out, [&](uint8_t b) { return !request_.vocab().has_byte(b); });
  if (!spaces && recorder_.recording(recording).mode != Recording::String)
    std::erase_if(out, [](uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace mw
