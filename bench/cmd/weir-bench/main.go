// Command weir-bench runs the benchmarks of bench and writes reports/out/bench/summary.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
)

func main() { cli.Main("weir-bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := pflag.NewFlagSet("weir-bench", pflag.ContinueOnError)
	c := bench.Config{Progress: func(m string) { fmt.Fprintln(stderr, m) }}
	fs.IntVar(&c.Rounds, "rounds", 5, "rounds of every comparison; the median counts")
	fs.IntVar(&c.Objects, "objects", 1000, "EndpointSlices of 100 endpoints beside kube-apiserver")
	fs.IntVar(&c.Large, "large", 5000, "EndpointSlices for the coordinator's memory and the simultaneous lists")
	m := bench.ManagerConfig{Progress: c.Progress}
	fs.IntVar(&m.Nodes, "manager-nodes", 5000, "nodes of the cluster that weir-manager is measured with; 0: it is not")
	fs.IntVar(&m.Pools, "manager-pools", 200, "pools that they are in")
	fs.DurationVar(&m.Steady, "manager-steady", time.Minute, "how long it is measured while nothing but heartbeats happens")
	bare := fs.String("serve-bare", "", "")
	_ = fs.MarkHidden("serve-bare") // the process of the bare server
	opens := fs.String("open-store", "", "")
	_ = fs.MarkHidden("open-store") // the process that opens a store
	only := fs.String("only", "", "measure one part: store, which needs no control plane, hub (with the coordinator) or manager")
	out := fs.String("out", "reports/out/bench", "folder of the report")
	if err := fs.Parse(args); err != nil {
		return cli.Usage("flags", fmt.Sprint(args), err.Error())
	}
	if *bare != "" {
		return bench.ServeBare(ctx, *bare)
	}
	if m.Nodes < 0 || m.Pools < 1 || m.Steady < time.Second {
		return cli.Usage("flags", fmt.Sprint(args), "--manager-nodes at least 0, --manager-pools at least 1, --manager-steady at least 1s")
	}
	if *opens != "" {
		return bench.OpenStore(*opens, stdout)
	}
	if !slices.Contains([]string{"", "store", "hub", "manager"}, *only) {
		return cli.Usage("--only", *only, "store, hub or manager; without it all three")
	}
	if c.Rounds < 1 || c.Objects < 1 || c.Large < c.Objects {
		return cli.Usage("flags", fmt.Sprint(args), "--rounds and --objects at least 1, --large at least --objects")
	}
	var lines []bench.Line
	for _, part := range []struct {
		name string
		run  func() ([]bench.Line, error)
	}{
		{"store", func() ([]bench.Line, error) { return bench.Store(ctx, c) }},
		{"hub", func() ([]bench.Line, error) { return bench.Run(ctx, c) }},
		{"manager", func() ([]bench.Line, error) { return bench.Manager(ctx, m) }},
	} {
		if *only != "" && *only != part.name || part.name == "manager" && m.Nodes == 0 {
			continue
		}
		more, err := part.run()
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	text := bench.Markdown(lines, fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()))
	data, err := json.MarshalIndent(lines, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*out, "result.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Fprint(stdout, text)
	return os.WriteFile(filepath.Join(*out, "summary.md"), []byte(text), 0o644)
}
