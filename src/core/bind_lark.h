// The Python face of Lark grammars, for bind.cpp.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "bind_buffer.h"
#include "bind_gate.h"
#include "lark/source.h"
#include "machines/lark.h"
#include "request.h"

namespace mw {

class PyLark {
 public:
  explicit PyLark(std::shared_ptr<const lark::Source> source) : source_(std::move(source)) {}

  // The grammar over a vocabulary; one serves all that have every byte.
  std::shared_ptr<lark::Grammar> over(const Vocab* vocab) {
    if (vocab != nullptr && !vocab->is_byte_complete()) {
      const bool closed = vocab->is_character_closed();
      static const lark::CodeRanges none;
      auto made = std::make_shared<lark::Grammar>(source_, closed ? vocab->lacking() : none, closed ? nullptr : &vocab->irreducible(), watch_);
      made->settle();
      return made;
    }
    const std::scoped_lock lock(mutex_);
    if (!complete_) {
      auto made = std::make_shared<lark::Grammar>(source_, lark::CodeRanges{}, nullptr, watch_);
      made->settle();
      complete_ = std::move(made);
    }
    return complete_;
  }
  // Makes the searches of a compile that is no longer wanted throw.
  void stop() { watch_->stop.store(true); }
  // Before them: after so much time they throw too.
  void set_seconds(double seconds) {
    using Clock = std::chrono::steady_clock;
    watch_->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8)));
  }

  bool indents() const { return source_->indents.on; }
  // What survey() said when the grammar was compiled first; -1: that is not known.
  int known_verdict() const { return !source_->survey.known ? -1 : source_->survey.rest_byte >= 0 ? 1 : 0; }

 private:
  std::shared_ptr<const lark::Source> source_;
  std::mutex mutex_;
  std::shared_ptr<lark::Grammar> complete_;
  std::shared_ptr<lark::Watch> watch_ = std::make_shared<lark::Watch>();
};

inline std::unique_ptr<Machine> lark_machine(PyLark& self, const Vocab& vocab) {
  if (self.indents() && !vocab.is_byte_complete() && !vocab.is_character_closed())
    throw nb::value_error("indentation needs a vocabulary that has every byte");
  const Gate::Pass pass;
  nb::gil_scoped_release release;
  return std::make_unique<LarkMachine>(self.over(&vocab), !vocab.is_byte_complete() && !vocab.is_character_closed());
}

// The numbers of the terminals that may come next, or go on, at a matcher's place.
inline std::vector<uint32_t> expected_terminals(Request& r, ConfigId config) {
  std::vector<uint32_t> out;
  for (const Item& item : r.config(config).items)
    if (const auto* m = dynamic_cast<const LarkMachine*>(&r.machine(item.machine))) m->expected(r, item.state, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The states of the parser at a matcher's place.
inline std::vector<uint32_t> parser_states(Request& r, ConfigId config) {
  std::vector<uint32_t> out;
  for (const Item& item : r.config(config).items)
    if (const auto* m = dynamic_cast<const LarkMachine*>(&r.machine(item.machine))) m->parser_states(r, item.state, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

inline void bind_lark(nb::module_& m) {
  nb::class_<PyLark>(m, "LarkGrammar")
      .def("__init__", [](PyLark* self, nb::handle words) {
        const Buffer buffer(words, 4, false);
        std::string error;
        auto source = lark::read_source(buffer.as<const int32_t>(), &error);
        if (!source) throw nb::value_error(error.c_str());
        new (self) PyLark(std::move(source));
      })
      .def("survey", [](PyLark& self) {
        const Gate::Pass pass;
        nb::gil_scoped_release release;
        if (const auto known = self.known_verdict(); known >= 0) return known;
        const auto grammar = self.over(nullptr);
        if (self.indents() && !grammar->is_loose()) return -2;
        if (grammar->is_empty()) return -1;
        return grammar->is_loose() ? 1 : 0;
      })
      .def("set_seconds", &PyLark::set_seconds)
      .def("stop", &PyLark::stop)
      .def("counts", [](PyLark& self) {
        const auto grammar = self.over(nullptr);
        return nb::make_tuple(grammar->exact().entry_count(), grammar->exact().done(), grammar->lexer().guards_count(), grammar->lexer().state_count());
      })
      .def("survey_words", [](PyLark& self) {
        const Gate::Pass pass;
        nb::gil_scoped_release release;
        return lark::write_survey(self.over(nullptr)->survey());
      });
}

}  // namespace mw
