package wayin_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// most is how often a command may fail after something was killed. Nothing is said of how long that takes.
const most = 60

// tried types a line until it succeeds and says what is wanted. A try that hangs is one that fails.
func tried(ctx context.Context, line, want string) {
	GinkgoHelper()
	for try := 1; ; try++ {
		each, cancel := context.WithTimeout(ctx, ends)
		out, err := command(each, line)
		cancel()
		if err == nil && strings.Contains(out, want) {
			say("$ %s\n%s(try %d)", line, last(out), try)
			return
		}
		say("$ %s\n%s(try %d: %v)", line, last(out), try, err)
		Expect(try).To(BeNumerically("<", most), "%s: %v\n%s", line, err, out)
		select {
		case <-ctx.Done():
			Fail(ctx.Err().Error())
		case <-time.After(poll):
		}
	}
}

// last are the last lines of a text.
func last(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "")
}

// works tries all that kubectl does at a kubelet, for the pod of each node.
func works(ctx context.Context, pods map[string]string) {
	GinkgoHelper()
	for n := 1; n <= nodes; n++ {
		pod := pods[node(n)]
		By("logs, exec and metrics of " + node(n))
		tried(ctx, "kubectl logs --tail=3 "+pod, "talk ")
		tried(ctx, "kubectl exec "+pod+" -- /app say hello", "hello")
		tried(ctx, "printf 'to and fro' | kubectl exec -i "+pod+" -- /app echo 7; echo \" with code $?\"",
			"with code 7")
		tried(ctx, "printf 'to and fro' | kubectl exec -i "+pod+" -- /app echo 0", "to and fro")
		tried(ctx, "kubectl get --raw /api/v1/nodes/"+node(n)+"/proxy/metrics/resource", "node_cpu_usage_seconds_total")
		By("port-forward to " + node(n))
		forwards(ctx, pod)
	}
}

// stream is a kubectl that goes on by itself.
type stream struct {
	what string
	stop func()
	done chan struct{} // closed when it has ended

	mu    sync.Mutex
	lines []string
	err   error // how it ended
}

// follow starts one. It ends with ctx at the latest.
func follow(ctx context.Context, args ...string) *stream {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, filepath.Join(on.path, "kubectl"), args...)
	out, in := io.Pipe()
	c.Stdout, c.Stderr, c.Env, c.WaitDelay = in, in, environment(), ends
	Expect(c.Start()).To(Succeed())
	s := &stream{what: "kubectl " + strings.Join(args, " "), done: make(chan struct{})}
	s.stop = func() { cancel(); <-s.done }
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, lines.Text())
			s.mu.Unlock()
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	go func() {
		defer close(s.done)
		err := c.Wait()
		_ = in.Close()
		<-read
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}()
	return s
}

// seen are its lines so far.
func (s *stream) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[:len(s.lines):len(s.lines)]
}

// ended reports whether it has ended, and how.
func (s *stream) ended() (bool, error) {
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return true, s.err
	default:
		return false, nil
	}
}

// goesOn waits until it has shown some lines more.
func (s *stream) goesOn(ctx context.Context) {
	GinkgoHelper()
	had := len(s.seen())
	Eventually(ctx, func(g Gomega) {
		over, err := s.ended()
		if over {
			StopTrying(fmt.Sprintf("%s has ended: %v\n%s", s.what, err, strings.Join(s.seen(), "\n"))).Now()
		}
		g.Expect(len(s.seen())).To(BeNumerically(">=", had+10), s.what)
	}, long, poll).Should(Succeed())
}

// hangsNot waits until it goes on or has ended, and says which.
func (s *stream) hangsNot(ctx context.Context) string {
	GinkgoHelper()
	had, said := len(s.seen()), ""
	Eventually(ctx, func(g Gomega) {
		over, err := s.ended()
		more := len(s.seen()) - had
		g.Expect(over || more >= 10).To(BeTrue(), "%s hangs", s.what)
		said = fmt.Sprintf("goes on, %d lines more", more)
		if over {
			said = fmt.Sprintf("has ended (%v)", err)
		}
	}, long, poll).Should(Succeed())
	return said
}

// attached shows what a pod writes.
func attached(ctx context.Context, pod string) {
	GinkgoHelper()
	s := follow(ctx, "attach", pod)
	defer s.stop()
	s.goesOn(ctx)
	Expect(s.seen()).To(ContainElement(HavePrefix("talk ")))
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forwards sends a megabyte to a pod through kubectl port-forward, and gets it back.
func forwards(ctx context.Context, pod string) {
	GinkgoHelper()
	sent := make([]byte, 1<<20)
	_, err := rand.Read(sent)
	Expect(err).NotTo(HaveOccurred())
	for try := 1; ; try++ {
		got, err := posted(ctx, pod, sent)
		if err == nil {
			Expect(bytes.Equal(got, sent)).To(BeTrue(), "%d bytes came back, and others", len(got))
			say("port-forward of %s (try %d)", pod, try)
			return
		}
		say("port-forward of %s (try %d: %v)", pod, try, err)
		Expect(try).To(BeNumerically("<", most), "port-forward of %s: %v", pod, err)
		time.Sleep(poll)
	}
}

// posted is what a pod gives back, through a kubectl port-forward of its own.
func posted(ctx context.Context, pod string, sent []byte) ([]byte, error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, ends)
	defer cancel()
	s := follow(ctx, "port-forward", pod, ":8080")
	defer s.stop()
	for {
		if m := forwarding.FindStringSubmatch(strings.Join(s.seen(), "\n")); m != nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m[1], bytes.NewReader(sent))
			if err != nil {
				return nil, err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return nil, fmt.Errorf("%w: %q", err, s.seen())
			}
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		}
		if over, err := s.ended(); over || ctx.Err() != nil {
			return nil, fmt.Errorf("no port: %w: %q", err, s.seen())
		}
		time.Sleep(100 * time.Millisecond)
	}
}
