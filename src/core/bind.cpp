// The Python face of the core: converts, releases the GIL, maps errors. See _core.pyi.
//
// Locks. A session (a matcher and its forks) has a mutex; it is taken with the GIL held only if it is free, otherwise the
// GIL is let go first: so a thread that holds it may always get the GIL back to lower nodes. Memo hits run with the GIL held.
// Whoever lets go of the GIL has a Gate::Pass first.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>
#include <numeric>
#include <optional>
#include <set>

#include "apply.h"
#include "batch.h"
#include "bind_buffer.h"
#include "bind_gate.h"
#include "bind_lark.h"
#include "bind_regex.h"
#include "machines/array.h"
#include "machines/choice.h"
#include "machines/joint_array.h"
#include "machines/joint_object.h"
#include "machines/key.h"
#include "machines/object.h"
#include "machines/sequence.h"
#include "machines/string.h"
#include "matcher.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using mw::Buffer;
using mw::PyRegex;

[[noreturn]] void fail(const char* type, const std::string& message) {
  nb::object error = nb::module_::import_("maskwright.errors").attr(type);
  PyErr_SetString(error.ptr(), message.c_str());
  throw nb::python_error();
}

struct PyProgram {
  std::shared_ptr<mw::Program> program;
  nb::object lower;
  std::recursive_mutex lowering;
  bool wide_unique = false;  // some values that must differ are not plain ASCII
};

void lower_nodes(PyProgram& p, const std::vector<mw::NodeId>& needs) {
  const auto lock = mw::lock_politely(p.lowering);
  for (mw::NodeId n : needs) {
    if (p.program->is_defined(n)) continue;
    if (p.lower.is_none()) throw std::runtime_error("a node was never defined");
    p.lower(nb::cast(&p, nb::rv_policy::reference), n);
    if (!p.program->is_defined(n)) throw std::runtime_error("lowering left a node undefined");
  }
}

class PyMatcher {
 public:
  PyMatcher(nb::object program, mw::Matcher matcher)
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
    explicit Use(PyMatcher& m) : claim_(m), lock_(mw::lock_politely(m.matcher_.session().mutex)) {}
    void unlock() { lock_.unlock(); }

