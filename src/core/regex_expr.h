// Hash-consed regular expressions with intersection, complement and symbolic counters, and their derivatives.
//
// Expressions are kept in a normal form by their constructors (similarity, Brzozowski 1964; Owens, Reppy,
// Turon, "Regular-expression derivatives re-examined", 2009): concatenations nest to the right, unions and
// intersections are sorted sets, members of a union with the same first factor share it (p.q | p.r = p.(q|r)),
// so a union of words is a trie, counted neighbours join (x{1,3}.t | x{2,5}.t = x{1,5}.t), and all texts over some
// characters take in what is made of these (s* | x = s*). A derivative is
// collected as a set of linear forms with their continuations (Antimirov 1996), without recursion except
// through intersection and complement, whose nesting the program reader limits.
//
// Not thread-safe: RegexDfa holds its mutex around every call.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "regex_chars.h"
#include "regex_multiple.h"

namespace mw {

using ExprId = uint32_t;

enum class Op : uint8_t { kEmpty, kEpsilon, kChars, kCat, kOr, kAnd, kNot, kRepeat, kMultiple };

// Does the language have a member? Without AND and NOT it has, unless the expression is EMPTY.
enum class Life : uint8_t { kUnknown, kLive, kDead };

inline constexpr int64_t kInfinite = INT64_MAX;
inline constexpr ExprId kEmptyExpr = 0;
inline constexpr ExprId kEpsilonExpr = 1;
inline constexpr ExprId kAnyExpr = 2;  // every code point
inline constexpr ExprId kAllExpr = 3;  // every text

struct Expr {
  uint64_t hash = 0;
  uint64_t first = 0;     // classes modulo 64 a match can begin with (superset)
  uint64_t alphabet = 0;  // classes modulo 64 that its texts are made of (superset)
  int64_t lo = 0;         // kRepeat: counts | kMultiple: remainder
  int64_t hi = 0;         // kRepeat: kInfinite = no limit
  int64_t min_len = 0;    // code points; lower bound
  int64_t max_len = 0;    // upper bound, kInfinite = none
  int64_t reach = 0;      // no count is used up later than after so many code points
  uint32_t a = 0;         // kChars: set | kCat: head | kOr, kAnd: first member in the pool | kNot, kRepeat: body |
                          // kMultiple: form
  uint32_t b = 0;         // kCat: tail | kOr, kAnd: number of members
  Op op = Op::kEmpty;
  bool nullable = false;
  bool boolean = false;   // contains AND or NOT
  Life life = Life::kUnknown;
};

class ExprPool {
 public:
  explicit ExprPool(uint32_t n_classes);

  const Expr& operator[](ExprId e) const { return exprs_[e]; }
  size_t size() const { return exprs_.size(); }
  ClassSets& sets() { return sets_; }
  void set_life(ExprId e, Life life) { exprs_[e].life = life; }

  ExprId chars(uint32_t set);
  // Numerals by value; EMPTY where nothing completes one. `numerals` comes first.
  ExprId multiple(MultipleForms::At at);
  ExprId multiple(const MultipleForm& form, uint64_t remainder);
  // Whether there are multiples of a number so large that the remainders cannot be gone through.
  bool is_wide() const { return forms_.is_wide(); }
  // The classes of the digits and of the point, each alone in its own.
  void numerals(const std::array<uint32_t, 11>& classes);
  ExprId cat(ExprId a, ExprId b);
  ExprId any_of(std::span<const ExprId> members);
  ExprId all_of(std::span<const ExprId> members);
  ExprId complement(ExprId e);
  ExprId repeat(ExprId e, int64_t lo, int64_t hi);
  // Some member begins with ALL, and can be finished: no text read from here on can make the language empty.
  bool is_total(ExprId e) const;
  // An expression that agrees with this one on what texts of at most so many code points belong to it, and which can be
  // made longer so that they do. Counts that such a text cannot use up are cut down.
  ExprId near(ExprId e, int64_t code_points);
  // The expression without the complements of finite languages intersected with it. ALL where that leaves ALL, and also where
  // complements of languages that have no short texts are all there is.
  ExprId without_exceptions(ExprId e);
  // No complement that is intersected with it says anything of texts of fewer code points.
  int64_t exception_distance(ExprId e) const;
  // What may follow a code point of the class: Brzozowski's derivative.
  ExprId derivative(ExprId e, uint32_t cls);

