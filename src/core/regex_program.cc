// Reads a reverse Polish regex program (grammar/ir.py, to_program) into expressions, without recursion.
#include <algorithm>
#include <array>
#include <map>

#include "regex_expr.h"

namespace mw {

namespace {

// Derivatives recurse through intersections and complements only; this bounds the stack they need.
constexpr uint32_t kMaxBooleanDepth = 512;

constexpr std::array<uint32_t, 11> kNumeralCharacters{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.'};

enum Code : int64_t { kPEmpty, kPEpsilon, kPChars, kPCat, kPAlt, kPRepeat, kPAnd, kPNot, kPMultiple };

struct Node {
  int64_t code;
  int64_t lo = 0;  // kPRepeat; kPChars: number of the set; kPMultiple: number of the form
  int64_t hi = 0;  // kPRepeat; kPMultiple: remainder
  uint32_t first = 0;  // children, in Reader::children_
  uint32_t count = 0;
  uint32_t parent = UINT32_MAX;
  uint32_t depth = 0;  // of intersections and complements
};

class Reader {
 public:
  explicit Reader(std::span<const int64_t> rpn) : rpn_(rpn) {}

  bool parse();
  ExprId build(RegexSource& out);
  const std::vector<CodeRanges>& sets() const { return sets_; }
  const std::string& message() const { return message_; }

 private:
  bool fail(const std::string& what);
  bool take(int64_t& value);
  bool parse_chars();
  bool parse_repeat();
  bool parse_group(int64_t code);
  bool parse_not();
  bool parse_multiple();
  uint32_t set_number(CodeRanges ranges);
  bool push(Node node, size_t n_children);
  bool is_option(uint32_t i) const;
  bool deferred(uint32_t i) const;
  void gather(uint32_t i);
  ExprId build_node(uint32_t i, ExprPool& pool);

  std::span<const int64_t> rpn_;
  size_t at_ = 0;
  std::string message_;
  std::vector<Node> nodes_;  // children before parents
  std::vector<uint32_t> children_;
  std::vector<uint32_t> stack_;
  std::vector<CodeRanges> sets_;
  std::map<CodeRanges, uint32_t> set_index_;
  std::vector<MultipleForm> multiples_;
  std::array<uint32_t, 128> literals_{};  // number of the set of one ASCII character, plus 1
  std::vector<ExprId> set_exprs_;
  std::vector<ExprId> built_;
  std::vector<ExprId> parts_;
};

bool Reader::fail(const std::string& what) {
  message_ = "malformed regex program at word " + std::to_string(at_ == 0 ? 0 : at_ - 1) + ": " + what;
  return false;
}

bool Reader::take(int64_t& value) {
  if (at_ >= rpn_.size()) return fail("it ends in the middle of an instruction");
  value = rpn_[at_++];
  return true;
}

bool Reader::push(Node node, size_t n_children) {
  if (n_children > stack_.size()) return fail("too few operands");
  if (nodes_.size() >= UINT32_MAX - 1) return fail("too long");
  const auto id = static_cast<uint32_t>(nodes_.size());
  node.first = static_cast<uint32_t>(children_.size());
  node.count = static_cast<uint32_t>(n_children);
  for (size_t i = stack_.size() - n_children; i < stack_.size(); ++i) {
    children_.push_back(stack_[i]);
    nodes_[stack_[i]].parent = id;
    node.depth = std::max(node.depth, nodes_[stack_[i]].depth);
  }
  if (node.code == kPAnd || node.code == kPNot) ++node.depth;
  if (node.depth > kMaxBooleanDepth) return fail("intersections and complements nested too deeply");
  stack_.resize(stack_.size() - n_children);
  stack_.push_back(id);
  nodes_.push_back(node);
  return true;
}

bool Reader::parse_chars() {
  int64_t n = 0;
  if (!take(n)) return false;
  if (n < 0 || static_cast<uint64_t>(n) > (rpn_.size() - at_) / 2) return fail("a bad number of ranges");
  CodeRanges ranges;
  ranges.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t lo = rpn_[at_++];
    const int64_t hi = rpn_[at_++];
    if (lo < 0 || hi < lo || hi > kMaxCodePoint) return fail("a bad range of code points");
    ranges.push_back({static_cast<uint32_t>(lo), static_cast<uint32_t>(hi)});
  }
  return push(Node{.code = kPChars, .lo = set_number(std::move(ranges))}, 0);
}

uint32_t Reader::set_number(CodeRanges ranges) {
  // Literal characters are most of most programs; ASCII ones go by a table.
  const bool literal = ranges.size() == 1 && ranges[0].lo == ranges[0].hi && ranges[0].lo < 128;
  const uint32_t c = literal ? ranges[0].lo : 0;
  if (literal && literals_[c] != 0) return literals_[c] - 1;
  normalise_ranges(ranges);
  const auto [it, fresh] = set_index_.emplace(std::move(ranges), static_cast<uint32_t>(sets_.size()));
  if (fresh) sets_.push_back(it->first);
  if (literal) literals_[c] = it->second + 1;
  return it->second;
}

// Twice not is nothing: however often, it does not count as nesting.
bool Reader::parse_not() {
  if (stack_.empty() || nodes_[stack_.back()].code != kPNot) return push(Node{.code = kPNot}, 1);
  stack_.back() = children_[nodes_[stack_.back()].first];
  nodes_[stack_.back()].parent = UINT32_MAX;
  return true;
}

bool Reader::parse_multiple() {
  std::array<int64_t, 7> w{};
  for (int64_t& value : w)
    if (!take(value)) return false;
  const auto& [modulus, scale, remainder, least, most, room, read] = w;
  if (modulus < 1 || remainder < 0 || remainder >= modulus) return fail("a bad remainder");
  if (scale < 0 || scale > kMaxScale || room < -1 || (room >= 0 && room < scale)) return fail("a bad number of places");
  if (least < 0 || most < -1 || (most >= 0 && most < least) || read < -1) return fail("bad numbers of digits");
  if (read >= 0 && (most != 0 || room == 0 || (room > 0 && read > room))) return fail("bad numbers of digits");
  // Digits and point get classes of their own.
  for (const uint32_t c : kNumeralCharacters) set_number({{c, c}});
  multiples_.push_back({static_cast<uint64_t>(modulus), scale, least, most < 0 ? kNoLimit : most, room < 0 ? kNoLimit : room, read});
  return push(Node{.code = kPMultiple, .lo = static_cast<int64_t>(multiples_.size()) - 1, .hi = remainder}, 0);
}

bool Reader::parse_repeat() {
  int64_t lo = 0;
  int64_t hi = 0;
  if (!take(lo) || !take(hi)) return false;
  if (hi == -1) hi = kInfinite;
  if (lo < 0 || lo == kInfinite || hi < lo) return fail("bad repeat counts");
  if (stack_.empty()) return fail("too few operands");
  if (lo == 1 && hi == 1) return true;
  return push(Node{.code = kPRepeat, .lo = lo, .hi = hi}, 1);
}

bool Reader::parse_group(int64_t code) {
  int64_t n = 0;
  if (!take(n)) return false;
  if (n < 0 || static_cast<uint64_t>(n) > stack_.size()) return fail("too few operands");
  if (n == 1) return true;  // stands for its member
  return push(Node{.code = code}, static_cast<size_t>(n));
}

bool Reader::parse() {
  while (at_ < rpn_.size()) {
    const int64_t code = rpn_[at_++];
    bool ok = false;
    switch (code) {
      case kPEmpty:
      case kPEpsilon: ok = push(Node{.code = code}, 0); break;
      case kPChars: ok = parse_chars(); break;
      case kPRepeat: ok = parse_repeat(); break;
      case kPCat:
      case kPAlt:
      case kPAnd: ok = parse_group(code); break;
      case kPNot: ok = parse_not(); break;
      case kPMultiple: ok = parse_multiple(); break;
      default: ok = fail("unknown instruction " + std::to_string(code)); break;
    }
    if (!ok) return false;
  }
  if (stack_.size() != 1) return fail("it leaves " + std::to_string(stack_.size()) + " expressions instead of one");
  return true;
}

bool Reader::is_option(uint32_t i) const {
  return nodes_[i].code == kPRepeat && nodes_[i].lo == 0 && nodes_[i].hi == 1;
}

// Built together with its parent: flattening one level at a time would be quadratic in the nesting.
bool Reader::deferred(uint32_t i) const {
  uint32_t p = nodes_[i].parent;
  if (p == UINT32_MAX) return false;
  const int64_t code = nodes_[i].code;
  if (is_option(i)) return nodes_[p].code == kPAlt;
  if (code == kPAlt && is_option(p)) p = nodes_[p].parent;
  return p != UINT32_MAX && code == nodes_[p].code && (code == kPCat || code == kPAlt || code == kPAnd);
}

// The operands of node i in order, through its deferred descendants.
void Reader::gather(uint32_t i) {
  parts_.clear();
  std::vector<uint32_t> todo{i};
  while (!todo.empty()) {
    const uint32_t j = todo.back();
    todo.pop_back();
    if (j != i && !deferred(j)) {
      parts_.push_back(built_[j]);
      continue;
    }
    if (is_option(j)) parts_.push_back(kEpsilonExpr);
    const Node& node = nodes_[j];
    for (uint32_t k = node.count; k-- > 0;) todo.push_back(children_[node.first + k]);
  }
}

ExprId Reader::build_node(uint32_t i, ExprPool& pool) {
  const Node& node = nodes_[i];
  switch (node.code) {
    case kPEmpty: return kEmptyExpr;
    case kPEpsilon: return kEpsilonExpr;
    case kPChars: return set_exprs_[static_cast<size_t>(node.lo)];
    case kPRepeat: return pool.repeat(built_[children_[node.first]], node.lo, node.hi);
    case kPNot: return pool.complement(built_[children_[node.first]]);
    case kPMultiple: return pool.multiple(multiples_[static_cast<size_t>(node.lo)], static_cast<uint64_t>(node.hi));
    default: break;
  }
  gather(i);
  if (node.code == kPAlt) return parts_.empty() ? kEmptyExpr : pool.any_of(parts_);
  if (node.code == kPAnd) return pool.all_of(parts_);
  ExprId result = kEpsilonExpr;
  for (size_t k = parts_.size(); k-- > 0;) result = pool.cat(parts_[k], result);
  return result;
}

ExprId Reader::build(RegexSource& out) {
  for (const CodeRanges& set : sets_) {
    ExprPool& pool = *out.pool;
    set_exprs_.push_back(pool.chars(pool.sets().intern(out.partition->classes_of(set))));
  }
  if (!multiples_.empty()) {
    std::array<uint32_t, kNumeralCharacters.size()> classes{};
    std::transform(kNumeralCharacters.begin(), kNumeralCharacters.end(), classes.begin(),
                   [&](uint32_t c) { return out.partition->class_of(c); });
    out.pool->numerals(classes);
  }
  built_.assign(nodes_.size(), kEmptyExpr);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!deferred(i)) built_[i] = build_node(i, *out.pool);
  }
  return built_[stack_[0]];
}

}  // namespace

bool read_program(std::span<const int64_t> rpn, RegexSource& out, std::string* error) {
  Reader reader(rpn);
  if (!reader.parse()) {
    if (error != nullptr) *error = reader.message();
    return false;
  }
  out.partition = std::make_unique<CharPartition>(reader.sets());
  out.pool = std::make_unique<ExprPool>(out.partition->size());
  out.root = reader.build(out);
  return true;
}

}  // namespace mw
