package images

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/images/desk"
)

// serverEnv makes this test binary the server of a benchmark: so its memory is not that of the readers.
const serverEnv = "WEIR_IMAGES_ROOT"

// serveBench serves a store over TLS and HTTP/2, as the pool port does, and the same files by http.ServeContent alone,
// until its input ends.
func serveBench(root string) {
	debug.SetGCPercent(50)
	shown := &Shown{
		Store: &Store{Root: root}, Pulling: func(desk.Digest) bool { return false }, Clock: clock.RealClock{},
		Caller: func(*http.Request) string { return "member" }, Bytes: NewMetrics().Bytes,
	}
	mux := http.NewServeMux()
	mux.Handle(contract.ImagesBlobsPath, shown)
	mux.HandleFunc("/plain/{name}", func(w http.ResponseWriter, req *http.Request) {
		f, err := os.Open(filepath.Join(root, "blobs", "sha256", filepath.Base(req.PathValue("name"))))
		if err != nil {
			http.NotFound(w, req)
			return
		}
		defer f.Close()
		http.ServeContent(w, req, "", time.Time{}, f)
	})
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	fmt.Println(s.URL)
	_ = pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.CloseClientConnections()
	s.Close()
}

// BenchmarkShown serves 1 GB to each of four members. It says by how much the memory of the server grew, and what a GB
// costs it, beside http.ServeContent of the same file. WEIR_IMAGES_MB makes it smaller.
func BenchmarkShown(b *testing.B) {
	size := int64(1000)
	if mb, err := strconv.ParseInt(os.Getenv("WEIR_IMAGES_MB"), 10, 64); err == nil {
		size = mb
	}
	size *= 1e6
	root := b.TempDir()
	d := desk.Digest{1}
	file := filepath.Join(root, "blobs", "sha256", d.Hex())
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Truncate(size); err != nil { // of zeros, which the disk need not hold
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), serverEnv+"="+root)
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = child.Wait()
	}()
	lines := bufio.NewReader(out)
	at, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	text := ""
	for !strings.Contains(text, "END CERTIFICATE") {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		text += line
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(text))
	at = strings.TrimSpace(at)
	pid := child.Process.Pid
	for _, way := range []struct{ name, path string }{
		{"shown", contract.ImagesBlobsPath + d.String()}, {"plain", "/plain/" + d.Hex()},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				readAs(b, roots, at+way.path, 1, "bytes=0-99") // connections and pools are there
				before, began := anonymous(b, pid), cpu(b, pid)
				most, done := before, make(chan struct{})
				var watch sync.WaitGroup
				watch.Go(func() {
					tick := time.NewTicker(20 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-tick.C:
							most = max(most, anonymous(b, pid))
						case <-done:
							return
						}
					}
				})
				n := readAs(b, roots, at+way.path, 4, "")
				close(done)
				watch.Wait()
				if n != 4*size {
					b.Errorf("%d bytes were read, want %d", n, 4*size)
				}
				b.ReportMetric(float64(most-before)/1e6, "MB-more")
				b.ReportMetric((cpu(b, pid)-began).Seconds()/(float64(n)/1e9), "cpu-s/GB")
			}
		})
	}
}

// readAs reads from a server as several members, each over a connection of its own.
func readAs(b *testing.B, roots *x509.CertPool, url string, members int, part string) (n int64) {
	b.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range members {
		all.Go(func() {
			t := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true,
			}
			defer t.CloseIdleConnections()
			req, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				b.Error(err)
				return
			}
			if part != "" {
				req.Header.Set("Range", part)
			}
			resp, err := t.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.ProtoMajor != 2 {
				b.Errorf("%s after %d bytes: %v", resp.Proto, got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			n += got
		})
	}
	all.Wait()
	return n
}

// anonymous is the memory of a process that is no file's, in bytes.
func anonymous(b *testing.B, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Error(err)
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Error(err)
			}
			return kb << 10
		}
	}
	b.Error("the kernel says no RssAnon")
	return 0
}

// cpu is what a process has used, user and system, at 100 ticks a second as /proc has them.
func cpu(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Error(err)
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		b.Errorf("%q: %v %v", rest, err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
