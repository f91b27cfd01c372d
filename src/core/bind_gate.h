// Locks, fork() and the end of the process, for bind.cpp.
//
// A forked child has the forking thread alone. A lock of the core that another thread held would stay locked there for
// ever, over data that was being changed. So threads have a pass while they may let go of the GIL inside the core, and
// os.fork() waits until the others have given theirs back (threads may fork at any time: data loaders, subprocess).
//
// A thread that wants the GIL back while the interpreter is being torn down is ended by Python from below, which C++ code
// does not survive: the process aborts. So before that, the gate is closed: who is inside comes out, who wants in waits for
// the end of the process.
//
// The counts are kept under the GIL; waiting is by polling, since a lock here would have to survive the fork itself.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "batch.h"

namespace mw {

class Gate {
 public:
  // For the time of one call; taken and given back with the GIL held. Passes of one thread nest.
  class Pass {
   public:
    Pass() {
      while ((forking_ > 0 || closed_) && mine_ == 0 && !last_) nap();
      ++mine_;
      ++inside_;
    }
    ~Pass() {
      --mine_;
      --inside_;
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
  };

  // Makes Python's fork() (where there is one) and exit obey.
  static void install() {
    namespace nb = nanobind;
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close));
    const nb::object os = nb::module_::import_("os");
    if (!nb::hasattr(os, "register_at_fork")) return;
    nb::dict hooks;
    hooks["before"] = nb::cpp_function(&before_fork);
    hooks["after_in_parent"] = nb::cpp_function(&after_in_parent);
    hooks["after_in_child"] = nb::cpp_function(&after_in_child);
    os.attr("register_at_fork")(**hooks);
  }

 private:
  static void before_fork() {
    ++forking_;
    while (inside_ > mine_) nap();
  }
  static void after_in_parent() { --forking_; }
  static void after_in_child() {
    forking_ = 0;
    closed_ = false;
    inside_ = mine_;
    forget_pool();
  }
  static void close() {
    closed_ = last_ = true;
    while (inside_ > mine_) nap();
  }
  static void nap() {
    const nanobind::gil_scoped_release release;
    do std::this_thread::sleep_for(std::chrono::microseconds(50));
    while (closed_ && !last_);
  }

  static inline int inside_ = 0;    // passes out
  static inline int forking_ = 0;   // threads between `before_fork` and the end of their fork
  static inline std::atomic<bool> closed_ = false;
  static inline thread_local int mine_ = 0;
  static inline thread_local bool last_ = false;  // this thread ends the process
};

// Locks a mutex without holding the GIL while waiting. The caller has a pass.
template <class Mutex>
std::unique_lock<Mutex> lock_politely(Mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    nanobind::gil_scoped_release release;
    lock.lock();
  }
  return lock;
}

}  // namespace mw
