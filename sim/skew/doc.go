// Package skew runs hubs, coordinators and weir-manager of a former revision beside those of this tree, as an upgrade
// that takes days does, node by node: they share one pool, follow one leader after the other, and go on with what the
// other version has kept on the disk, also when the upgrade is rolled back.
//
// The former revision is built from the repository's history, once, into the user's cache. A clone without it skips the
// tests and says so.
package skew
