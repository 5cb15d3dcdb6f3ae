// Package commandline has the command lines of Weir's six programs as scripts that a person can read. A script types a
// command and says what the program answers: what it prints, its exit code, and the whole text of an error. So a file
// of testdata/script is the manual of a program, and the test of it.
//
// testdata/script/weir-hub.txtar is about weir-hub, kubectl-weir-pki.txtar about kubectl weir pki, and so on. A script
// is one of testscript (github.com/rogpeppe/go-internal/testscript), with two commands more: "exits 2 weir-hub --pool"
// runs weir-hub and demands exit code 2. "says" is followed by all that it printed on standard error then. After a help
// text was changed on purpose,
//
//	go test ./sim/commandline -update
//
// writes what is printed now into the scripts, wherever one compares a whole output (cmp). Lines of says, stdout and
// stderr are changed by hand.
//
// A script needs no network, no cluster and no kube-apiserver, and starts nothing that does not end by itself. What a
// program does once its command line is understood is tested where it is done. The package has no code but this test:
// it starts no goroutine.
package commandline