   private:
    mw::Gate::Pass pass_;
    Claim claim_;
    std::unique_lock<std::mutex> lock_;
  };

  // Repeats a step until all nodes that it reaches are defined.
  template <class Step>
  bool complete(Step step) {
    for (;;) {
      const auto verdict = step();
      if (verdict != mw::Matcher::Verdict::Needs) return verdict == mw::Matcher::Verdict::Yes;
      lower_nodes(*program_, std::vector<mw::NodeId>(matcher_.request().needs()));
    }
  }
  void prepare() {
    if (matcher_.config() == mw::Request::kNoConfig) complete([&] { return matcher_.prepare(); });
  }

  size_t words() const { return mw::words_for(vocab().size()); }
  mw::Vocab& vocab() const { return program_->program->vocab(); }

  void fill_words(std::span<uint32_t> row, uint32_t max_tokens) {
    if (max_tokens == mw::Matcher::kNoBudget && matcher_.fill(row, max_tokens, true) == mw::Matcher::Verdict::Yes) return;
    complete([&] {
      nb::gil_scoped_release release;
      return matcher_.fill(row, max_tokens, false);
    });
  }

  bool accept_id(int64_t token) {
    if (token < 0 || static_cast<uint64_t>(token) >= vocab().size()) return false;
    return complete([&] { return matcher_.accept(static_cast<mw::TokenId>(token)); });
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
    if (h.is_none()) return mw::Matcher::kNoBudget;
    const int64_t n = as_token(h);
    if (n < 0) throw nb::value_error("max_tokens is negative");
    return static_cast<uint32_t>(std::min<int64_t>(n, mw::kNoCost));
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
    const mw::Matcher before = matcher_;
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
    const mw::Matcher before = matcher_;
    std::vector<uint32_t> out;
    while (out.size() < kMaxForced && !matcher_.is_accepting() && !matcher_.is_finished()) {
      const auto ids = allowed(mw::Matcher::kNoBudget);
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
    if (n >= mw::kNoCost) fail("LimitError", "the number of tokens to the end is past what can be counted");
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

  mw::Matcher& core() { return matcher_; }
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
  mw::Matcher matcher_;
  bool busy_ = false;  // read and written with the GIL held
};

// ---------------------------------------------------------------- batches

struct Row {
  PyMatcher* matcher;  // nullptr: no constraint
  std::span<uint32_t> words;
  uint32_t max_tokens;
  bool done;
};

void fill_rows(std::vector<Row>& rows) {
  const mw::Gate::Pass pass;
  std::set<PyMatcher*> matchers;
  for (const Row& row : rows) matchers.insert(row.matcher);
  std::list<PyMatcher::Claim> claims;
  for (PyMatcher* m : matchers) claims.emplace_back(*m);
  for (;;) {
    {
      nb::gil_scoped_release release;
      mw::parallel_for(rows.size(), [&](size_t i) {
        Row& row = rows[i];
        if (row.done) return;
        const std::scoped_lock lock(row.matcher->core().session().mutex);
        row.done = row.matcher->core().fill(row.words, row.max_tokens, false) != mw::Matcher::Verdict::Needs;
      });
    }
    bool all = true;
    for (Row& row : rows) {
      if (row.done) continue;
      all = false;
      std::vector<mw::NodeId> needs;
      {
        const auto lock = mw::lock_politely(row.matcher->core().session().mutex);
        needs = row.matcher->core().request().needs();
      }
      lower_nodes(row.matcher->program(), needs);
    }
    if (all) return;
  }
}

void fill_batch(nb::list matchers, nb::handle bitmask, std::vector<size_t> indices, std::vector<int64_t> max_tokens) {
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
    const uint32_t budget = max_tokens[i] < 0 ? mw::Matcher::kNoBudget : static_cast<uint32_t>(std::min<int64_t>(max_tokens[i], mw::kNoCost));
    rows.push_back({m, words, budget, false});
  }
  fill_rows(rows);
}

// Address of contiguous rows: `data` is a pointer, since torch tensors of 16-bit floats have no buffer protocol.
void apply_rows(uint64_t data, size_t rows, size_t width, size_t stride, size_t item_size, nb::handle bitmask, uint64_t infinity) {
  const Buffer buffer(bitmask, 4, false);
  const auto all = buffer.as<const uint32_t>();
  if (buffer.rows() != rows) throw nb::value_error("logits and bitmask differ in their number of rows");
  const size_t words = rows ? all.size() / rows : 0;
  const mw::Gate::Pass pass;
  nb::gil_scoped_release release;
  for (size_t r = 0; r < rows; ++r) {
    const auto mask = all.subspan(r * words, words);
    if (item_size == 4)
      mw::apply_mask<uint32_t>({reinterpret_cast<uint32_t*>(data) + r * stride, width}, mask, static_cast<uint32_t>(infinity));
    else if (item_size == 2)
      mw::apply_mask<uint16_t>({reinterpret_cast<uint16_t*>(data) + r * stride, width}, mask, static_cast<uint16_t>(infinity));
    else
      mw::apply_mask<uint64_t>({reinterpret_cast<uint64_t*>(data) + r * stride, width}, mask, infinity);
  }
}

// ---------------------------------------------------------------- programs

std::vector<std::string> texts_of(nb::handle list) {
  std::vector<std::string> out;
  for (nb::handle h : list) {
    const auto b = nb::cast<nb::bytes>(h);
    out.emplace_back(b.c_str(), b.size());
  }
  return out;
}

