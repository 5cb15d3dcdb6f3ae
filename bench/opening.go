package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-edge/weir/impl/offline"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

const (
	openBytes  = 200e6
	openObject = 10_000
)

var openShape = store.Shape{Component: "kubelet", Resource: wearPod, Form: store.JSON, Fields: "spec.nodeName=n"}

// opened is what a process that opened a store tells.
type opened struct {
	Milliseconds float64 // from Open to the end of the first answer, a list of 30 objects
	RssAnon      float64 // then, in MB
	Error        string
}

// Store measures the durable store of a hub.
func Store(ctx context.Context, c Config) ([]Figure, error) {
	c = c.withDefaults()
	c.Progress("measuring what the store writes")
	figures, err := Wear(ctx)
	if err != nil {
		return nil, err
	}
	more, err := Opening(ctx, c.Rounds, c.Progress)
	return append(figures, more...), err
}

// Opening measures how long it takes a new process to open a store of 200 MB, with nothing of it in the page cache, and
// to answer.
func Opening(ctx context.Context, rounds int, progress func(string)) (_ []Figure, err error) {
	dir, err := os.MkdirTemp("", "weir-opening-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	progress("filling a store with 200 MB")
	if err := fillLarge(dir); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var times, memory []float64
	for range rounds {
		if err := uncache(filepath.Join(dir, "cache.db")); err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, self, Command, "--"+OpenStoreFlag, dir).Output()
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		var one opened
		if err := json.Unmarshal(out, &one); err != nil || one.Error != "" {
			return nil, fmt.Errorf("open the store: %w %s", err, one.Error)
		}
		times, memory = append(times, one.Milliseconds), append(memory, one.RssAnon)
	}
	info, err := os.Stat(filepath.Join(dir, "cache.db"))
	if err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("%.0f MB, %d objects, nothing in the page cache", float64(info.Size())/mb,
		int(openBytes)/openObject)
	return []Figure{
		{
			Name: "from start to the first answer without the cloud, 200 MB", Samples: times, Unit: "ms", Limit: openTime,
			Detail: detail,
		},
		{Name: "RssAnon then", Samples: memory, Unit: "MB", Limit: openMemory, Detail: detail},
	}, nil
}

func fillLarge(dir string) (err error) {
	s, err := store.Open(store.Config{Dir: dir, MaxBytes: 512 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer s.Close()
	w := &wear{}
	for _, c := range []struct {
		shape store.Shape
		n     int
	}{
		{openShape, 30},
		{
			store.Shape{
				Component: "agent", Resource: store.Resource{Group: "example.com", Version: "v1", Name: "widgets"},
				Form: store.JSON,
			}, openBytes / openObject,
		},
	} {
		l, err := s.List(c.shape, wire.Kind{APIVersion: "v1", Kind: "X"})
		if err != nil {
			return err
		}
		for i := range c.n {
			l.Add(w.object("ns", fmt.Sprint("o", i), openObject))
			if i%500 == 0 {
				s.Flush()
			}
		}
		l.Commit(w.version)
		l.Close()
	}
	return nil
}

// uncache lets the kernel forget the pages of a file.
func uncache(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// answer takes what a hub answers.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// OpenStore opens the store in dir, answers a list from it as a hub does, and tells how long that took.
func OpenStore(dir string, out io.Writer) error {
	began := time.Now()
	s, err := store.Open(store.Config{Dir: dir, MaxBytes: 512 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer s.Close()
	var o opened
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn", nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", openShape.Component)
	a := &answer{header: http.Header{}}
	offline.New(offline.Config{Store: s, Logger: slog.New(slog.DiscardHandler)}).Serve(context.Background(),
		openShape.Component, a, req, request.Parse(req))
	if n := strings.Count(a.body.String(), `"uid":`); a.code != http.StatusOK || n != 30 {
		o.Error = fmt.Sprintf("%d with %d items, want 30: %.200s", a.code, n, a.body.String())
	}
	o.Milliseconds = float64(time.Since(began).Microseconds()) / 1e3
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if _, rest, ok := strings.Cut(string(status), "RssAnon:"); ok {
		var kb float64
		_, _ = fmt.Sscan(rest, &kb)
		o.RssAnon = kb * 1024 / mb
	}
	return json.NewEncoder(out).Encode(o)
}
