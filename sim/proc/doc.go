// Package proc starts child processes that never outlive the run that started them.
//
// It owns: processes in their own process groups, their log files, signals to them (stop, kill, freeze,
// thaw), what they use (memory, CPU), and one scratch directory. It knows nothing of what it runs.
//
// Two independent nets catch orphans when the runner dies without a word (kill -9, out of memory):
//
//   - the kernel kills each direct child (PR_SET_PDEATHSIG). That signal belongs to the thread that
//     forked, not to the process, so every fork of a Spawner happens on one locked thread which ends
//     only after the last child;
//   - a janitor, a few lines of sh in a session of its own, reads the current process groups from a pipe.
//     When the pipe ends it kills what is left in those groups (grandchildren, e.g. the compilers under a
//     go build) and removes the scratch directory. It does the latter in the normal case too, so that the
//     path that matters after a kill -9 runs every time.
//
// Goroutines: a Spawner has one (the forking thread), each Process one (waits for it); Spawner.Close ends
// them all. Linux only, as is the testbed.
package proc
