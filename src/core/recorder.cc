#include "recorder.h"

#include <algorithm>

#include "decimal.h"

namespace mw {
namespace {

bool is_space(uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }
bool is_digit(uint8_t b) { return b >= '0' && b <= '9'; }
bool is_numeric(uint8_t b) { return is_digit(b) || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E'; }

}  // namespace

void Recorder::reset() {
  lists_.intern({kNoValue, kNoValue});  // handle 0: no list
  lengths_.assign(1, 0);
  members_.emplace_back();
  member_index_.insert(35, 0);
  containers_.intern({kNoValue, 0, kUnknownText, false});  // handle 0: none
  recordings_.intern({Recording::Finished, kNoValue, kNoValue, 0});  // handle 0: nothing is recorded
  recordings_.intern({});                                           // kStart
  values_.intern({JsonValue::Null, 0});
  values_.intern({JsonValue::False, 0});
  values_.intern({JsonValue::True, 0});
}

TextId Recorder::text(std::string_view bytes) {
  TextId t = 0;
  for (char c : bytes) t = records_.append(t, static_cast<uint8_t>(c));
  return t;
}

uint32_t Recorder::append(uint32_t list, ValueId v) {
  const uint32_t id = lists_.intern({list, v});
  if (id == lengths_.size()) lengths_.push_back(lengths_[list] + 1);
  return id;
}

uint32_t Recorder::with_member(uint32_t set, TextId key, ValueId v) {
  Members all = members_[set];
  const auto at = std::lower_bound(all.begin(), all.end(), std::pair(key, ValueId{0}));
  if (at != all.end() && at->first == key) at->second = v;
  else all.insert(at, {key, v});
  uint64_t h = 35;
  for (const auto& [k, value] : all) h = mix(mix(h, k), value);
  const uint32_t found = member_index_.find(h, [&](uint32_t id) { return members_[id] == all; });
  if (found != HashIndex::kNone) return found;
  const auto id = static_cast<uint32_t>(members_.size());
  members_.push_back(std::move(all));
  member_index_.insert(h, id);
  return id;
}

ValueId Recorder::member(uint32_t set, TextId key) const {
  const Members& all = members_[set];
  const auto at = std::lower_bound(all.begin(), all.end(), std::pair(key, ValueId{0}));
  return at != all.end() && at->first == key ? at->second : kNoValue;
}

ValueId Recorder::number(TextId written) {
  return value(JsonValue::Number, text(canonical_number(records_.text(written))));
}

// ---------------------------------------------------------------- reading

Recording Recorder::in_string(Recording r, uint8_t b) {
  const Decoded d = decode_json(r.sub, b, true);
  r.sub = d.kind == Decoded::Partial ? d.value : 0;
  if (d.kind == Decoded::Char) {
    uint8_t bytes[4];
    const int n = encode_utf8(d.value, bytes);
    for (int i = 0; i < n; ++i) r.data = records_.append(r.data, bytes[i]);
  }
  if (d.kind != Decoded::Quote) return r;
  OpenContainer c = containers_[r.container];
  if (r.container != 0 && c.is_object && c.key == kUnknownText) {
    c.key = r.data;
    return {Recording::Between, containers_.intern(c), 0, 0};
  }
  return {Recording::Finished, r.container, value(JsonValue::String, r.data), 0};
}

// Zero stays zero whatever its exponent: the digits of that are left out, so that there are finitely many.
TextId Recorder::in_number(TextId written, uint8_t b) {
  const Digits so_far = leading_digits(records_.text(written));
  if (so_far.exponent && so_far.digits.empty()) return written;
  return records_.append(written, b);
}

ContainerId Recorder::with(ContainerId id, ValueId v) {
  if (v == kNoValue) return id;
  OpenContainer c = containers_[id];
  c.data = c.is_object ? with_member(c.data, c.key, v) : append(c.data, v);
  c.key = kUnknownText;
  return containers_.intern(c);
}

Recording Recorder::structural(Recording r, uint8_t b, ValueId v) {
  const auto between = [&](ContainerId c) { return Recording{Recording::Between, c, 0, 0}; };
  switch (b) {
    case '"': return {Recording::String, r.container, 0, 0};
    case '[': case '{': return between(containers_.intern({r.container, 0, kUnknownText, b == '{'}));
    case ',': return between(with(r.container, v));
    case ':': return between(r.container);
    case 't': return {Recording::Word, r.container, value(JsonValue::True, 0), 0};
    case 'f': return {Recording::Word, r.container, value(JsonValue::False, 0), 0};
    case 'n': return {Recording::Word, r.container, value(JsonValue::Null, 0), 0};
    case ']': case '}': {
      const OpenContainer c = containers_[with(r.container, v)];
      return {Recording::Finished, c.parent, value(b == '}' ? JsonValue::Object : JsonValue::Array, c.data), 0};
    }
    default: break;
  }
  if (is_numeric(b)) return {Recording::Number, r.container, records_.append(0, b), 0};
  return v == kNoValue ? between(r.container) : Recording{Recording::Finished, r.container, v, 0};
}

ValueId Recorder::finished(const Recording& r) {
  if (r.mode == Recording::Number) return number(r.data);
  return r.mode == Recording::Finished || r.mode == Recording::Word ? r.data : kNoValue;
}

ValueId Recorder::value_at_end(RecordingId id) { return finished(recordings_[id]); }

RecordingId Recorder::next(RecordingId id, uint8_t b) {
  Recording r = recordings_[id];
  if (r.mode == Recording::String) return put(in_string(r, b));
  if (r.mode == Recording::Word && b >= 'a' && b <= 'z') return id;
  if (r.mode == Recording::Number && is_numeric(b)) {
    r.data = in_number(r.data, b);
    return put(r);
  }
  if (r.mode != Recording::Number && is_space(b) && r.mode != Recording::Word) return id;
  return put(structural(r, b, finished(r)));
}

ValueId Recorder::value_of(std::string_view json) {
  RecordingId r = kStart;
  for (char c : json) r = next(r, static_cast<uint8_t>(c));
  return value_at_end(r);
}

// ---------------------------------------------------------------- what a value may become

void Recorder::open(RecordingId r, std::vector<ContainerId>& out) const {
  for (ContainerId c = recordings_[r].container; c != 0; c = containers_[c].parent) out.push_back(c);
}

// Whether a list begins like another: lists are linked from their ends, and equal ones are one.
bool Recorder::holds_items(uint32_t list, uint32_t of) const {
  while (length(of) > length(list)) of = rest(of);
  return of == list;
}

bool Recorder::descend(std::span<const ContainerId> path, const Recording& r, ValueId& v) const {
  for (size_t i = path.size(); i-- > 0;) {
    const OpenContainer& c = containers_[path[i]];
    const JsonValue whole = values_[v];
    const bool open = i > 0 || r.mode != Recording::Between;  // some member has begun
    if (whole.kind != (c.is_object ? JsonValue::Object : JsonValue::Array)) return false;
    if (!c.is_object) {
      if (!holds_items(c.data, whole.data)) return false;
      if (length(whole.data) == length(c.data)) {
        v = kNoValue;
        return !open;
      }
      uint32_t at = whole.data;
      while (length(at) > length(c.data) + 1) at = rest(at);
      v = last(at);
      continue;
    }
    for (const auto& [key, value] : members_[c.data])
      if (member(whole.data, key) != value) return false;
    if (c.key == kUnknownText) {
      const bool may = !open || key_may_become(c, r, whole.data);
      v = kNoValue;
      return may;
    }
    v = member(whole.data, c.key);
    if (v == kNoValue) return false;
  }
  return true;
}

bool Recorder::key_may_become(const OpenContainer& c, const Recording& r, uint32_t of) const {
  if (r.mode != Recording::String) return true;
  return std::any_of(members_[of].begin(), members_[of].end(), [&](const auto& m) {
    return records_.is_prefix(r.data, m.first) && member(c.data, m.first) == kNoValue;
  });
}

// By the digits of the value that are there: with an exponent to come, the point may be anywhere.
bool Recorder::number_may_become(TextId written, ValueId v) const {
  if (values_[v].kind != JsonValue::Number) return false;
  const Digits so_far = leading_digits(records_.text(written));
  const std::string of = records_.text(values_[v].data);
  if (of == "0") return so_far.digits.empty();
  if (so_far.negative != (of[0] == '-')) return false;
  std::string digits = of.substr(so_far.negative ? 1 : 0);
  digits.resize(digits.find('e'));
  if (so_far.digits.empty()) return true;
  if (so_far.digits.size() > digits.size()) digits.resize(so_far.digits.size(), '0');
  return digits.starts_with(so_far.digits);
}

bool Recorder::may_become(RecordingId id, std::span<const ContainerId> path, bool ended, ValueId v) {
  const Recording r = recordings_[id];
  if (!descend(path, r, v)) return false;
  if (v == kNoValue || r.mode == Recording::Between) return true;
  if (r.mode == Recording::Finished || r.mode == Recording::Word) return v == r.data;
  if (r.mode == Recording::Number) return ended ? number(r.data) == v : number_may_become(r.data, v);
  return values_[v].kind == JsonValue::String && records_.is_prefix(r.data, values_[v].data);
}

void Recorder::next_bytes(RecordingId id, std::span<const ContainerId> path, ValueId v, std::vector<uint8_t>& out) const {
  const Recording& r = recordings_[id];
  const ValueId whole = v;
  if (!descend(path, r, v)) return;
  const auto add = [&](TextId text) {
    const uint32_t n = records_.text_length(r.data);
    if (records_.text_length(text) <= n || !records_.is_prefix(r.data, text)) return;
    while (records_.text_length(text) > n + 1) text = records_.text_parent(text);
    out.push_back(records_.last_byte(text));
  };
  if (v != kNoValue) {
    if (values_[v].kind == JsonValue::String) add(values_[v].data);
    return;
  }
  ValueId inner = whole;  // a key: the object around it
  if (path.empty() || !descend(path.subspan(1), r, inner) || inner == kNoValue) return;
  if (values_[inner].kind != JsonValue::Object) return;
  for (const auto& m : members_[values_[inner].data]) add(m.first);
}

}  // namespace mw
