// Package gobuild runs the Go toolchain for the testbed and shows its progress.
//
// A cold build of a kube-apiserver takes many minutes; whoever waits sees every few seconds how many modules were
// downloaded, how many packages compiled, and for how long already. The toolchain and the compilers under it run in
// one process group of the caller's proc.Spawner, so a run that is killed leaves none behind.
//
// Run starts one goroutine (it reads the output) that ends before Run returns.
package gobuild
