package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	testingclock "k8s.io/utils/clock/testing"
)

// does tells this test's own binary what to do as a program that prints a credential; runs names a file to which it
// adds a line each time.
const does, runs, life = "WEIR_TEST_PLUGIN", "WEIR_TEST_PLUGIN_RUNS", "WEIR_TEST_PLUGIN_LIFE"

func TestMain(m *testing.M) {
	if what := os.Getenv(does); what != "" {
		plugin(what)
		return
	}
	goleak.VerifyTestMain(m)
}

func plugin(what string) {
	n := 0
	if path := os.Getenv(runs); path != "" {
		text, _ := os.ReadFile(path)
		n = len(text) + 1
		_ = os.WriteFile(path, append(text, '.'), 0o600)
	}
	if !strings.Contains(os.Getenv("KUBERNETES_EXEC_INFO"), `"interactive":false`) {
		fmt.Fprintln(os.Stderr, "KUBERNETES_EXEC_INFO says nothing of a terminal")
		os.Exit(1)
	}
	const form = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{%s}}`
	switch what {
	case "token":
		at := ""
		if d, err := time.ParseDuration(os.Getenv(life)); err == nil {
			at = fmt.Sprintf(`,"expirationTimestamp":%q`, start.Add(time.Duration(n)*d).Format(time.RFC3339))
		}
		fmt.Printf(form, fmt.Sprintf(`"token":"token-%d"%s`, n, at))
	case "hangs":
		fmt.Fprintln(os.Stderr, "asking")
		time.Sleep(time.Hour)
	case "fails":
		fmt.Fprintln(os.Stderr, "a long story\nno identity on this machine")
		os.Exit(3)
	case "nonsense":
		fmt.Print("token: secret-thing")
	case "much":
		fmt.Print(strings.Repeat("secret-thing", maxAnswer/8))
	case "other":
		fmt.Print(
			`{"apiVersion":"client.authentication.k8s.io/v1alpha1","kind":"ExecCredential","status":{"token":"secret-thing"}}`)
	case "empty":
		fmt.Printf(form, "")
	case "certificate":
		fmt.Printf(form, `"clientCertificateData":"secret-thing"`)
	case "lines":
		fmt.Printf(form, `"token":"secret-thing\nX-Other: y"`)
	}
}

var start = time.Unix(1_800_000_000, 0)

// executes is a user whose program does something.
func executes(t *testing.T, what string, env ...string) (user *User, ran func() int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "runs")
	e := &Exec{Command: self, APIVersion: versions[0], Env: []Env{{Name: does, Value: what}, {Name: runs, Value: file}}}
	for i := 0; i < len(env); i += 2 {
		e.Env = append(e.Env, Env{Name: env[i], Value: env[i+1]})
	}
	return &User{Exec: e}, func() int {
		text, _ := os.ReadFile(file)
		return len(text)
	}
}

// TestRenews: a program runs once for all who ask, again when its credential has ended, and again when the cloud
// refuses it.
func TestRenews(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	user, ran := executes(t, "token", life, "1m")
	s := New(Config{User: user, Clock: clock})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if got, err := s.Token(t.Context()); got != "token-1" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := ran(); n != 1 {
		t.Errorf("it ran %d times for ten", n)
	}
	for n, step := range []struct {
		later   time.Duration
		refused string
	}{{59 * time.Second, ""}, {time.Second, ""}, {30 * time.Second, "token-1"}, {0, "token-2"}, {0, "token-3"}} {
		clock.SetTime(clock.Now().Add(step.later))
		s.Refused(step.refused)
		want := []string{"token-1", "token-2", "token-2", "token-3", "token-3"}[n]
		if got, err := s.Token(t.Context()); got != want || err != nil {
			t.Errorf("step %d: %q, %v: want %s", n, got, err, want)
		}
	}
}

// TestFailures: what goes wrong with a program is one line, which holds nothing that it printed; the program rests, and
// is tried again.
func TestFailures(t *testing.T) {
	for what, want := range map[string]string{
		"hangs": "no answer within 2s: it was killed: asking", "fails": "exit status 3: no identity on this machine",
		"nonsense": "it prints no JSON of an ExecCredential", "much": "it prints more than 1048576 bytes",
		"other": `it prints a "ExecCredential" of "client.authentication.k8s.io/v1alpha1": want an ExecCredential of ` +
			`client.authentication.k8s.io/v1`,
		"empty": "status.token: it holds no token", "certificate": "only tokens of a program are taken",
		"lines": "status.token: its token has characters that no token has",
	} {
		t.Run(what, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(start)
			user, ran := executes(t, what)
			timeout := 2 * time.Second // for the program to come as far as its word
			if what != "hangs" {
				timeout = time.Minute
			}
			s := New(Config{User: user, Timeout: timeout, Clock: clock})
			for range 3 {
				_, err := s.Token(t.Context())
				if err == nil || !strings.Contains(err.Error(), want) ||
					!strings.HasPrefix(err.Error(), "exec "+user.Exec.Command) || strings.Contains(err.Error(), "secret-thing") ||
					strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v: want %s", err, want)
				}
			}
			if n := ran(); n != 1 || s.Counts() {
				t.Errorf("it ran %d times without a rest, counts %t", n, s.Counts())
			}
			clock.SetTime(start.Add(restFirst))
			user.Exec.Env[0].Value = "token"
			if got, err := s.Token(t.Context()); got != "token-2" || err != nil || !s.Counts() {
				t.Errorf("after a rest: %q, %v", got, err)
			}
		})
	}
	missing := &User{
		Exec: &Exec{Command: "/nowhere/aws-iam", APIVersion: versions[1], InstallHint: "get it from\nsomewhere"},
	}
	if _, err := New(Config{User: missing}).Token(t.Context()); err == nil ||
		err.Error() != "exec /nowhere/aws-iam: there is no such program: get it from" {
		t.Error(err)
	}
	user, _ := executes(t, "token", life, "-1m")
	if _, err := New(Config{User: user, Clock: testingclock.NewFakePassiveClock(start)}).Token(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "its credential has ended") {
		t.Error(err)
	}
}

// TestWaiting: who waits for a program that hangs waits no longer than he wants.
func TestWaiting(t *testing.T) {
	user, _ := executes(t, "hangs")
	s := New(Config{User: user, Timeout: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "it was killed") {
		t.Error(err)
	}
}

// TestFile: a file is read again, and at once when the cloud refuses its token; while it is gone its last token goes on
// until the cloud refuses that.
func TestFile(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	path := filepath.Join(t.TempDir(), "token")
	s := New(Config{User: &User{TokenFile: path}, Clock: clock})
	wants := func(want, why string) {
		t.Helper()
		got, err := s.Token(t.Context())
		if got != want || (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Fatalf("%q, %v: want %q, %s", got, err, want, why)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants("", "no such file")
	write("one\n")
	clock.SetTime(clock.Now().Add(restFirst))
	wants("one", "")
	write("two\n")
	wants("one", "")
	s.Refused("one")
	wants("two", "")
	write("three\n")
	clock.SetTime(clock.Now().Add(readAgain))
	wants("three", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(readAgain))
	wants("three", "")
	s.Refused("three")
	wants("", "no such file")
	clock.SetTime(clock.Now().Add(restMost))
	wants("", "no such file")
	write("four\n")
	clock.SetTime(clock.Now().Add(restMost))
	wants("four", "")
}

// TestUsers: what a kubeconfig may have, and what is refused before anything runs.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	for user, want := range map[string]string{
		`{token: abc}`: "", `{tokenFile: t}`: "",
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/x, interactiveMode: Never}}`: "",
		`{}`:                         "no token, tokenFile or exec",
		`{username: a, password: b}`: "a password or an auth-provider",
		`{token: abc, as: root}`:     "impersonates another",
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}}`:      "wants a terminal",
		`{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x, interactiveMode: Never}}`: "exec.apiVersion",
		`{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}`:                   "exec.command",
	} {
		path := filepath.Join(dir, "kubeconfig")
		text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: 'https://x'}}]\n" +
			"contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: " + user + "}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var u *User
		k, err := Load(path)
		if err == nil {
			u, err = k.User()
		}
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: want %s", user, err, want)
			}
			continue
		}
		if got := u.Token + u.TokenFile; want != "" || u.Exec == nil && got != "abc" && got != filepath.Join(dir, "t") ||
			u.Exec != nil && u.Exec.Command != filepath.Join(dir, "bin/x") {
			t.Errorf("%s: %+v: want %s", user, u, want)
		}
	}
	path := filepath.Join(dir, "nonsense")
	if err := os.WriteFile(path, []byte("token: [secret-thing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || strings.Contains(err.Error(), "secret-thing") {
		t.Error(err)
	}
}

// TestLocal: a local credential is of its node, at anyone who trusts its authority.
func TestLocal(t *testing.T) {
	authority, pair, err := NewLocal("edge-1", start)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := NewLocal("edge-1", start)
	if err != nil {
		t.Fatal(err)
	}
	at := start.Add(time.Hour)
	if err := CheckLocal(authority, pair, "edge-1", at); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another authority": CheckLocal(other, pair, "edge-1", at), "another node": CheckLocal(authority, pair, "edge-2", at),
		"nothing":       CheckLocal(authority, nil, "edge-1", at),
		"after its end": CheckLocal(authority, pair, "edge-1", start.Add(2*localLife)),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
