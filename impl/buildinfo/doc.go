// Package buildinfo is the metric weir_build_info: which part of Weir a process is, and of which version. Alerts and
// dashboards know by it what is there. It starts no goroutine.
package buildinfo
