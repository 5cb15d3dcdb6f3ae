// Package removal uninstalls Weir from a cluster. First it reports whether that is safe, then it removes the objects
// that weir-manager made while it ran. `helm uninstall` runs it as a Job before and after, by the flags
// --may-be-uninstalled and --remove-what-it-made of weir-manager. It never removes the objects of the chart, and no
// NodePool. It starts no goroutine.
package removal
