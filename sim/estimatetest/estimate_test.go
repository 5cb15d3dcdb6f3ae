package estimatetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/operator/estimate"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/cloud/cloudtest"
	"github.com/weir-edge/weir/sim/workload"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is where an operator sits.
type desk struct {
	t          *testing.T
	cloud      *cloud.Cloud
	kubeconfig string
}

// program has the one command.
func program() commands.Program {
	return commands.Program{Name: "weir", About: "estimates.", All: []*cobra.Command{estimate.Command("weir")}}
}

// types runs the command, and returns what it prints and its exit code.
func (d *desk) types(args string) (out string, code int) {
	d.t.Helper()
	var stdout bytes.Buffer
	words := append(strings.Fields("estimate "+args), "--kubeconfig="+d.kubeconfig)
	err := program().Run(d.t.Context(), words, &stdout, io.Discard)
	if code = cli.ExitCode(err); code != 0 {
		fmt.Fprintf(&stdout, "weir: %v\n", err)
	}
	return stdout.String(), code
}

// auditAll is an audit policy of a cluster that logs who does what, and no objects.
const auditAll = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// watched counts the bytes of a watch of EndpointSlices as they come, without TLS and heads.
type watched struct {
	bytes atomic.Int64
	quiet int64 // when nothing had changed
}

