// Package buildinfo is the metric weir_build_info. It shows which program of Weir a process runs, and in which version,
// so that alerts and dashboards can tell the programs apart. It starts no goroutine.
package buildinfo
