// Package change tells what a change of Weir did: which figures of it are worse or better than those of its base, and which promises it breaks.
//
// The input is a Report of two sides, base and head, whose figures were measured beside one another on one machine. Judge gives each figure a
// verdict, Rank puts the worst first, and Markdown, Page, Picture and JUnit show one and the same Report. WriteJSON and Read keep it, by a schema
// with a version. Sum is what an exit code follows.
//
// # How figures are judged
//
//   - Counts that were taken on all sides at the same moments are worse if the head has more than both bases in four of five moments.
//   - Counts and bytes are otherwise compared as they are. Of ten samples or more on each side, medians must differ by more than twice what those of the base and of the
//     base once more do, and the samples by p < 0.001. Of less, the head's median must be beyond all that the base did, and for bytes by one per cent.
//   - Memory likewise, by five per cent.
//   - A scenario of which a figure seems to be worse is run again, up to three times: one run is one sample.
//   - Bands that earlier runs taught (Learn) widen those of bytes and memory.
//   - Times are judged by benchmath: ten samples or more in each round and on each side, which must differ with p < 0.001, and their medians by more than
//     one and a half times what the base differs from itself. All rounds, three or more, must agree. Samples that were measured at the same moment on all sides count in
//     proportion to the base's, so that what else the machine did then falls out. A time of less samples is not judged.
//
// A trailer "Perf-OK: reason" in the message of a commit accepts what is worse. It accepts no broken promise.
//
// The package is pure: it runs nothing, reads no clock, and starts no goroutine.
package change