// None: items may be equal; else the arguments of mw::UniqueItems.
std::unique_ptr<const mw::UniqueItems> unique_of(PyProgram& p, nb::handle few_and_texts) {
  if (few_and_texts.is_none()) return nullptr;
  const auto both = nb::cast<nb::tuple>(few_and_texts);
  std::vector<std::vector<std::string>> few;
  for (nb::handle h : both[0]) few.push_back(texts_of(h));
  auto texts = texts_of(both[1]);
  const auto is_wide = [](const std::string& t) { return std::any_of(t.begin(), t.end(), [](char c) { return c < 0x20 || c > 0x7e; }); };
  const auto some_wide = [&](const auto& all) { return std::any_of(all.begin(), all.end(), is_wide); };
  p.wide_unique = p.wide_unique || some_wide(texts) || std::any_of(few.begin(), few.end(), some_wide);
  return std::make_unique<const mw::UniqueItems>(std::move(few), std::move(texts));
}

mw::NodeId child_of(const PyProgram& p, int64_t n, bool optional) {
  if (optional && n == -1) return mw::kNoChild;
  if (n < 0 || !p.program->is_node(static_cast<mw::NodeId>(n))) throw nb::value_error("no such node");
  return static_cast<mw::NodeId>(n);
}

std::vector<mw::NodeId> children_of(const PyProgram& p, const std::vector<int64_t>& ids, bool optional) {
  std::vector<mw::NodeId> out;
  for (int64_t n : ids) out.push_back(child_of(p, n, optional));
  return out;
}

mw::Control control_of(const PyProgram& p, bool may_close, const std::vector<int64_t>& keys, const std::vector<int64_t>& offsets, const std::vector<int64_t>& children, const std::vector<int64_t>& nexts, int64_t witness) {
  mw::Control c;
  c.may_close = may_close;
  c.keys = children_of(p, keys, false);
  c.children = children_of(p, children, false);
  c.nexts = children_of(p, nexts, false);
  const size_t n = c.children.size();
  if (c.nexts.size() != n) throw nb::value_error("children and nexts differ in length");
  const bool items = keys.empty() && (offsets.size() == 2 || (offsets.empty() && n == 0));
  if (!items && offsets.size() != keys.size() + 1) throw nb::value_error("there is an offset for each key and one more");
  if (!offsets.empty() && (offsets.front() != 0 || offsets.back() != static_cast<int64_t>(n))) throw nb::value_error("the offsets go from 0 to the number of alternatives");
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    if (offsets[i + 1] < offsets[i] || (offsets[i + 1] == offsets[i] && !items)) throw nb::value_error("an entry has no alternatives");
  for (int64_t o : offsets) c.offsets.push_back(static_cast<uint32_t>(o));
  if (may_close != (witness == -1)) throw nb::value_error("a control state has a witness if and only if it may not close");
  if (witness < -1 || witness >= static_cast<int64_t>(n)) throw nb::value_error("the witness is not an alternative");
  c.witness = static_cast<int32_t>(witness);
  return c;
}

template <class Machine>
void define(PyProgram& p, int64_t node, std::unique_ptr<Machine> machine, mw::State start) {
  const mw::NodeId n = child_of(p, node, false);
  if (p.program->is_defined(n)) throw nb::value_error("the node is defined already");
  p.program->define_machine(n, std::move(machine), start);
}

