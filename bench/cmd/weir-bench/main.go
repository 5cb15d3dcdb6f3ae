// Command weir-bench runs the benchmarks of bench and writes reports/out/bench/summary.md.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/impl/cli"
)

func main() { cli.Main("weir-bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := cli.NewFlags("weir-bench", "measures Weir beside kube-apiserver: bytes, CPU, memory, latency; bench/doc.go says how")
	var s bench.Suite
	s.Config.Progress = func(m string) { fmt.Fprintln(stderr, m) }
	s.Manager.Progress = s.Config.Progress
	fs.IntVar(&s.Rounds, "rounds", 5, "rounds of every comparison; the median counts")
	fs.IntVar(&s.Objects, "objects", 1000, "EndpointSlices of 100 endpoints beside kube-apiserver")
	fs.IntVar(&s.Large, "large", 5000, "EndpointSlices for the coordinator's memory and the simultaneous lists")
	fs.IntVar(&s.Manager.Nodes, "manager-nodes", 5000, "nodes of the cluster that weir-manager is measured with; 0: it is not")
	fs.IntVar(&s.Manager.Pools, "manager-pools", 200, "pools that they are in")
	fs.DurationVar(&s.Manager.Steady, "manager-steady", time.Minute, "how long it is measured while nothing but heartbeats happens")
	fs.StringVar(&s.Only, "only", "", "measure one part: "+strings.Join(bench.Parts(), ", ")+"; store needs no control plane, hub has the coordinator with it")
	out := fs.String("out", "reports/out/bench", "folder of the report")
	bare := fs.String("serve-bare", "", "")
	_ = fs.MarkHidden("serve-bare") // the process of the bare server
	opens := fs.String("open-store", "", "")
	_ = fs.MarkHidden("open-store") // the process that opens a store
	if err := fs.Parse(args, stdout); err != nil {
		return err
	}
	switch {
	case *bare != "":
		return bench.ServeBare(ctx, *bare)
	case *opens != "":
		return bench.OpenStore(*opens, stdout)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	lines, err := s.Run(ctx)
	if err != nil {
		return err
	}
	summary, err := bench.Write(*out, lines)
	fmt.Fprint(stdout, summary)
	return err
}
