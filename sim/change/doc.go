// Package change reports the effect of a change of Weir: which figures are worse or better than those of the base, and
// which promises the change breaks.
//
// The input is a Report of two sides, base and head, whose figures were measured beside one another on one machine.
// Judge gives each figure a verdict, Rank puts the worst first, and Markdown, Page, Picture and JUnit show one and the
// same Report. WriteJSON and Read keep it, by a schema with a version. Sum is what an exit code follows.
//
// # What has one cause
//
// Markdown begins with one sentence: the worst cause, and its effect. A cause has one number in list and table. Figures
// of one subject have one cause, and so have bytes of class pool that grew by amounts alike. Ratios and broken promises
// go with them if no other cause comes into question.
//
// # How figures are judged
//
// Each figure has samples of the base, of the base once more, and of the head. The second base shows by how much a
// figure differs from itself.
//
//   - A count that was taken on all sides at the same moments is worse if the head has more than both bases in four of
//     five moments.
//   - All other counts, and bytes, are compared exactly where there are many samples. Many is ten or more on each side.
//     The medians of base and head must then differ by more than twice what the two bases differ by, and the samples by
//     p < 0.001.
//   - With fewer samples the median of the head must lie beyond every sample of the base, for bytes by one per cent
//     more.
//   - Memory is judged as bytes are, with five per cent instead of one.
//   - A scenario is run again, up to three times, if a figure of it seems to be worse. One run is one sample.
//   - Earlier runs of a base against itself (Learn) give each figure a band. Bytes and memory must differ by more than
//     their band.
//   - Times are judged by benchmath. Each of three rounds or more needs ten samples on each side. In every round base
//     and head must differ by p < 0.001, and their medians by more than one and a half times what the base differs from
//     itself. A time with fewer samples is not judged.
//   - Times that were measured at the same moment on all sides are divided by the base's time of that moment. What else
//     the machine did at that moment then falls out.
//
// A trailer "Perf-OK: reason" in the message of a commit accepts what is worse. It accepts no broken promise.
//
// The package is pure: it runs nothing, reads no clock, and starts no goroutine.
package change
