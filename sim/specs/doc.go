// Package specs runs the scenarios of scenarios/ as specs of ginkgo, with labels and JUnit. The files stay the one
// source: a spec is a file, its labels follow from what stands in it, and it passes if the file's expectations hold.
//
//	smoke   those of make quick
//	fault   something breaks in it
//	slow    it takes more than some minutes: what is below scenarios/eviction, autonomy and nightly, and pools of twenty
//	        nodes and more, and those that pull images over a thin link
//	kind    the runtime of kind clusters takes it, too; WEIR_SPECS_RUNTIME=kind does
//
// make specs LABELS=smoke runs them, and so does the command of ginkgo itself. One runs after the other, also with -p.
//
//	make build assets
//	WEIR_BUILT=$PWD/bin go run github.com/onsi/ginkgo/v2/ginkgo --label-filter 'fault && !slow' --junit-report specs.xml
//	./sim/specs
//
// The package has tests only.
package specs
