// Package specs runs the scenarios of scenarios/ as specs of ginkgo, with labels and JUnit. The files stay the one source: a spec is a file, its labels follow from what stands
// in it, and it passes if the file's expectations hold.
//
//	smoke   those of make quick
//	fault   something breaks in it
//	slow    it takes more than some minutes: what is below scenarios/eviction, autonomy and nightly, and pools of twenty nodes and more
//	kind    the runtime of kind clusters can run it too; WEIR_SPECS_RUNTIME=kind does
//
// The package has tests only.
package specs