void bind_vocab(nb::module_& m) {
  nb::class_<mw::Vocab>(m, "Vocab")
      .def_prop_ro("stats", [](mw::Vocab& v) {
        const mw::BaseCache& cache = *v.bases().cache();
        nb::dict out;
        out["bases_built"] = cache.built();
        out["base_bytes"] = cache.bytes();
        out["base_evictions"] = cache.evictions();
        return out;
      }, "Counters over all constraints, by name.")
      .def("limit_bases", [](mw::Vocab& v, size_t bytes) { v.bases().cache()->set_limit(bytes); }, "bytes"_a,
           "Bytes that bases of character classes and patterns may take before they are dropped.")
      .def("__init__", [](mw::Vocab* self, nb::bytes blob, nb::handle lengths, nb::handle kinds, std::vector<int64_t> eos, nb::handle image, const std::string& key) {
        const Buffer length(lengths, 4, false), kind(kinds, 1, false);
        const auto l = length.as<const uint32_t>();
        const auto k = kind.as<const uint8_t>();
        if (l.size() != k.size() || std::accumulate(l.begin(), l.end(), uint64_t{0}) != blob.size())
          throw nb::value_error("lengths, kinds and blob disagree");
        std::optional<Buffer> kept;
        if (!image.is_none()) kept.emplace(image, 1, false);
        const auto bytes = kept ? kept->as<const char>() : std::span<const char>();
        std::vector<mw::TokenId> ids;
        for (int64_t t : eos) {
          if (t < 0 || static_cast<size_t>(t) >= k.size()) throw nb::value_error("an EOS id is out of range");
          ids.push_back(static_cast<mw::TokenId>(t));
        }
        std::vector<uint8_t> kinds_copy(k.begin(), k.end());
        std::string text(blob.c_str(), blob.size());
        const mw::Gate::Pass pass;
        nb::gil_scoped_release release;
        new (self) mw::Vocab(std::move(text), l, std::move(kinds_copy), std::move(ids), bytes, key);
      }, "blob"_a, "lengths"_a, "kinds"_a, "eos_ids"_a, "image"_a = nb::none(), "key"_a = "", nb::keep_alive<1, 6>())
      .def("to_image", [](mw::Vocab& v, const std::string& key) {
        const std::string image = v.to_image(key);
        return nb::bytes(image.data(), image.size());
      }, "key"_a)
      .def_prop_ro("is_from_image", &mw::Vocab::is_from_image)
      .def_prop_ro("size", &mw::Vocab::size)
      .def_prop_ro("is_byte_complete", &mw::Vocab::is_byte_complete)
      .def_prop_ro("lacking", [](const mw::Vocab& v) { return std::vector(v.lacking()); });
}

