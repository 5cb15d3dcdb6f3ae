package timeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/sim/timeline"
)

// killPath asks the test binary to be the process that TestKill kills.
const killPath = "WEIR_TIMELINE_KILL_PATH"

func TestMain(m *testing.M) {
	if path := os.Getenv(killPath); path != "" {
		emitUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func start() time.Time { return time.Date(2026, 10, 5, 9, 12, 44, 0, time.UTC) }

func readAll(t *testing.T, r *timeline.Reader) []timeline.Event {
	t.Helper()
	var all []timeline.Event
	for e, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func open(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	c := clocktesting.NewFakePassiveClock(start())
	w := timeline.New(&out, c)
	numbers := map[string]float64{"bytes": 1 << 40, "ratio": math.NaN()}

	c.SetTime(start().Add(1500 * time.Millisecond))
	w.Emit(timeline.Event{
		Lane: timeline.Link, Way: "weir", Node: "edge-1", Class: "pool", Name: "bytes", Numbers: numbers,
	})
	c.SetTime(start().Add(time.Second)) // a clock set back
	w.Emit(timeline.Event{Lane: timeline.Fault, Name: "cut", Strings: map[string]string{"what": "</script>\n\"é\""}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	want := []timeline.Event{
		{
			Lane: timeline.Phase, Name: "timeline", Strings: map[string]string{
				"schema": "weir.timeline/1", "start": "2026-10-05T09:12:44Z",
			},
		},
		{
			At: 1500 * time.Millisecond, Lane: timeline.Link, Way: "weir", Node: "edge-1", Class: "pool", Name: "bytes",
			Numbers: map[string]float64{"bytes": 1 << 40}, Strings: map[string]string{"ratio": "NaN"},
		},
		{
			At: 1500 * time.Millisecond, Lane: timeline.Fault, Name: "cut",
			Strings: map[string]string{"what": "</script>\n\"é\""},
		},
	}
	if diff := cmp.Diff(want, readAll(t, timeline.NewReader(&out))); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	if len(numbers) != 2 {
		t.Error("Emit changed the map of its caller")
	}
}

func TestConcurrentWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timeline.jsonl")
	w, err := timeline.Create(path, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	const writers, events = 8, 500
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range events {
				w.Emit(timeline.Event{
					Lane: timeline.Client, Node: fmt.Sprint(i), Name: "update", Numbers: map[string]float64{"n": float64(n)},
				})
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	f := open(t, path)
	seen := map[string]int{}
	for _, e := range readAll(t, timeline.NewReader(f)) {
		if e.Name != "update" {
			continue
		}
		if got := int(e.Numbers["n"]); got != seen[e.Node] {
			t.Fatalf("writer %s: event %d came where %d was due", e.Node, got, seen[e.Node])
		}
		seen[e.Node]++
	}
	for i := range writers {
		if got := seen[fmt.Sprint(i)]; got != events {
			t.Errorf("writer %d: %d events, want %d", i, got, events)
		}
	}
}

// emitUntilKilled tells on standard output how far it came: an event that it told of must be on disk.
func emitUntilKilled(path string) {
	w, err := timeline.Create(path, clock.RealClock{})
	if err != nil {
		panic(err)
	}
	for n := 0; ; n++ {
		w.Emit(timeline.Event{Lane: timeline.Workload, Name: "write", Numbers: map[string]float64{"n": float64(n)}})
		fmt.Println(n)
	}
}

func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timeline.jsonl")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killPath+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for told < 5000 {
		if _, err := fmt.Fscanln(stdout, &told); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed

	f := open(t, path)
	events := readAll(t, timeline.NewReader(f))
	if got := len(events) - 1; got <= told {
		t.Errorf("%d events on disk, %d were told of before the kill", got, told+1)
	}
}

// smallDisk takes so many bytes, then reports that it is full until it has grown.
type smallDisk struct {
	bytes.Buffer
	space int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.space)
	d.space -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestFullDisk(t *testing.T) {
	for space := 110; space < 260; space++ {
		disk := &smallDisk{space: space}
		w := timeline.New(disk, clocktesting.NewFakePassiveClock(start()))
		emit := func(from, to int) {
			for n := from; n < to; n++ {
				w.Emit(timeline.Event{Lane: timeline.Proc, Name: "started", Numbers: map[string]float64{"n": float64(n)}})
			}
		}
		emit(0, 5)
		if err := w.Err(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes of space: Err() = %v, want no space", space, err)
		}
		before := readAll(t, timeline.NewReader(bytes.NewReader(disk.Bytes())))

		disk.space = 1 << 20
		emit(5, 8)
		if err := w.Close(); space < 250 && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes of space: Close() = %v, want what was lost", space, err)
		}
		r := timeline.NewReader(bytes.NewReader(disk.Bytes()))
		after := readAll(t, r)
		if r.Truncated() || len(after) < len(before)+3 {
			t.Fatalf("%d bytes of space: %d events, then %d of which 3 are new (cut off: %v)", space, len(before), len(after),
				r.Truncated())
		}
	}
}

func TestEmitRefuses(t *testing.T) {
	for name, e := range map[string]timeline.Event{
		"unknown lane": {Lane: "sky", Name: "x"},
		"no name":      {Lane: timeline.Proc},
		"too long": {
			Lane: timeline.Proc, Name: "x", Strings: map[string]string{"s": strings.Repeat("x", timeline.MaxLine)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := timeline.New(&out, clocktesting.NewFakePassiveClock(start()))
			w.Emit(e)
			w.Emit(timeline.Event{Lane: timeline.Proc, Name: "next"})
			if err := w.Close(); err == nil || !strings.Contains(err.Error(), "lost 1 event") {
				t.Errorf("Close() = %v, want one lost event", err)
			}
			if got := len(readAll(t, timeline.NewReader(&out))); got != 2 {
				t.Errorf("%d events, want the other 2", got)
			}
		})
	}
}

func TestEmitAfterClose(t *testing.T) {
	w := timeline.New(io.Discard, clocktesting.NewFakePassiveClock(start()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Emit(timeline.Event{Lane: timeline.Proc, Name: "late"})
	if err := w.Err(); err == nil {
		t.Error("Err() = nil after an event came too late")
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close() = %v", err)
	}
}

func TestReaderLines(t *testing.T) {
	const a, b = `{"t":1,"lane":"link","event":"a"}`, `{"t":2,"lane":"link","event":"b"}`
	for name, tc := range map[string]struct {
		in        string
		events    int
		truncated bool
		line      int // of the error; 0: none
	}{
		"empty file":               {in: ""},
		"whole":                    {in: a + "\n" + b + "\n", events: 2},
		"newline of the last lost": {in: a + "\n" + b, events: 2},
		"cut off":                  {in: a + "\n" + b[:20], events: 1, truncated: true},
		"cut off at once":          {in: a + "\n{", events: 1, truncated: true},
		"cut off, garbage":         {in: a + "\n\x89PNG", events: 1, line: 2},
		"cut off, other object":    {in: `{"kind":"List","items":[`, line: 1},
		"garbage":                  {in: a + "\nnot json\n" + b + "\n", events: 1, line: 2},
		"empty line":               {in: a + "\n\n" + b + "\n", events: 1, line: 2},
		"two in a line":            {in: a + b + "\n", line: 1},
		"broken in the middle":     {in: a + "\n" + b[:20] + "\n" + b + "\n", events: 1, line: 2},
		"unknown field":            {in: `{"t":1,"lane":"link","event":"a","colour":"red"}` + "\n", line: 1},
		"unknown lane":             {in: `{"t":1,"lane":"sky","event":"a"}` + "\n", line: 1},
		"no event name":            {in: `{"t":1,"lane":"link"}` + "\n", line: 1},
		"back in time":             {in: b + "\n" + a + "\n", events: 1, line: 2},
		"before the start":         {in: `{"t":-1,"lane":"link","event":"a"}` + "\n", line: 1},
		"another schema": {
			in: `{"t":0,"lane":"phase","event":"timeline","str":{"schema":"weir.timeline/9"}}` + "\n", line: 1,
		},
		"wrong type": {in: `{"t":"now","lane":"link","event":"a"}` + "\n", line: 1},
		"endless line": {
			in: a + "\n" + `{"t":2,"lane":"` + strings.Repeat("x", 2*timeline.MaxLine), events: 1, line: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := timeline.NewReader(strings.NewReader(tc.in))
			events := 0
			var err error
			for _, err = range r.All() {
				if err == nil {
					events++
				}
			}
			var lineErr *timeline.LineError
			line := 0
			if errors.As(err, &lineErr) {
				line = lineErr.Line
			}
			if events != tc.events || r.Truncated() != tc.truncated || line != tc.line {
				t.Errorf("%d events, cut off: %v, error in line %d (%v); want %d, %v, %d",
					events, r.Truncated(), line, err, tc.events, tc.truncated, tc.line)
			}
			if _, again := r.Next(); err != nil && !errors.Is(again, err) {
				t.Errorf("after the error: %v", again)
			}
		})
	}
}

// FuzzReader checks that the reader ends on any bytes, and that what it accepts is written again as it was read.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"t":0,"lane":"phase","event":"timeline","str":{"schema":"weir.timeline/1"}}` + "\n" +
		`{"t":7,"lane":"link","node":"e","event":"x","num":{"b":1e3}}` + "\n"))
	f.Add([]byte(`{"t":1,"lane":"link","event":"a"`))
	f.Add([]byte("{\"t\":1}\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := clocktesting.NewFakePassiveClock(start())
		var out bytes.Buffer
		w := timeline.New(&out, c)
		var want []timeline.Event
		for e, err := range timeline.NewReader(bytes.NewReader(data)).All() {
			if err != nil {
				break
			}
			want = append(want, e)
			c.SetTime(start().Add(e.At))
			w.Emit(e)
		}
		if err := w.Close(); err != nil {
			t.Fatalf("write what was read: %v", err)
		}
		got := readAll(t, timeline.NewReader(&out))[1:]
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}

func BenchmarkEmit(b *testing.B) {
	w, err := timeline.Create(filepath.Join(b.TempDir(), "timeline.jsonl"), clock.RealClock{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Emit(timeline.Event{
			Lane: timeline.Link, Way: "weir", Node: "edge-1", Class: "pool", Name: "bytes",
			Numbers: map[string]float64{"down": 1, "up": 2},
		})
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
