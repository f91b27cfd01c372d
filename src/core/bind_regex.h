// The Python face of regex automata, for bind.cpp.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <string>
#include <vector>

#include "automaton.h"
#include "bind_buffer.h"
#include "bind_gate.h"
#include "restrict.h"

namespace mw {

using RegexHandle = std::shared_ptr<Automaton>;

class PyRegex {
 public:
  PyRegex(RegexHandle automaton, std::vector<int64_t> program)
      : automaton(std::move(automaton)), program_(std::move(program)) {}

  RegexHandle over(const Vocab& vocab, Transport transport) const {
    std::string error;
    auto restricted = restrict_automaton(automaton, program_, vocab, transport, &error);
    if (!restricted) throw nb::value_error(error.c_str());
    return restricted;
  }

  const RegexHandle automaton;

 private:
  std::vector<int64_t> program_;
};

// In slices: between them signals are handled, and `check`, which may raise, is called.
inline int is_empty_within(PyRegex& self, size_t max_states, nb::object check) {
  constexpr std::chrono::milliseconds slice{20};
  EmptinessSearch search(self.automaton->dfa(), max_states);
  for (;;) {
    {
      const Gate::Pass pass;
      nb::gil_scoped_release release;
      search.run(slice);
    }
    if (search.verdict()) return *search.verdict();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!check.is_none()) check();
  }
}

inline void bind_regex(nb::module_& m) {
  nb::class_<PyRegex>(m, "Regex")
      .def("__init__", [](PyRegex* self, nb::handle program) {
        const Buffer buffer(program, 8, false);
        const auto rpn = buffer.as<const int64_t>();
        std::string error;
        std::shared_ptr<RegexDfa> dfa;
        {
          const Gate::Pass pass;
          nb::gil_scoped_release release;
          dfa = RegexDfa::from_program(rpn, &error);
        }
        if (!dfa) throw nb::value_error(error.c_str());
        new (self) PyRegex(std::make_shared<Automaton>(std::move(dfa)), std::vector<int64_t>(rpn.begin(), rpn.end()));
      })
      .def("is_empty_within", &is_empty_within, nb::arg("max_states"), nb::arg("check") = nb::none())
      .def_prop_ro("is_empty", [](PyRegex& self) {
        const int v = is_empty_within(self, 1'000'000, nb::none());
        if (v < 0) throw std::overflow_error("too many states to decide emptiness");
        return v == 1;
      })
      .def("matches", [](PyRegex& self, nb::str text) {
        RegexDfa& dfa = self.automaton->dfa();
        DfaState s = dfa.start();
        const Py_ssize_t n = PyUnicode_GetLength(text.ptr());
        for (Py_ssize_t i = 0; i < n && s != 0; ++i) s = dfa.next(s, PyUnicode_ReadChar(text.ptr(), i));
        return s != 0 && dfa.accepting(s);
      })
      .def_prop_ro("min_length", [](PyRegex& self) { return self.automaton->dfa().min_length(self.automaton->dfa().start()); })
      .def_prop_ro("max_length", [](PyRegex& self) { return self.automaton->dfa().max_length(self.automaton->dfa().start()); })
      .def("count", [](PyRegex& self, uint64_t most) {
        const Gate::Pass pass;
        nb::gil_scoped_release release;
        StringCounts& counts = self.automaton->counts();
        const DfaState start = self.automaton->dfa().start();
        uint64_t low = 0, high = most;  // the count lies between, or is more than `most`
        while (low < high) {
          const uint64_t middle = low + (high - low) / 2;
          if (counts.exceeds(start, middle)) low = middle + 1;
          else high = middle;
        }
        return low;
      }, nb::arg("most"))
      .def("strings", [](PyRegex& self, size_t most) {
        std::vector<std::string> found;
        {
          const Gate::Pass pass;
          nb::gil_scoped_release release;
          found = self.automaton->counts().shortest(self.automaton->dfa().start(), most);
        }
        nb::list out;
        for (const std::string& text : found) out.append(nb::str(text.data(), text.size()));
        return out;
      }, nb::arg("most"))
      .def_prop_ro("state_count", [](PyRegex& self) { return self.automaton->dfa().state_count(); });
}

}  // namespace mw
