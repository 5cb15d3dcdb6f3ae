package testlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRun runs real tests: one that passes, one that is skipped with a reason, one without, one that fails, and a
// package that does not compile.
func TestRun(t *testing.T) {
	module := t.TempDir()
	write(t, module, "go.mod", "module example.com/tests\n\ngo 1.24\n")
	for name, body := range map[string]string{
		"good": "func TestGood(t *testing.T) {}\nfunc TestWhy(t *testing.T) { t.Skip(\"needs a moon\") }\nfunc " +
			"TestSilent(t *testing.T) { t.SkipNow() }\n",
		"bad": "func TestBad(t *testing.T) { t.Error(\"two is not three\") }\nfunc TestFine(t *testing.T) { " +
			"t.Log(\"nobody asks\") }\n",
		"none": "func TestNone(t *testing.T) { undefined() }\n",
	} {
		if err := os.Mkdir(filepath.Join(module, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(module, name), "a_test.go", "package "+name+"\n\nimport \"testing\"\n\n"+body)
	}
	t.Chdir(module)
	logs := t.TempDir()
	var out strings.Builder
	if err := Run(t.Context(), "unit", logs, []string{"./good"}, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.HasPrefix(out.String(), "ok  \texample.com/tests/good") || strings.Contains(out.String(), "SKIP") {
		t.Errorf("a package that passes is one line: %q", &out)
	}
	out.Reset()
	if err := Run(t.Context(), "bad", logs, []string{"./..."}, &out); err == nil {
		t.Error("a test failed, and the run did not")
	}
	for _, want := range []string{
		"two is not three", "--- FAIL: TestBad", "undefined: undefined", "FAIL\texample.com/tests/bad",
		"ok  \texample.com/tests/good",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "nobody asks") {
		t.Errorf("what passed is told:\n%s", &out)
	}
	if err := os.Remove(filepath.Join(logs, "bad.json")); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	err := Summary(logs, &out)
	if err == nil || !strings.Contains(err.Error(), "1 tests were skipped without a reason") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{
		"Skipped: 2", "TestWhy: needs a moon", "TestSilent: it does not say why", "unit example.com/tests/good",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
	if err := Summary(t.TempDir(), &out); err == nil || !strings.Contains(err.Error(), "run make test first") {
		t.Errorf("an empty folder: %v", err)
	}
}
