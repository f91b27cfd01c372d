#include "unique.h"

#include <algorithm>

#include "../request.h"
#include "../uniqueness.h"

namespace mw {
namespace {

// A maximum matching of positions to values, by augmenting paths (Kuhn); small: a few positions, the values of an enum.
class Matching {
 public:
  explicit Matching(std::vector<std::vector<ValueId>> open) : open_(std::move(open)) {}

  bool covers_all() {
    for (size_t i = 0; i < open_.size(); ++i) {
      tried_.clear();
      if (!augment(i)) return false;
    }
    return true;
  }
  // Whether all positions can do without a value. Called after covers_all() said yes; keeps it so.
  bool can_spare(ValueId v) {
    const auto it = std::find_if(owner_.begin(), owner_.end(), [&](const auto& o) { return o.first == v; });
    if (it == owner_.end()) return true;
    const auto [value, position] = *it;
    owner_.erase(it);
    tried_.assign(1, v);
    if (augment(position)) return true;
    owner_.emplace_back(value, position);
    return false;
  }

 private:
  bool augment(size_t position) {
    for (ValueId v : open_[position]) {
      if (std::find(tried_.begin(), tried_.end(), v) != tried_.end()) continue;
      tried_.push_back(v);
      const auto it = std::find_if(owner_.begin(), owner_.end(), [&](const auto& o) { return o.first == v; });
      if (it == owner_.end()) return owner_.emplace_back(v, position), true;
      const size_t other = it->second;
      if (!augment(other)) continue;
      std::find_if(owner_.begin(), owner_.end(), [&](const auto& o) { return o.first == v; })->second = position;
      return true;
    }
    return false;
  }

  std::vector<std::vector<ValueId>> open_;
  std::vector<std::pair<ValueId, size_t>> owner_;
  std::vector<ValueId> tried_;
};

}  // namespace

UniqueItems::UniqueItems(std::vector<std::vector<std::string>> positions, std::vector<std::string> texts)
    : positions_(std::move(positions)), texts_(std::move(texts)),
      starves_(std::any_of(positions_.begin(), positions_.end(), [](const auto& p) { return !p.empty(); })) {
  const auto look_at = [&](const std::vector<std::string>& all) {
    for (const std::string& text : all) dearest_ = std::max(dearest_, static_cast<uint32_t>(text.size()));
  };
  look_at(texts_);
  for (const auto& position : positions_) look_at(position);
}

bool UniqueItems::admits(Request& r) const {
  Recorder& k = r.uniqueness()->recorder();
  const ValueId v = k.value_at_end(r.recording());
  const uint32_t list = k.container(k.recording(r.recording()).container).data;
  bool fits = !k.contains(list, v);
  if (fits && starves_) {
    const auto& kept_ = kept(r, list);
    fits = std::find(kept_.begin(), kept_.end(), v) == kept_.end();
  }
  if (!fits) r.uniqueness()->note_refusal();
  return fits;
}

void UniqueItems::forbidden(Request& r, uint32_t list, std::vector<ValueId>& out) const {
  const Recorder& k = r.uniqueness()->recorder();
  if (starves_) {
    const auto& kept_ = kept(r, list);
    out.insert(out.end(), kept_.begin(), kept_.end());
  }
  for (; list != 0; list = k.rest(list)) out.push_back(k.last(list));
}

const std::vector<ValueId>& UniqueItems::kept(Request& r, uint32_t list) const {
  auto& known = r.uniqueness()->kept(this);
  const auto it = known.find(list);
  if (it != known.end()) return it->second;
  return known[list] = find_kept(r, list);
}

std::vector<ValueId> UniqueItems::find_kept(Request& r, uint32_t list) const {
  Recorder& k = r.uniqueness()->recorder();
  std::vector<std::vector<ValueId>> open;
  std::vector<ValueId> all;
  for (size_t i = k.length(list) + 1; i < positions_.size(); ++i) {
    if (positions_[i].empty()) continue;
    auto& here = open.emplace_back();
    for (const std::string& text : positions_[i]) {
      const ValueId v = k.value_of(text);
      if (!k.contains(list, v)) here.push_back(v);
    }
    all.insert(all.end(), here.begin(), here.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Matching matching(std::move(open));
  if (!matching.covers_all()) return all;  // not met: the item before was not let through
  std::erase_if(all, [&](ValueId v) { return matching.can_spare(v); });
  return all;
}

bool node_is_endless(Request& r, NodeId node) {
  auto& known = r.uniqueness()->endless_nodes();
  if (std::find(known.begin(), known.end(), node) != known.end()) return true;
  std::vector<Start> starts;
  std::vector<NodeId> missing;  // what is not there yet is not asked for: no is no lie
  if (!r.program().starts(node, starts, missing) && starts.empty()) return false;
  if (!r.uniqueness()->enter(node)) return false;
  const bool found = std::any_of(starts.begin(), starts.end(),
                                 [&](const Start& s) { return r.machine(s.machine).endless(r, s.state); });
  r.uniqueness()->leave(node);
  if (found) known.push_back(node);
  return found;
}

}  // namespace mw
