// The Python face of the core: converts, releases the GIL, maps errors. See _core.pyi.
//
// Locks. A session (a matcher and its forks) has a mutex; it is taken with the GIL held only if it is free, otherwise the
// GIL is let go first: so a thread that holds it may always get the GIL back to lower nodes. Memo hits run with the GIL held.
// Whoever lets go of the GIL has a Gate::Pass first.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <optional>

#include "apply.h"
#include "bind_buffer.h"
#include "bind_gate.h"
#include "bind_lark.h"
#include "bind_matcher.h"
#include "bind_regex.h"
#include "machines/array.h"
#include "machines/choice.h"
#include "machines/joint_array.h"
#include "machines/joint_object.h"
#include "machines/key.h"
#include "machines/object.h"
#include "machines/sequence.h"
#include "machines/string.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using mw::Buffer;
using mw::PyMatcher;
using mw::PyProgram;
using mw::PyRegex;

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

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // process-wide caches of automata outlive the module on purpose
  mw::bind_regex(m);
  mw::bind_lark(m);
  bind_vocab(m);
  bind_program(m);
  mw::bind_matcher(m);
  mw::Gate::install();
  m.def("fill_batch", &mw::fill_batch, "matchers"_a, "bitmask"_a, "indices"_a, "max_tokens"_a);
  m.def("apply_rows", &apply_rows, "data"_a, "rows"_a, "width"_a, "stride"_a, "item_size"_a, "bitmask"_a, "infinity"_a);
  m.def("pool_size", &mw::pool_size);
}
