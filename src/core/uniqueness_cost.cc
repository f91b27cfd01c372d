// Closing costs of positions: what a witness takes of whom every step is kept.
//
// The machines' own costs hold for free stacks: behind the item that is being written, their arrays count the dearest of the
// values that one of the items to come can surely have (UniqueItems::dearest). For others the cost is that of a way to a
// free one, byte by byte; what is left of it is noted for each place on the way, so that each byte lowers the cost by one.
#include <algorithm>

#include "machines/unique.h"
#include "uniqueness.h"

namespace mw {

uint32_t Uniqueness::cost(const Position& at) {
  const Config& c = request_.config(at.config);
  if (c.accepting) return 0;
  uint32_t best = kNoCost;
  for (const Item& item : std::vector<Item>(c.items)) best = std::min(best, cost(item, at.recording));
  return best;
}

uint32_t Uniqueness::cost(const Item& item, RecordingId recording) {
  if (!concerns(item) || is_free_at(item, recording, false, nullptr)) return request_.item_cost(item);
  const uint64_t k = key({request_.intern({item}, false), recording});
  const auto known = costs_.find(k);
  if (known != costs_.end()) return known->second;
  costs_[k] = kNoCost;
  search_cost(item, recording);
  follow_texts(item, recording);
  return costs_[k];
}

void Uniqueness::note_cost(const Item& item, RecordingId recording, uint32_t cost) {
  const auto [it, fresh] = costs_.try_emplace(key({request_.intern({item}, false), recording}), cost);
  if (!fresh) it->second = std::min(it->second, cost);
}

// From the end of a way back to its start.
void Uniqueness::note_way(const std::vector<Step>& steps, size_t end) {
  uint32_t cost = request_.item_cost(steps[end].item);
  for (size_t i = end; steps[i].before != kNoStep;) {
    i = steps[i].before;
    cost = add_cost(cost, 1);
    note_cost(steps[i].item, steps[i].recording, cost);
  }
}

void Uniqueness::search_cost(const Item& from, RecordingId recording) {
  visited_.clear();
  std::vector<Step> steps{{from, recording, kNoStep, 0}};
  for (size_t i = 0; i < steps.size() && !request_.lacks_nodes(); ++i) {
    const Step at = steps[i];
    for (uint8_t b : bytes_from({at.item}, at.recording, i == 0)) {
      const Place to = step({{at.item}, false, at.recording}, b);
      if (request_.lacks_nodes()) return;
      for (const Item& item : to.items) {
        const uint32_t zeros = b == '0' && item == at.item ? at.zeros + 1 : 0;
        const uint64_t k = key({request_.intern({item}, false), to.recording});
        if (zeros > forbidden_ + 1 || !visited_.try_emplace(k, uint8_t{1}).second) continue;
        steps.push_back({item, to.recording, i, zeros});
        if (!concerns(item) || is_free_at(item, to.recording, false, nullptr)) return note_way(steps, steps.size() - 1);
      }
      if (to.accepting) return note_accepting(steps, i);
    }
  }
}

void Uniqueness::note_accepting(const std::vector<Step>& steps, size_t last) {
  uint32_t cost = 1;
  for (size_t i = last;; i = steps[i].before) {
    note_cost(steps[i].item, steps[i].recording, cost);
    cost = add_cost(cost, 1);
    if (steps[i].before == kNoStep) return;
  }
}

// At the start of an item: the texts of which one can surely be taken.
void Uniqueness::follow_texts(const Item& item, RecordingId recording) {
  if (recorder_.recording(recording).mode != Recording::Between) return;
  const ContainerId container = recorder_.recording(recording).container;
  const bool inside = request_.rest_depth(item.rest) + 1 == recorder_.depth(container);
  if (!inside && item.rest == kEndOfText) return;
  const Item array = inside ? item : request_.frames(item.rest).front();
  const UniqueItems* unique = request_.machine(array.machine).unique();
  if (unique == nullptr) return;
  const uint32_t list = recorder_.container(container).data;
  std::vector<ValueId> forbidden;
  unique->forbidden(request_, list, forbidden);
  for (const std::string& text : unique->texts(recorder_.length(list))) {
    if (std::find(forbidden.begin(), forbidden.end(), recorder_.value_of(text)) == forbidden.end())
      follow_text(item, recording, text, array);
  }
}

void Uniqueness::follow_text(const Item& item, RecordingId recording, std::string_view text, const Item& array) {
  std::vector<Step> steps{{item, recording, kNoStep, 0}};
  size_t first = 0;
  for (char b : text) {
    const size_t end = steps.size();
    for (size_t i = first; i < end; ++i) {
      const Place to = step({{steps[i].item}, false, steps[i].recording}, static_cast<uint8_t>(b));
      if (request_.lacks_nodes()) return;
      for (const Item& next : to.items) steps.push_back({next, to.recording, i, 0});
    }
    first = end;
  }
  for (size_t i = first; i < steps.size(); ++i) {
    const Item& end = steps[i].item;
    if (end.machine == array.machine && end.rest == array.rest && is_free_at(end, steps[i].recording, false, nullptr))
      return note_way(steps, i);
  }
}

}  // namespace mw
