// The Python face of matchers, alone and in batches, for bind.cpp.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "batch.h"
#include "bind_buffer.h"
#include "bind_gate.h"
#include "bind_lark.h"
#include "matcher.h"

namespace mw {

using namespace nb::literals;

[[noreturn]] inline void fail(const char* type, const std::string& message) {
  nb::object error = nb::module_::import_("maskwright.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

struct PyProgram {
  std::shared_ptr<Program> program;
  nb::object lower;
  std::recursive_mutex lowering;
  bool wide_unique = false;  // some values that must differ are not plain ASCII
};

inline void lower_nodes(PyProgram& p, const std::vector<NodeId>& needs) {
  const auto lock = lock_politely(p.lowering);
  for (NodeId n : needs) {
    if (p.program->is_defined(n)) continue;
    if (p.lower.is_none()) throw std::runtime_error("a node was never defined");
    p.lower(nb::cast(&p, nb::rv_policy::reference), n);
    if (!p.program->is_defined(n)) throw std::runtime_error("lowering left a node undefined");
  }
}

class PyMatcher {
 public:
  PyMatcher(nb::object program, Matcher matcher)
      : owner_(std::move(program)), program_(nb::cast<PyProgram*>(owner_)), matcher_(std::move(matcher)) {}

  // Keeps other threads off a matcher: they get an error instead of each other's tokens.
  class Claim {
   public:
    explicit Claim(PyMatcher& m) : m_(m) {
      if (m.busy_) fail("MaskwrightError", "a Matcher is used by two threads at once: give each thread its own fork()");
      m.busy_ = true;
    }
    ~Claim() { m_.busy_ = false; }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    PyMatcher& m_;
  };

  // Exclusive use of this matcher, and of its session, for one call.
  class Use {
   public:
    explicit Use(PyMatcher& m) : claim_(m), lock_(lock_politely(m.matcher_.session().mutex)) {}
    void unlock() { lock_.unlock(); }

   private:
    Gate::Pass pass_;
    Claim claim_;
    std::unique_lock<std::mutex> lock_;
  };

  // Repeats a step until all nodes that it reaches are defined.
  template <class Step>
  bool complete(Step step) {
    for (;;) {
      const auto verdict = step();
      if (verdict != Matcher::Verdict::Needs) return verdict == Matcher::Verdict::Yes;
      lower_nodes(*program_, std::vector<NodeId>(matcher_.request().needs()));
    }
  }
  void prepare() {
    if (matcher_.config() == Request::kNoConfig) complete([&] { return matcher_.prepare(); });
  }

  size_t words() const { return words_for(vocab().size()); }
  Vocab& vocab() const { return program_->program->vocab(); }

  void fill_words(std::span<uint32_t> row, uint32_t max_tokens) {
    if (max_tokens == Matcher::kNoBudget && matcher_.fill(row, max_tokens, true) == Matcher::Verdict::Yes) return;
    complete([&] {
      nb::gil_scoped_release release;
      return matcher_.fill(row, max_tokens, false);
    });
  }

  bool accept_id(int64_t token) {
    if (token < 0 || static_cast<uint64_t>(token) >= vocab().size()) return false;
    return complete([&] { return matcher_.accept(static_cast<TokenId>(token)); });
  }

  static int64_t as_token(nb::handle h) {
    if (!PyLong_Check(h.ptr()) || PyBool_Check(h.ptr())) {
      nb::object index = nb::steal(PyBool_Check(h.ptr()) ? nullptr : PyNumber_Index(h.ptr()));
      if (!index.is_valid()) {
        PyErr_Clear();
        throw nb::type_error("a token is an int");
      }
      return as_token(index);
    }
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(h.ptr(), &overflow);
    return overflow != 0 ? -1 : v;
  }

  static uint32_t as_budget(nb::handle h) {
    if (h.is_none()) return Matcher::kNoBudget;
    const int64_t n = as_token(h);
    if (n < 0) throw nb::value_error("max_tokens is negative");
    return static_cast<uint32_t>(std::min<int64_t>(n, kNoCost));
  }

  // --- Python methods
  void fill_mask(nb::handle row, nb::handle max_tokens) {
    const uint32_t budget = as_budget(max_tokens);
    const Buffer buffer(row, 4, true);
    const auto out = buffer.as<uint32_t>();
    if (out.size() < words())
      throw nb::value_error(("a mask row has at least " + std::to_string(words()) + " words of 32 bits").c_str());
    const Use use(*this);
    fill_words(out, budget);
  }
  bool accept(nb::handle token) {
    const int64_t t = as_token(token);
    const Use use(*this);
    return accept_id(t);
  }
  int64_t accept_tokens(nb::handle tokens) {
    std::vector<int64_t> ids;
    for (nb::handle h : tokens) ids.push_back(as_token(h));
    const Use use(*this);
    int64_t n = 0;
    for (int64_t t : ids) {
      if (!accept_id(t)) break;
      ++n;
    }
    return n;
  }
  bool accept_text(nb::handle text) {
    std::string bytes;
    if (PyUnicode_Check(text.ptr())) {
      nb::object encoded = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "strict"));
      if (!encoded.is_valid()) {
        PyErr_Clear();
        return false;  // a lone surrogate has no UTF-8
      }
      const auto b = nb::borrow<nb::bytes>(encoded);
      bytes.assign(b.c_str(), b.size());
    } else if (PyBytes_Check(text.ptr())) {
      const auto b = nb::borrow<nb::bytes>(text);
      bytes.assign(b.c_str(), b.size());
    } else {
      throw nb::type_error("text is a str or bytes");
    }
    const Use use(*this);
    return complete([&] { return matcher_.accept_bytes(bytes); });
  }
  int64_t count_accepted(nb::handle tokens) {
    std::vector<int64_t> ids;
    for (nb::handle h : tokens) ids.push_back(as_token(h));
    const Use use(*this);
    const Matcher before = matcher_;
    int64_t n = 0;
    for (int64_t t : ids) {
      if (!accept_id(t)) break;
      ++n;
    }
    matcher_ = before;
    return n;
  }
  void rollback(nb::handle count) {
    const int64_t n = as_token(count);
    const Use use(*this);
    if (n < 0 || n > matcher_.num_tokens())
      throw nb::value_error(("cannot roll back " + std::to_string(n) + " tokens of " +
                             std::to_string(matcher_.num_tokens())).c_str());
    matcher_.rollback(static_cast<uint32_t>(n));
  }
  nb::object fork() {
    const Use use(*this);
    prepare();
    return nb::cast(new PyMatcher(owner_, matcher_.fork()), nb::rv_policy::take_ownership);
  }
  void reset() {
    Use use(*this);
    const auto session = matcher_.shared_session();  // its lock is held until `use` ends
    matcher_.reset();
    use.unlock();
  }
  bool is_accepting() {
    const Use use(*this);
    prepare();
    return matcher_.is_accepting();
  }
  bool is_finished() {
    const Use use(*this);
    return matcher_.is_finished();
  }
  uint32_t num_tokens() {
    const Use use(*this);
    return matcher_.num_tokens();
  }
  std::vector<uint32_t> allowed_tokens(nb::handle max_tokens) {
    const uint32_t budget = as_budget(max_tokens);
    const Use use(*this);
    return allowed(budget);
  }
  std::vector<uint32_t> forced_tokens() {
    const Use use(*this);
    prepare();
    const Matcher before = matcher_;
    std::vector<uint32_t> out;
    while (out.size() < kMaxForced && !matcher_.is_accepting() && !matcher_.is_finished()) {
      const auto ids = allowed(Matcher::kNoBudget);
      if (ids.size() != 1) break;
      accept_id(ids[0]);
      out.push_back(ids[0]);
    }
    matcher_ = before;
    return out;
  }
  int64_t min_tokens_to_accept() {
    const Use use(*this);
    prepare();
    uint32_t n = 0;
    complete([&] {
      nb::gil_scoped_release release;
      return matcher_.cost(n);
    });
    if (n >= kNoCost) fail("LimitError", "the number of tokens to the end is past what can be counted");
    return n;
  }

  std::vector<uint32_t> expected_terminals() {
    const Use use(*this);
    prepare();
    return mw::expected_terminals(matcher_.request(), matcher_.config());
  }

  std::vector<uint32_t> parser_states() {
    const Use use(*this);
    prepare();
    return mw::parser_states(matcher_.request(), matcher_.config());
  }

  Matcher& core() { return matcher_; }
  PyProgram& program() { return *program_; }

 private:
  static constexpr size_t kMaxForced = 4096;

  std::vector<uint32_t> allowed(uint32_t budget) {
    std::vector<uint32_t> row(words()), out;
    fill_words(row, budget);
    for (size_t w = 0; w < row.size(); ++w)
      for (uint32_t bits = row[w]; bits != 0; bits &= bits - 1)
        out.push_back(static_cast<uint32_t>(32 * w) + static_cast<uint32_t>(__builtin_ctz(bits)));
    return out;
  }

  nb::object owner_;
  PyProgram* program_;
  Matcher matcher_;
  bool busy_ = false;  // read and written with the GIL held
};

// ---------------------------------------------------------------- batches

struct Row {
  PyMatcher* matcher;  // nullptr: no constraint
  std::span<uint32_t> words;
  uint32_t max_tokens;
  bool done;
};

inline void fill_rows(std::vector<Row>& rows) {
  const Gate::Pass pass;
  std::set<PyMatcher*> matchers;
  for (const Row& row : rows) matchers.insert(row.matcher);
  std::list<PyMatcher::Claim> claims;
  for (PyMatcher* m : matchers) claims.emplace_back(*m);
  for (;;) {
    {
      nb::gil_scoped_release release;
      parallel_for(rows.size(), [&](size_t i) {
        Row& row = rows[i];
        if (row.done) return;
        const std::scoped_lock lock(row.matcher->core().session().mutex);
        row.done = row.matcher->core().fill(row.words, row.max_tokens, false) != Matcher::Verdict::Needs;
      });
    }
    bool all = true;
    for (Row& row : rows) {
      if (row.done) continue;
      all = false;
      std::vector<NodeId> needs;
      {
        const auto lock = lock_politely(row.matcher->core().session().mutex);
        needs = row.matcher->core().request().needs();
      }
      lower_nodes(row.matcher->program(), needs);
    }
    if (all) return;
  }
}

inline void fill_batch(nb::list matchers, nb::handle bitmask, std::vector<size_t> indices, std::vector<int64_t> max_tokens) {
  const Buffer buffer(bitmask, 4, true);
  const auto all = buffer.as<uint32_t>();
  const size_t width = buffer.rows() ? all.size() / buffer.rows() : 0;
  std::vector<Row> rows;
  for (size_t i = 0; i < matchers.size(); ++i) {
    if (indices[i] >= buffer.rows()) throw nb::value_error("an index is past the rows of the bitmask");
    const auto words = all.subspan(indices[i] * width, width);
    nb::handle h = matchers[i];
    if (h.is_none()) {
      std::fill(words.begin(), words.end(), 0xffffffffu);
      continue;
    }
    auto* m = nb::cast<PyMatcher*>(h);
    if (width < m->words()) throw nb::value_error("the rows of the bitmask are narrower than the vocabulary");
    const uint32_t budget = max_tokens[i] < 0 ? Matcher::kNoBudget : static_cast<uint32_t>(std::min<int64_t>(max_tokens[i], kNoCost));
    rows.push_back({m, words, budget, false});
  }
  fill_rows(rows);
}

inline void bind_matcher(nb::module_& m) {
  nb::class_<PyMatcher>(m, "Matcher", "One position in one generation under a compiled constraint; made by CompiledGrammar.matcher().\n\nNot for two threads at once: give each its own fork().")
      .def("fill_mask", &PyMatcher::fill_mask, "row"_a, "max_tokens"_a = nb::none(),
           "Writes the mask of the tokens allowed next: bit i of word w is token 32*w+i; words beyond the vocabulary are zeroed.\n\n"
           "row: a writable buffer of int32 or uint32, at least ceil(V/32) words. max_tokens: tokens left, the EOS included; then only\n"
           "tokens after which the text can still be finished are set. Raises MaskwrightError where two threads use one matcher.")
      .def("accept", &PyMatcher::accept, "token"_a, "Takes a token. False, and nothing changed, where it is not allowed or no id; an EOS id finishes.")
      .def("accept_tokens", &PyMatcher::accept_tokens, "tokens"_a, "Takes tokens up to the first that is not allowed; returns how many were taken.")
      .def("accept_text", &PyMatcher::accept_text, "text"_a, "Takes text (str or UTF-8 bytes) as one step, whatever tokens spell it. False, and nothing changed, where it is not allowed.")
      .def("count_accepted", &PyMatcher::count_accepted, "tokens"_a, "How many of these tokens would be taken; changes nothing.")
      .def("rollback", &PyMatcher::rollback, "n"_a, "Undoes the last n steps. Raises ValueError past the start.")
      .def("fork", &PyMatcher::fork, "A matcher at the same place, independent from here on; copies nothing.")
      .def("reset", &PyMatcher::reset, "Back to the start, with nothing remembered of the request.")
      .def_prop_ro("is_accepting", &PyMatcher::is_accepting, "Whether EOS is allowed now.")
      .def_prop_ro("is_finished", &PyMatcher::is_finished, "Whether EOS was taken.")
      .def_prop_ro("num_tokens", &PyMatcher::num_tokens, "Steps taken so far, the EOS included.")
      .def("allowed_tokens", &PyMatcher::allowed_tokens, "max_tokens"_a = nb::none(), "The ids in the mask, ascending.")
      .def("expected_terminals", &PyMatcher::expected_terminals, "Of a Lark grammar: the numbers of the terminals that may begin or go on here.")
      .def("parser_states", &PyMatcher::parser_states, "Of a Lark grammar: the states of its parser here.")
      .def("forced_tokens", &PyMatcher::forced_tokens, "The tokens that must follow, as long as there is one choice and the text may not end (at most 4096).")
      .def("min_tokens_to_accept", &PyMatcher::min_tokens_to_accept,
           "Tokens needed until EOS is allowed, 0 where it is now: exact for regular constraints, an upper bound that can be kept for others.");
}

}  // namespace mw
