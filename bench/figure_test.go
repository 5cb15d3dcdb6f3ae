package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/proc"
)

func TestMet(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		limit   *Limit
		met     bool
	}{
		{"below", []float64{1, 2, 3}, AtMost(2, "s"), true},
		{"the median counts", []float64{1, 2.1, 2.2}, AtMost(2, "s"), false},
		{"at least", []float64{30, 31}, AtLeast(30, "s"), true},
		{"not even that", []float64{29, 29}, AtLeast(30, "s"), false},
		{"nothing was measured", nil, AtMost(2, "s"), false},
		{"nothing, at least", nil, AtLeast(2, "s"), false},
		{"for comparison", []float64{1e9}, nil, true},
	} {
		if f := (Figure{Samples: c.samples, Limit: c.limit}); f.Met() != c.met {
			t.Errorf("%s: met is %t of %v, %s", c.name, f.Met(), c.samples, c.limit)
		}
	}
}

func TestSummary(t *testing.T) {
	s := Figure{Samples: []float64{5, 1, 3, 2, 6, 4}}.Summary()
	if s.Center != 3.5 || s.Lo != 1 || s.Hi != 6 || s.Confidence < confidence {
		t.Errorf("of six rounds: %+v", s)
	}
	s = Figure{Samples: []float64{3, 1, 2}}.Summary()
	if s.Center != 2 || s.Lo != 1 || s.Hi != 3 || s.Confidence != 0.75 {
		t.Errorf("of three rounds: %+v", s)
	}
	s = Figure{Samples: []float64{3}}.Summary()
	if s.Center != 3 || s.Lo != 3 || s.Hi != 3 {
		t.Errorf("of one round: %+v", s)
	}
}

// server answers with a list, and says that each answer took it some CPU time.
func server(t *testing.T, name string, each time.Duration) target {
	t.Helper()
	body := bytes.Repeat([]byte{1}, 1e6)
	m := &meter{each: each}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.used.Add(int64(each))
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return target{name: name, url: s.URL, trust: trusts(s), part: m}
}

func trusts(s *httptest.Server) rest.TLSClientConfig {
	return rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

type meter struct {
	each time.Duration
	used atomic.Int64
}

func (m *meter) Usage() (proc.Usage, error) {
	return proc.Usage{CPU: time.Duration(m.used.Load())}, nil
}

// TestPlanted measures servers that are too slow by a known factor as the real ones are measured, and one that is not:
// the first makes the command fail, and the report says which target, what was measured and what was wanted.
func TestPlanted(t *testing.T) {
	for _, c := range []struct {
		name   string
		ours   time.Duration // of CPU for each list
		failed bool
	}{{"slow", 8 * time.Millisecond, true}, {"fast", 5 * time.Millisecond, false}} {
		t.Run(c.name, func(t *testing.T) {
			hub, bare := server(t, "hub", c.ours), server(t, "bare server", 10*time.Millisecond)
			p := part{name: "hub", about: "planted", run: func(ctx context.Context) ([]Figure, error) {
				r := &run{Config: Config{Rounds: 2, Progress: func(string) {}}}
				got, err := r.compare(ctx, "lists", listing(2e6), hub, bare)
				if err != nil {
					return nil, err
				}
				r.ratio("planted lists", "s/GB", listCost, got[0], got[1])
				return r.figures, nil
			}}
			dir := t.TempDir()
			s := Suite{Config: Config{Progress: func(string) {}}, Out: dir, all: []part{p}}
			_, err := s.Run(t.Context())
			var missed *MissedError
			if errors.As(err, &missed) != c.failed || !c.failed && err != nil {
				t.Fatalf("the suite ends with %v", err)
			}
			summary, rerr := os.ReadFile(filepath.Join(dir, summaryFile))
			if rerr != nil {
				t.Fatal(rerr)
			}
			if strings.Contains(string(summary), "**no**") != c.failed {
				t.Errorf("the summary:\n%s", summary)
			}
			if !c.failed {
				return
			}
			if cli.ExitCode(err) != 1 {
				t.Errorf("exit code %d, want 1", cli.ExitCode(err))
			}
			for _, want := range []string{"planted lists", "0.8 ratio", "≤ 0.7", listWatch} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// TestStat keeps bench.txt readable for benchstat.
func TestStat(t *testing.T) {
	r := Report{Revision: "abc", Machine: "a machine", Parts: []Measured{{Name: "hub", Figures: []Figure{
		{Name: "lists, hub ÷ kube-apiserver at 100", Unit: "ratio", Samples: []float64{1, 2}},
		{Name: "latency, p50", Unit: "ms", Samples: []float64{3}},
	}}}}
	data, err := r.stat()
	if err != nil {
		t.Fatal(err)
	}
	in := benchfmt.NewReader(bytes.NewReader(data), statFile)
	var names []string
	for in.Scan() {
		res, ok := in.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("not a result: %v", in.Result())
		}
		if _, n := res.Name.Parts(); len(n) != 1 || res.GetConfig("revision") != "abc" {
			t.Errorf("%s has parts %s, revision %q", res.Name, n, res.GetConfig("revision"))
		}
		names = append(names, string(res.Name))
	}
	want := "Hub/lists_hub_over_kube_apiserver_at_100 Hub/lists_hub_over_kube_apiserver_at_100 Hub/latency_p50"
	if got := strings.Join(names, " "); in.Err() != nil || got != want {
		t.Errorf("%s, %v; want %s", got, in.Err(), want)
	}
}

// TestCountFrames counts frames of a watch that are cut into pieces at random places, and refuses one that is too
// large.
func TestCountFrames(t *testing.T) {
	var stream bytes.Buffer
	for i := range 5 {
		_ = binary.Write(&stream, binary.BigEndian, uint32(i*1000))
		stream.Write(make([]byte, i*1000))
	}
	var seen atomic.Int64
	if err := countFrames(&stream, &seen); !errors.Is(err, io.EOF) || seen.Load() != 5 {
		t.Errorf("%d frames, %v", seen.Load(), err)
	}
}
