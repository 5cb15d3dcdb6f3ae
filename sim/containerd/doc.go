// Package containerd holds impl/images against containerd's own code: its resolver and fetcher pull through mirrors
// into its content stores, which are those that the mirrors read. It is a nested module, because containerd's
// requirements would raise those of the product.
//
//	registry  of one image, with a rate, which counts what it serves
//	node      containerd's store and resolver, and the mirror beside them
//	pool      nodes, and the desk of their coordinator
//
// The package has no code of its own. Its servers end with the test that started them.
package containerd
