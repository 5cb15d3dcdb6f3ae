package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/proc"
)

// batch is how many specs one process runs: few enough to tell progress.
const batch = 8

// Options of a run.
type Options struct {
	Dir      string // of logs and of the report
	Specs    []string
	Repeat   int             // of the specs that run Again, 0: none of them
	Delays   []time.Duration // of the link, one site each; on the first all specs run
	Parallel int             // processes at once
	Progress func(string)
}

// Run lets the specs judge, and returns what came of them. The error says that something could not be run, or not be
// cleaned up.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	spawner, err := proc.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, spawner.Close()) }()
	tools, err := cloud.Find(ctx, spawner, o.Progress, cloud.E2E)
	if err != nil {
		return nil, err
	}
	r := &run{
		Options: o, spawner: spawner, e2e: tools[cloud.E2E],
		result: &Result{Kubernetes: cloud.Version, Specs: map[string]*Row{}, Relayed: map[string]Routes{}},
	}
	for i, delay := range o.Delays {
		if err := r.at(ctx, delay, i == 0); err != nil {
			return r.result, err
		}
	}
	return r.result, nil
}

type run struct {
	Options
	spawner *proc.Spawner
	e2e     string
	started atomic.Int64 // processes
	mu      sync.Mutex
	result  *Result
}

// at runs on a site of its own.
func (r *run) at(ctx context.Context, delay time.Duration, all bool) (err error) {
	dir, err := filepath.Abs(filepath.Join(r.Dir, "logs", delay.String()))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p, err := newPlace(ctx, r.Options, dir, delay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove(ctx)) }()
	if all {
		for _, w := range Ways {
			if err := r.batches(ctx, p, dir, w, delay, r.Specs, 1); err != nil {
				return err
			}
		}
	}
	again := slices.DeleteFunc(slices.Clone(r.Specs), func(s string) bool { return !Again(s) && !r.result.judgedDown(s) })
	if r.Repeat > 0 && len(again) > 0 {
		for _, w := range Ways {
			if w == Straight && delay != 0 { // no link is in between
				continue
			}
			if err := r.batches(ctx, p, dir, w, delay, again, r.Repeat); err != nil {
				return err
			}
		}
	}
	for _, w := range []Way{Leader, Follower} {
		relay, cloud := p.relayed(ctx, w)
		r.result.Relayed[column(w, delay)] = Routes{int(relay), int(cloud)}
	}
	return nil
}

// column is what a way over a link is called in the report.
func column(w Way, delay time.Duration) string {
	if delay == 0 {
		return string(w)
	}
	return string(w) + " " + delay.String()
}

// batches runs specs so many times, some processes side by side. A spec runs beside itself never.
func (r *run) batches(ctx context.Context, p *place, dir string, w Way, delay time.Duration, specs []string,
	times int) error {
	var g errgroup.Group
	g.SetLimit(r.Parallel)
	size := min(batch, (len(specs)+r.Parallel-1)/r.Parallel)
	var done, failed atomic.Int64
	for chunk := range slices.Chunk(specs, size) {
		g.Go(func() error {
			for range times {
				outcomes, err := r.once(ctx, p, dir, w, chunk)
				if err != nil {
					return err
				}
				for _, o := range outcomes {
					r.mu.Lock()
					r.result.add(column(w, delay), o)
					r.mu.Unlock()
					done.Add(1)
					if o.State == failedState {
						failed.Add(1)
					}
				}
				r.Progress(fmt.Sprintf("%s: %d of %d runs of specs, %d failed", column(w, delay), done.Load(), len(specs)*times,
					failed.Load()))
			}
			return nil
		})
	}
	return g.Wait()
}

// outcome is what ginkgo says of a spec.
type outcome struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct {
		Message  string
		Location struct {
			FileName   string
			LineNumber int
		}
	}
}

// States of ginkgo.
const (
	passedState  = "passed"
	skippedState = "skipped"
	failedState  = "failed" // and panicked, timed out, interrupted
)

func (o *outcome) name() string {
	return strings.Join(append(slices.Clone(o.ContainerHierarchyTexts), o.LeafNodeText), " ")
}

// once runs specs in a process.
func (r *run) once(ctx context.Context, p *place, dir string, w Way, specs []string) ([]outcome, error) {
	name := fmt.Sprintf("%s-%03d", w, r.started.Add(1))
	home, err := r.spawner.Scratch("home", name)
	if err != nil {
		return nil, err
	}
	report := filepath.Join(home, "report.json")
	process, err := r.spawner.Start(proc.Spec{
		Name: name, Path: r.e2e, Dir: home, LogFile: filepath.Join(dir, name+".log"), Env: []string{"HOME=" + home},
		Args: []string{
			"--kubeconfig=" + p.configs[w], "--kubectl-path=" + p.kubectl, "--provider=local", "--num-nodes=2",
			"--allowed-not-ready-nodes=-1",
			"--minStartupPods=0", "--dump-logs-on-failure=false", "--ginkgo.focus=" + focus(specs),
			"--ginkgo.json-report=" + report,
			"--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.timeout=" + strconv.Itoa(10*len(specs)) + "m",
		},
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Kill()
		return nil, ctx.Err()
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("%s left no report (%w): see %s", name, err, filepath.Join(dir, name+".log"))
	}
	return outcomes(data, specs)
}

// outcomes reads a report of ginkgo, and insists on each of the specs.
func outcomes(data []byte, specs []string) ([]outcome, error) {
	var suites []struct{ SpecReports []outcome }
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, fmt.Errorf("read the report of ginkgo: %w", err)
	}
	missing := slices.Clone(specs)
	var all []outcome
	for _, s := range suites {
		for _, o := range s.SpecReports {
			i := slices.Index(missing, o.name())
			if o.LeafNodeType != "It" || i < 0 {
				continue
			}
			missing = slices.Delete(missing, i, i+1)
			if o.State != passedState && o.State != skippedState {
				o.State = failedState
			}
			all = append(all, o)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("ginkgo knows nothing of %d specs, %q first: specs.txt names what is not there", len(missing),
			missing[0])
	}
	return all, nil
}