func (d *desk) watches(query string, zipped bool) *watched {
	d.t.Helper()
	client, err := rest.HTTPClientFor(d.cloud.RESTConfig())
	must(d.t, err)
	w := &watched{}
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet,
		d.cloud.URL()+"/apis/discovery.k8s.io/v1/endpointslices?watch=1"+query, http.NoBody)
	must(d.t, err)
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	request.Header.Set("Accept-Encoding", "identity")
	if zipped {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	answer, err := client.Do(request)
	must(d.t, err)
	if got := answer.Header.Get("Content-Encoding") == "gzip"; got != zipped || answer.StatusCode != http.StatusOK {
		d.t.Fatalf("a watch has status %d, compressed: %t, want %t", answer.StatusCode, got, zipped)
	}
	var done sync.WaitGroup
	done.Go(func() {
		part := make([]byte, 64<<10)
		for {
			n, err := answer.Body.Read(part)
			w.bytes.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	d.t.Cleanup(func() { answer.Body.Close(); done.Wait() })
	return w
}

// still waits until a watch brings nothing for a moment.
func (w *watched) still(t *testing.T) int64 {
	t.Helper()
	last, since := int64(-1), time.Now()
	testkit.Until(t, time.Minute, "a watch to be quiet", func() bool {
		if now := w.bytes.Load(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > time.Second
	})
	return last
}

// progress is standard error, which says that rates are being counted.
type progress struct {
	lines atomic.Int32
	first chan struct{}
	once  sync.Once
}

func (p *progress) Write(b []byte) (int, error) {
	p.lines.Add(int32(bytes.Count(b, []byte("\n"))))
	p.once.Do(func() { close(p.first) })
	return len(b), nil
}

// reader is a kubeconfig of a user with one ClusterRole.
func (d *desk) reader(user string, role string) string {
	d.t.Helper()
	if role != "" {
		must(d.t, d.cloud.Apply(d.t.Context(), []byte(role)))
		_, err := d.cloud.Client().RbacV1().ClusterRoleBindings().Create(d.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: nameOf(role)},
		}, metav1.CreateOptions{})
		must(d.t, err)
	}
	path, err := d.cloud.Kubeconfig(user)
	must(d.t, err)
	return path
}

func nameOf(role string) string {
	_, name, _ := strings.Cut(role, "  name: ")
	name, _, _ = strings.Cut(name, "\n")
	return name
}

// estimates runs the command with -o json.
func (d *desk) estimates(kubeconfig, args string, stderr io.Writer) (*estimate.Report, error) {
	var out bytes.Buffer
	words := append(strings.Fields("estimate -o json "+args), "--kubeconfig="+kubeconfig)
	if err := program().Run(d.t.Context(), words, &out, stderr); err != nil {
		return nil, err
	}
	var r estimate.Report
	return &r, json.Unmarshal(out.Bytes(), &r)
}

const someRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: some-rights
rules:
- apiGroups: [""]
  resources: [nodes, services]
  verbs: [list]
`

const services = 40

// TestEstimate: with the read-only rights that it asks for, weir estimate sees the changes of a real kube-apiserver as
// they are, by metrics and by the audit log. Its bytes are near those of a watch that is not compressed, and of one
// that is. With fewer rights it names what is missing and goes on.
func TestEstimate(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(policy, []byte(auditAll), 0o600))
	c, _ := cloudtest.StartWith(t, []string{"--audit-policy-file=" + policy})
	d := &desk{t: t, cloud: c}
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("harbour-%d", i+1))
		must(t, c.CreateNodes(t.Context(),
			cloud.Node{Name: names[i], Pool: "harbour", Address: fmt.Sprintf("10.0.0.%d", i+1)}))
	}
	must(t, c.CreateNodes(t.Context(), cloud.Node{Name: "alone-1", Pool: "alone", Address: "10.0.1.1"}))
	client, err := workload.NewClient(c.RESTConfig())
	must(t, err)
	w := workload.New(workload.Config{Seed: 20261006, Services: services, Endpoints: 100, Nodes: names})
	must(t, w.Fill(t.Context(), client, nil))
	full := d.watches("", false)
	zipped := d.watches("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", true)
	full.quiet, zipped.quiet = full.still(t), zipped.still(t)

	reader := d.reader("reader", estimate.Role)
	made, done := 0, atomic.Bool{}
	changes := func() {
		must(t, w.Churn(t.Context(), client, 200, 0, nil, func(c workload.Change) {
			for _, x := range c.Writes {
				if x.Resource == "endpointslices" {
					made++
				}
			}
		}))
		done.Store(true)
	}
	r := d.during(reader, changes, &made)
	var slices estimate.Resource
	for _, x := range r.Resources {
		if x.Name == "endpointslices.discovery.k8s.io" {
			slices = x
		}
	}
	sees := float64(made) * slices.Size
	stock, weir := float64(full.still(t)-full.quiet), float64(zipped.still(t)-zipped.quiet)
	near(t, "a stock client", sees, stock)
	in := estimate.Input{Sites: []estimate.Site{{Nodes: 5}}, Compresses: true}
	none := estimate.Of(in)[0].Weir
	in.Resources = []estimate.Resource{{Name: slices.Name, Size: slices.Size, Changes: float64(made), Clients: 1}}
	near(t, "the pool", estimate.Of(in)[0].Weir-none, weir)

	if len(r.Missing) != 0 || r.Role != "" || len(r.Sites) != 2 || r.Sites[0].Name != "harbour" || r.Sites[0].Nodes != 5 ||
		r.Sites[0].Verdict != estimate.Pays || r.Sites[1].Verdict != estimate.Not {
		t.Errorf("%+v", r)
	}
	audited, err := d.estimates(reader, "--audit-log "+c.AuditLog(), io.Discard)
	must(t, err)
	for _, x := range audited.Resources {
		if want := float64(services + made); x.Name == slices.Name { // each was filled by one write
			if got := x.Changes * audited.Seconds / (24 * 60 * 60); math.Abs(got-want) > 0.5 {
				t.Errorf("the audit log has %f changes of slices, want %f", got, want)
			}
		}
	}
	d.rights()
}

// during runs the command while changes are made, and holds that it saw all that were made before it ended.
func (d *desk) during(kubeconfig string, changes func(), made *int) *estimate.Report {
	d.t.Helper()
	p := &progress{first: make(chan struct{})}
	var r *estimate.Report
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, err = d.estimates(kubeconfig, "--for 10s", p)
	}()
	select {
	case <-p.first: // the metrics were read once
	case <-ended:
		d.t.Fatalf("it ended: %v", err)
	}
	changes()
	then := p.lines.Load()
	<-ended
	must(d.t, err)
	all := p.lines.Load() > then+1 // it counted for a second after them
	for _, x := range r.Resources {
		if x.Name != "endpointslices.discovery.k8s.io" {
			continue
		}
		if got := x.Changes * r.Seconds / (24 * 60 * 60); got < 1 || got > float64(*made)+0.5 ||
			all && got < float64(*made)-0.5 {
			d.t.Errorf("it saw %f changes of %d", got, *made)
		}
	}
	return r
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	off := got/want - 1
	t.Logf("%s: estimated %.0f bytes, measured %.0f: %+.1f %%", what, got, want, 100*off)
	if math.IsNaN(off) || math.Abs(off) > 0.25 {
		t.Errorf("%s: estimated %.0f bytes, measured %.0f", what, got, want)
	}
}

// rights holds that missing rights are named, and that the rest is estimated without them.
func (d *desk) rights() {
	t := d.t
	t.Helper()
	some := d.reader("some", someRights)
	r, err := d.estimates(some, "--for 1s", io.Discard)
	must(t, err)
	missing := ""
	for _, m := range r.Missing {
		missing += m.What + "; "
		if !m.Forbidden {
			t.Errorf("%s: %s", m.What, m.Why)
		}
	}
	if want := "list pods; "; !strings.Contains(missing, want) || !strings.HasSuffix(missing, "get /metrics; ") ||
		strings.Contains(missing, "list nodes") || r.Source != estimate.Managed || r.Role != estimate.Role ||
		len(r.Sites) != 2 {
		t.Errorf("missing %q, from %s, %d sites", missing, r.Source, len(r.Sites))
	}
	none := d.reader("none", "")
	d.kubeconfig = none
	if out, code := d.types("--for 0"); code != 1 || !strings.Contains(out, "nodes may not be listed") ||
		!strings.Contains(out, `User "none" cannot list resource "nodes"`) {
		t.Errorf("without rights: exit code %d:\n%s", code, out)
	}
	if out, code := d.types("--for 0 --nodes a,b"); code != 0 || !strings.Contains(out, "kind: ClusterRole") {
		t.Errorf("without rights, by names: exit code %d:\n%s", code, out)
	}
	d.kubeconfig = some
	for command, want := range map[string]string{
		"--site-label nowhere":             "a label that Nodes have",
		"--nodes harbour-1,x":              "names of Nodes",
		"--for 0 --audit-log /nonexistent": "--audit-log",
		"--for 0 --audit-log /dev/null":    "no event",
	} {
		if out, code := d.types(command); code != 2 || !strings.Contains(out, want) {
			t.Errorf("estimate %s: exit code %d:\n%s", command, code, out)
		}
	}
	if out, code := d.types("--for 0 --nodes alone-1"); code != 0 ||
		!strings.Contains(out, "does not pay: a pool of one node shares nothing") ||
		!strings.Contains(out, "Weir does not pay at any of these sites") {
		t.Errorf("one node: exit code %d:\n%s", code, out)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := program().Run(ended, []string{"estimate", "--kubeconfig=" + some}, io.Discard, io.Discard); err == nil {
		t.Error("an interrupted estimate succeeds")
	}
}
