// Package mutant plants bugs in the code, and checks that the tests catch them.
//
// A Mutant is one small, dangerous change of one place, and the narrowest check that must catch it. The check is named
// before it is run. The list stands in list/<area>.yaml. A place is named by function and snippet, so a mutant that no
// longer fits its code is told of, and has to be ported.
//
// Nothing is edited in place. Changed copies of files stand in a temporary folder, and `go test -overlay` builds with
// them.
//
// Run builds the tests of a package once with all their mutants: a function that has some begins with a look at which
// one the process is to have. Run runs each check without any bug, then with each mutant. What is not caught so, and
// what is no function, is tried in a build of its own. A check that passes although the bug is there tells of a
// missing test. A check that hangs has caught nothing, unless a test had failed before. Everything that Run starts
// ends with it. The report is written after each mutant, so a run that was interrupted can be resumed, also at a
// later revision: a mutant that was caught is tried again when its check is made of other sources. The target
// simulate runs in the nested module that the check's package is part of.
package mutant
