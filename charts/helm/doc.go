// Package helm renders the chart weir with helm's own library and compares it with what is committed. It is a module of
// its own, because helm must not be one of Weir's dependencies. `make bin/helm` builds the helm command of the same
// version out of it. It starts no goroutine.
package helm