 private:
  struct Counted {  // e = base{lo,hi}
    ExprId base;
    int64_t lo;
    int64_t hi;
  };
  struct Linear {  // a member of a union: head.rest, the head not a concatenation
    ExprId head;
    ExprId rest;
    auto operator<=>(const Linear&) const = default;
  };
  struct Union;  // the members of a union being built
  struct Pending {  // derivative(e).then is still to be collected
    ExprId e;
    ExprId then;
  };

  bool starts_with(ExprId e, uint32_t cls) const { return ((exprs_[e].first >> (cls & 63)) & 1) != 0; }
  bool is_empty(ExprId e) const { return e == kEmptyExpr || exprs_[e].life == Life::kDead; }
  Counted counted(ExprId e) const;
  Linear split(ExprId e) const;
  ExprId cat_factor(ExprId head, ExprId tail);
  bool flatten_repeat(ExprId& e, int64_t& lo, int64_t& hi) const;
  bool strip_inner_stars(ExprId& e);

  ExprId any_of(std::span<const ExprId> members, int depth);
  void add_member(Union& u, ExprId e) const;
  bool factor_heads(Union& u, int depth);
  Linear factor_group(std::span<const Linear> group, int depth);
  bool is_run(ExprId e) const;
  bool within_run(uint64_t alphabet, ExprId run) const;
  void drop_covered(Union& u) const;
  bool merge_counts(Union& u);
  bool merge_chars(Union& u);
  bool absorb_epsilon(Union& u);
  ExprId finish_union(Union& u);
  ExprId finish_intersection(std::vector<ExprId>& members);
  bool has_complement_pair(std::span<const ExprId> sorted) const;

  bool is_exception(ExprId e, bool far) const;
  ExprId cut_counts(ExprId e, int64_t code_points, int depth);
  void derive_step(Pending p, uint32_t cls);
  ExprId derive_multiple(const Expr& x, uint32_t cls);
  ExprId derive_boolean(ExprId e, uint32_t cls);

  Expr make(Op op, uint32_t a, uint32_t b, int64_t lo, int64_t hi) const;
  void describe_cat(Expr& x) const;
  void describe_members(Expr& x, std::span<const ExprId> members) const;
  void describe_repeat(Expr& x) const;
  ExprId intern(Expr x, std::span<const ExprId> members);
  bool same(const Expr& x, const Expr& y, std::span<const ExprId> members) const;
  void grow_table();
  ExprId intern_set(Op op, std::span<const ExprId> sorted);

  ClassSets sets_;
  bool few_classes_;  // so that masks modulo 64 are exact
  MultipleForms forms_;
  std::array<uint32_t, 11> numeral_classes_{};
  uint64_t numeral_mask_ = 0;
  std::vector<Expr> exprs_;
  std::vector<ExprId> pool_;      // members of unions and intersections
  std::vector<uint32_t> table_;   // open addressing, kNoExpr = free
  std::vector<ExprId> spine_;     // scratch of cat
  std::vector<Pending> pending_;  // scratch of derivative, used as a stack across its recursion
  std::vector<ExprId> terms_;     // likewise
  int64_t factor_work_ = 0;       // left to the union being built
  std::unordered_map<ExprId, ExprId> near_;  // for near_within_ code points
  int64_t near_within_ = 0;
};

// The expression of a reverse Polish program (see RegexDfa::from_program).
struct RegexSource {
  std::unique_ptr<CharPartition> partition;
  std::unique_ptr<ExprPool> pool;
  ExprId root = kEmptyExpr;
};

// False and a message when the program is malformed.
bool read_program(std::span<const int64_t> rpn, RegexSource& out, std::string* error);

}  // namespace mw
