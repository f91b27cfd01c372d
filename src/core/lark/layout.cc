#include "layout.h"

#include <algorithm>

namespace mw::lark {

// As lark's Indenter does it: a wider line opens a block, a narrower one closes all that are wider and must then fit.
StackSet Layouts::end_line(const Indents& x, Stacks& stacks, StackSet s, Layout& l) {
  if (l.column < 0) return kNoStack;
  const auto column = static_cast<uint32_t>(l.column);
  s = stacks.feed(s, x.newline);
  if (s == kNoStack) return s;
  if (column > top(l.columns)) {
    l.columns = with(l.columns, column);
    return stacks.feed(s, x.indent);
  }
  while (column < top(l.columns)) {
    l.columns = below(l.columns);
    s = stacks.feed(s, x.dedent);
    if (s == kNoStack) return s;
  }
  return column == top(l.columns) ? s : kNoStack;
}

StackSet Layouts::end(const Indents& x, Stacks& stacks, StackSet s, Type t, LayoutId& layout) {
  if (!x.on) return stacks.feed(s, t);
  Layout l = layouts_[layout];
  if (t == x.newline) {
    if (l.brackets == 0) s = end_line(x, stacks, s, l);
  } else {
    s = stacks.feed(s, t);
    if (std::find(x.open.begin(), x.open.end(), t) != x.open.end()) ++l.brackets;
    else if (std::find(x.close.begin(), x.close.end(), t) != x.close.end()) {
      if (l.brackets == 0) return kNoStack;
      --l.brackets;
    }
  }
  l.column = -1;
  layout = intern(l);
  return s;
}

bool Layouts::complete(const Indents& x, Stacks& stacks, StackSet s, LayoutId layout) const {
  if (x.on)
    for (uint32_t i = depth(layouts_[layout].columns); i > 0 && s != kNoStack; --i) s = stacks.feed(s, x.dedent);
  return s != kNoStack && stacks.complete(s);
}

}  // namespace mw::lark
