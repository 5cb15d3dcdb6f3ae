// Command weir-bench runs the benchmarks of bench, writes summary.md, result.json and bench.txt into reports/out/bench, and fails if a target
// is missed.
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/bench/peer"
	"github.com/weir-edge/weir/impl/cli"
)

func main() { cli.Main("weir-bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := cli.NewFlags("weir-bench", "measures Weir and holds it to its targets; exit code 1: a target is missed; bench/doc.go says what is measured and how")
	began := time.Now()
	var s bench.Suite
	s.Config.Progress = func(m string) { fmt.Fprintf(stderr, "%6.1fs  %s\n", time.Since(began).Seconds(), m) }
	s.Manager.Progress, s.Testbed.Progress = s.Config.Progress, s.Config.Progress
	fs.IntVar(&s.Rounds, "rounds", 6, "rounds of every comparison; the median counts, and 6 are the fewest that tell where it lies with 95 % of confidence")
	fs.IntVar(&s.Objects, "objects", 1000, "EndpointSlices of 100 endpoints beside kube-apiserver")
	fs.IntVar(&s.Large, "large", 5000, "EndpointSlices for the coordinator's memory and the simultaneous lists")
	fs.IntVar(&s.Manager.Nodes, "manager-nodes", 5000, "nodes of the cluster that weir-manager is measured with; 0: it is not")
	fs.IntVar(&s.Manager.Pools, "manager-pools", 200, "pools that they are in")
	fs.StringVar(&s.Manager.Before, "manager-before", "", "path of a weir-manager of an earlier commit, which is measured first in the same cluster; empty: none is")
	fs.DurationVar(&s.Manager.Steady, "manager-steady", time.Minute, "how long it is measured while nothing but heartbeats happens")
	fs.StringVar(&s.Testbed.Scenarios, "scenarios", "scenarios", "folder of scenario files: bytes runs pool-cache, and expectations of others are targets")
	fs.IntVar(&s.Testbed.Rounds, "pool-rounds", 3, "rounds of bytes and failover, which run whole pools")
	fs.IntVar(&s.Testbed.Parallel, "parallel", 3, "pools that run at once; they wait most of the time")
	fs.StringSliceVar(&s.Only, "only", nil, "measure some parts only, separated by commas: "+strings.Join(bench.Parts(), ", "))
	fs.BoolVar(&s.Resume, "resume", false, "keep the parts that the report in --out has of the same committed source and the same flags")
	fs.StringVar(&s.Out, "out", "reports/out/bench", "folder of the report")
	profile := fs.String("peer", "", "profile of another hub, as bench/peers/weir-hub.yaml: measures it beside weir-hub under the load of pool-cache, and nothing else; report in the folder peer of --out")
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
	if *profile != "" {
		var err error
		if s.Peer, err = peer.Load(*profile); err != nil {
			return err
		}
		s.Out = filepath.Join(s.Out, "peer")
	}
	s.Testbed.Out = s.Out
	if err := s.Validate(); err != nil {
		return err
	}
	report, err := s.Run(ctx)
	if len(report.Parts) > 0 {
		fmt.Fprint(stdout, report.Markdown())
	}
	return err
}
