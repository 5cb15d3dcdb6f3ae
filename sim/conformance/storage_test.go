package conformance

import (
	"context"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage"
)

const judges = "k8s.io/apiserver/pkg/storage/testing"

// judged is one of Kubernetes' tests of storage: it runs against a relay, or it says why it does not apply to one.
type judged struct {
	run    func(ctx context.Context, t *testing.T, s *relayStore)
	not    string
	global bool // keys have no namespace
	// forgetful: the relay can be made to forget changes up to a version, which ends long watches.
	forgetful bool
	// consistent: a read without a version waits until the relay has reached what etcd is at. kube-apiserver promises that
	// of such reads, a relay does not (rule 3): whoever needs it asks the cloud for its version first.
	consistent bool
}

func reads(f func(context.Context, *testing.T, storage.Interface)) judged {
	return judged{run: func(ctx context.Context, t *testing.T, s *relayStore) { f(ctx, t, s) }}
}

// TestStorage runs Kubernetes' tests of storage.Interface against a relay, each with an etcd of its own. One after the
// other: some let an object live for a second, some set feature gates.
func TestStorage(t *testing.T) {
	for name, j := range suite {
		if j.run == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			j.run(context.Background(), t, newRelayStore(t, &j))
		})
	}
}

// TestSuiteIsComplete fails for each test that Kubernetes has and the table does not, and the other way round.
func TestSuiteIsComplete(t *testing.T) {
	p, err := build.Default.Import(judges, ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(p.Dir, "*_tests.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", p.Dir, err)
	}
	there := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Run") {
				there[f.Name.Name] = true
			}
		}
	}
	for name := range there {
		if _, ok := suite[name]; !ok {
			t.Errorf("%s of %s is not in the table", name, judges)
		}
	}
	for name, j := range suite {
		if !there[name] {
			t.Errorf("%s is in the table, and not in %s", name, judges)
		}
		if (j.run == nil) == (j.not == "") {
			t.Errorf("%s: want either a run or a reason", name)
		}
	}
}