void bind_program(nb::module_& m) {
  nb::class_<PyProgram>(m, "Program")
      .def("__init__", [](PyProgram* self, nb::object vocab, int whitespace, nb::object lower) {
        if (whitespace < 0 || whitespace > 2) throw nb::value_error("whitespace is 0, 1 or 2");
        auto* v = nb::cast<mw::Vocab*>(vocab);
        // The program keeps the Python object, and with it the vocabulary, alive.
        std::shared_ptr<mw::Vocab> shared(v, [held = new nb::object(vocab)](mw::Vocab*) {
          nb::gil_scoped_acquire gil;
          delete held;
        });
        new (self) PyProgram{std::make_shared<mw::Program>(std::move(shared), static_cast<mw::Whitespace>(whitespace)), std::move(lower), {}, false};
      }, "vocab"_a, "whitespace"_a, "lower"_a.none())
      .def("new_node", [](PyProgram& p) { return p.program->new_node(); })
      .def_prop_ro("node_count", [](PyProgram& p) { return p.program->node_count(); })
      .def_prop_ro("stats", [](PyProgram& p) {
        const mw::Counters& c = p.program->counters();
        nb::dict out;
        out["nodes"] = p.program->node_count();
        out["masks"] = c.masks.load();
        out["memo_hits"] = c.memo_hits.load();
        out["live_nodes"] = c.live_nodes.load();
        out["dead_probes"] = c.dead_probes.load();
        out["configurations"] = c.configurations.load();
        out["memo_evictions"] = c.memo_evictions.load();
        return out;
      }, "Counters over all matchers, by name.")
      .def("limit_memo", [](PyProgram& p, size_t bytes) { p.program->set_memo_limit(bytes); }, "bytes"_a,
           "Bytes that the masks remembered in one request may take before they are dropped.")
      .def("define_choice", [](PyProgram& p, int64_t node, nb::list texts) {
        define(p, node, std::make_unique<mw::ChoiceMachine>(mw::restrict_texts(texts_of(texts), p.program->vocab(), mw::Transport::Raw), p.program->vocab()), mw::ChoiceMachine::start());
      })
      .def("define_choice_string", [](PyProgram& p, int64_t node, nb::list texts, bool any_escapes) {
        p.program->uses_json();
        auto spelled = mw::restrict_texts(texts_of(texts), p.program->vocab(), any_escapes ? mw::Transport::JsonAny : mw::Transport::JsonMinimal);
        define(p, node, std::make_unique<mw::ChoiceStringMachine>(spelled, any_escapes, p.program->vocab()), mw::ChoiceStringMachine::start());
      })
      .def("define_regex", [](PyProgram& p, int64_t node, const PyRegex& regex) {
        auto machine = std::make_unique<mw::RegexMachine>(regex.over(p.program->vocab(), mw::Transport::Raw), p.program->vocab());
        const mw::State start = machine->start();
        define(p, node, std::move(machine), start);
      })
      .def("define_lark", [](PyProgram& p, int64_t node, mw::PyLark& lark) {
        define(p, node, mw::lark_machine(lark, p.program->vocab()), mw::LarkMachine::start());
      })
      .def("define_string", [](PyProgram& p, int64_t node, int64_t min, int64_t max, bool any_escapes) {
        p.program->uses_json();
        if (min < 0 || max < -1) throw nb::value_error("a length is negative");
        constexpr int64_t most = (int64_t{1} << 39) - 1;  // what the state word counts to
        if (max > most) max = -1;  // no text is that long
        if (min > most) throw nb::value_error("minimum length too large");
        define(p, node, std::make_unique<mw::StringMachine>(static_cast<uint64_t>(min), max < 0 ? mw::StringMachine::kNoMax : static_cast<uint64_t>(max), any_escapes), mw::StringMachine::start());
      })
      .def("define_regex_string", [](PyProgram& p, int64_t node, const PyRegex& regex, bool any_escapes) {
        p.program->uses_json();
        define(p, node, std::make_unique<mw::RegexStringMachine>(regex.over(p.program->vocab(), any_escapes ? mw::Transport::JsonAny : mw::Transport::JsonMinimal), any_escapes, p.program->vocab()), mw::RegexStringMachine::start());
      })
      .def("define_object", [](PyProgram& p, int64_t node, nb::list names, const std::vector<int64_t>& children, const std::vector<bool>& required, int64_t additional, bool any_order, bool any_escapes) {
        p.program->uses_json();
        mw::ObjectSpec spec;
        spec.names = texts_of(names);
        spec.children = children_of(p, children, true);
        spec.required = required;
        spec.additional = child_of(p, additional, true);
        spec.any_order = any_order;
        spec.any_escapes = any_escapes;
        if (spec.children.size() != spec.names.size() || required.size() != spec.names.size()) throw nb::value_error("names, children and required differ in length");
        size_t bytes = 0;
        for (const std::string& name : spec.names) bytes += name.size();
        if (bytes > mw::ObjectMachine::kMaxNameBytes) throw nb::value_error("the names of an object take over 1 MB");
        mw::restrict_names(spec, p.program->vocab());
        define(p, node, std::make_unique<mw::ObjectMachine>(std::move(spec), p.program->whitespace(), p.program->vocab()), mw::ObjectMachine::start());
      })
      .def("settle_as_free", [](PyProgram& p) { return p.program->settle_as_free(); })
      .def_prop_ro("spells_unique", [](PyProgram& p) {
        return !p.program->has_unique() || p.program->vocab().is_byte_complete() || (p.program->spells_freely() && !p.wide_unique);
      })
      .def("uses_unique", [](PyProgram& p) { p.program->uses_unique(); })
      .def("define_array", [](PyProgram& p, int64_t node, const std::vector<int64_t>& prefix, int64_t items, int64_t min, int64_t max, nb::handle unique) {
        p.program->uses_json();
        if (min < 0 || max < -1) throw nb::value_error("a number of items is negative");
        constexpr int64_t most = (int64_t{1} << 50);
        if (max > most) max = -1;
        if (min > most) throw nb::value_error("minimum number of items too large");
        define(p, node, std::make_unique<mw::ArrayMachine>(children_of(p, prefix, false), child_of(p, items, true), static_cast<uint64_t>(min), max < 0 ? mw::ArrayMachine::kNoMax : static_cast<uint64_t>(max), p.program->whitespace(), unique_of(p, unique)), mw::ArrayMachine::start());
      }, "node"_a, "prefix"_a, "items"_a, "min"_a, "max"_a, "unique"_a = nb::none())
      .def("define_sequence", [](PyProgram& p, int64_t node, const std::vector<int64_t>& parts) {
        define(p, node, std::make_unique<mw::SequenceMachine>(children_of(p, parts, false)), mw::SequenceMachine::start());
      })
      .def("define_union", [](PyProgram& p, int64_t node, const std::vector<int64_t>& members) {
        const mw::NodeId n = child_of(p, node, false);
        if (p.program->is_defined(n)) throw nb::value_error("the node is defined already");
        p.program->define_union(n, children_of(p, members, false));
      })
      .def("define_control", [](PyProgram& p, int64_t node, bool may_close, const std::vector<int64_t>& keys, const std::vector<int64_t>& offsets, const std::vector<int64_t>& children, const std::vector<int64_t>& nexts, int64_t witness, uint32_t dearest) {
        const mw::NodeId n = child_of(p, node, false);
        if (p.program->is_defined(n)) throw nb::value_error("the node is defined already");
        mw::Control control = control_of(p, may_close, keys, offsets, children, nexts, witness);
        control.dearest = dearest;
        p.program->define_control(n, std::move(control));
      }, "node"_a, "may_close"_a, "keys"_a, "offsets"_a, "children"_a, "nexts"_a, "witness"_a, "dearest"_a = 0)
      .def("define_joint_object", [](PyProgram& p, int64_t node, int64_t control) {
        p.program->uses_json();
        define(p, node, std::make_unique<mw::JointObjectMachine>(child_of(p, control, false), p.program->whitespace()), mw::JointObjectMachine::start());
      }, "node"_a, "control"_a)
      .def("define_joint_array", [](PyProgram& p, int64_t node, int64_t control, nb::handle unique) {
        p.program->uses_json();
        define(p, node, std::make_unique<mw::JointArrayMachine>(child_of(p, control, false), p.program->whitespace(), unique_of(p, unique)), mw::JointArrayMachine::start());
      }, "node"_a, "control"_a, "unique"_a = nb::none())
      .def("define_key", [](PyProgram& p, int64_t node, const PyRegex& regex, bool any_escapes) {
        p.program->uses_json();
        auto over = regex.over(p.program->vocab(), any_escapes ? mw::Transport::JsonAny : mw::Transport::JsonMinimal);
        const bool restricted = over != regex.automaton;
        define(p, node, std::make_unique<mw::KeyMachine>(std::move(over), regex.automaton->serial(), any_escapes, restricted, p.program->vocab()), mw::KeyMachine::start());
      }, "node"_a, "regex"_a, "any_escapes"_a)
      .def("matcher", [](nb::object self) {
        auto* p = nb::cast<PyProgram*>(self);
        if (p->program->node_count() == 0) throw nb::value_error("a program has a root, node 0");
        return new PyMatcher(self, mw::Matcher(p->program));
      }, nb::rv_policy::take_ownership);
}

void bind_matcher(nb::module_& m) {
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

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // process-wide caches of automata outlive the module on purpose
  mw::bind_regex(m);
  mw::bind_lark(m);
  bind_vocab(m);
  bind_program(m);
  bind_matcher(m);
  mw::Gate::install();
  m.def("fill_batch", &fill_batch, "matchers"_a, "bitmask"_a, "indices"_a, "max_tokens"_a);
  m.def("apply_rows", &apply_rows, "data"_a, "rows"_a, "width"_a, "stride"_a, "item_size"_a, "bitmask"_a, "infinity"_a);
  m.def("pool_size", &mw::pool_size);
}
