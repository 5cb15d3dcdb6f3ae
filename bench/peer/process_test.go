package peer

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/proc"
)

// The test binary is a peer, if the environment asks for it: it serves at one address, and answers these paths.
const (
	peerEnv   = "WEIR_PEER_TEST_ADDRESS"
	answerEnv = "WEIR_PEER_TEST_ANSWER" // to a get of a Node; empty: 404
)

func TestMain(m *testing.M) {
	address := os.Getenv(peerEnv)
	if address == "" {
		os.Exit(m.Run())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/api/v1/nodes/edge-1", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" || os.Getenv(answerEnv) == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, os.Getenv(answerEnv))
	})
	panic(http.ListenAndServe(address, mux))
}

// TestReady starts peers that behave and peers that do not. The error of the latter says what to look at.
func TestReady(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const node = `{"kind": "Node", "metadata": {"name": "edge-1"}}`
	serves := func(port, answer string) string {
		return fmt.Sprintf("binary: %s\nenv: {%s: '{{.Address}}:{{.Port}}', %s: '%s'}\nserve: http://{{.Address}}:%s\n"+
			"health: http://{{.Address}}:{{.Port}}/healthz\n",
			self, peerEnv, answerEnv, answer, port)
	}
	script := func(text string) string {
		return fmt.Sprintf("binary: sh\nargs: [-c, '%s']\nserve: http://{{.Address}}:{{.Port}}\nhealth: "+
			"http://{{.Address}}:{{.Port}}/healthz\n", text)
	}
	for _, c := range []struct {
		name, profile string
		says          []string // nothing: it becomes ready
	}{
		{"as it should be", serves("{{.Port}}", node), nil},
		{
			"ends at once", script("echo no licence; exit 3"),
			[]string{"ended before it was ready", "exit status 3", "no licence", "args, env and files", "profile.yaml"},
		},
		{"ends well", script("true"), []string{"ended before it was ready", "exit status 0"}},
		{
			"answers nothing", script("exec sleep 60"), []string{
				"does not answer", "/healthz within 2s", "connection refused", "set health of", "or ready", "it says nothing",
			},
		},
		{
			"serves elsewhere", serves("1", node), []string{
				"does not answer at http://127.0.0.1:1", "connection refused", "set serve of",
			},
		},
		{"serves no API", serves("{{.Port}}", ""), []string{"does not answer", "404", "set serve of"}},
		{
			"is another one", serves("{{.Port}}", `{"kind": "Node", "metadata": {"name": "edge-2"}}`),
			[]string{"not the Node edge-1", "set serve of"},
		},
		{
			"TLS that it does not have", strings.Replace(serves("{{.Port}}", node), "serve: http:", "serve: https:", 1),
			[]string{"set serve of", "trust"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := load(t, "name: other\nready: 2s\n"+c.profile)
			if err != nil {
				t.Fatal(err)
			}
			spawner, err := proc.New()
			if err != nil {
				t.Fatal(err)
			}
			defer spawner.Close()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			m := Machine{
				Node: "edge-1", Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, CA: os.DevNull, Data: t.TempDir(),
			}
			l.Close()
			x, err := p.Start(spawner, m, t.TempDir()+"/log")
			if err != nil {
				t.Fatal(err)
			}
			err = x.Ready(t.Context(), "token")
			if (err == nil) != (len(c.says) == 0) {
				t.Fatalf("%v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v: does not say %q", err, s)
				}
			}
		})
	}
}

// TestFiles: what a profile writes is below the folder of the machine, with its values.
func TestFiles(t *testing.T) {
	p, err := load(t, plain+"args: [-c, 'cat pki/both.pem; echo; echo $WHERE', x]\nenv: {WHERE: 'on {{.Node}} with "+
		"{{range .Nodes}}{{.Node}} {{end}}'}\n"+
		"files: [{path: pki/both.pem, text: '{{read .Cert}}{{read .Key}}'}]\n")
	if err != nil {
		t.Fatal(err)
	}
	spawner, err := proc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer spawner.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"cert": "C", "key": "K"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := Machine{
		Node: "edge-1", Nodes: []Neighbour{{"edge-1", "a"}, {"edge-2", "b"}}, Cert: dir + "/cert", Key: dir + "/key",
		Data: t.TempDir(),
	}
	p.Args[1] = strings.Replace(p.Args[1], "pki", "{{.Data}}/pki", 1)
	x, err := p.Start(spawner, m, dir+"/log")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(dir + "/log")
	if want := "CK\non edge-1 with edge-1 edge-2\n"; err != nil || string(log) != want {
		t.Errorf("%q, want %q: %v", log, want, err)
	}
}
