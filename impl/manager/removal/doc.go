// Package removal takes Weir off a cluster: it tells whether that may be done, and then removes what weir-manager made
// there while it ran. `helm uninstall` runs it as a Job before and after, by the flags --may-be-uninstalled and
// --remove-what-it-made of weir-manager. It never removes what came with the manifests, and no NodePool. It starts no
// goroutine.
package removal
