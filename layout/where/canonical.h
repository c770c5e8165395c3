// canonical: one form for conditions that are written in different ways. Pure functions; any thread.
#pragma once

#include "layout/where/condition.h"

namespace penstock::layout {

/// The condition that is true where this one is false, false where it is true, and else unknown.
Condition negated(Condition condition);

/// A condition that is true where this one is: what `and` and `or` join is one list, in the order of its texts and each
/// once; lists of values likewise; a list of one value is a comparison; the left one of two columns has the lesser
/// name.
Condition canonical(Condition condition);

}  // namespace penstock::layout
