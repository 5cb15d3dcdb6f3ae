package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/bench/peer"
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
)

// runBench measures Weir, or another hub beside it. Two hidden flags make it a process of a benchmark that is under
// way.
func runBench(fs *pflag.FlagSet) commands.Run {
	fs.SortFlags = false
	var s bench.Suite
	list := fs.Bool("list", false, "list the parts of the benchmark and end")
	fs.StringSliceVar(&s.Only, "only", nil, "measure these `parts` alone, by their names of --list")
	profile := fs.String("peer", "",
		"measure another hub beside weir-hub and nothing else, by a `profile` as bench/peers/weir-hub.yaml (docs/peers.md)")
	fs.StringVar(&s.Out, "out", "reports/out/bench", "folder of the report; with --peer its folder peer")
	fs.BoolVar(&s.Resume, "resume", false, "keep what the report in --out has of the same commit and flags")
	fs.IntVar(&s.Rounds, "rounds", 6,
		"rounds of each comparison; 6 are the fewest that tell where the median lies with 95 % of confidence")
	fs.IntVar(&s.Testbed.Rounds, "pool-rounds", 3,
		"rounds of bytes and failover, which run whole pools, and of changes with --peer")
	fs.IntVar(&s.Testbed.Parallel, "parallel", 3, "pools that run at once, 1 to 8; they wait most of the time")
	fs.StringVar(&s.Testbed.Scenarios, "scenarios", "scenarios",
		"folder of scenario files; bytes runs pool-cache, and others have targets")
	fs.IntVar(&s.Objects, "objects", 1000, "hub: EndpointSlices of 100 endpoints beside kube-apiserver")
	fs.IntVar(&s.Large, "large", 5000, "hub: EndpointSlices for the coordinator's memory and the simultaneous lists")
	fs.IntVar(&s.Manager.Nodes, "manager-nodes", 5000,
		"manager: nodes of the cluster, 100 to 50000; 0: the part is left out")
	fs.IntVar(&s.Manager.Pools, "manager-pools", 200, "manager: pools that the nodes are in")
	fs.DurationVar(&s.Manager.Steady, "manager-steady", time.Minute,
		"manager: how long is measured while nothing but heartbeats happens")
	fs.StringVar(&s.Manager.Before, "manager-before", "",
		"manager: `path` of a weir-manager of an earlier commit, which is measured beside this one")
	bare := fs.String(bench.ServeBareFlag, "", "")
	opens := fs.String(bench.OpenStoreFlag, "", "")
	for _, own := range []string{bench.ServeBareFlag, bench.OpenStoreFlag} {
		_ = fs.MarkHidden(own)
	}
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		switch {
		case *bare != "":
			return bench.ServeBare(ctx, *bare)
		case *opens != "":
			return bench.OpenStore(*opens, stdout)
		case *list:
			_, err := io.WriteString(stdout, bench.List())
			return err
		}
		if fs.Changed("only") && len(s.Only) == 0 {
			return cli.Usage("--only", "", "some of "+strings.Join(bench.Parts(), ","))
		}
		if fs.Changed("peer") {
			var err error
			if s.Peer, err = peer.Load(*profile); err != nil {
				return err
			}
			s.Out = filepath.Join(s.Out, "peer")
		}
		say := saying(stderr, time.Now())
		s.Config.Progress, s.Manager.Progress, s.Testbed.Progress = say, say, say
		s.Testbed.Out = s.Out
		s.Repeat = "bin/weir bench" + given(fs, "out", "resume")
		if err := s.Validate(); err != nil {
			return err
		}
		report, err := s.Run(ctx)
		if len(report.Parts) > 0 {
			fmt.Fprint(stdout, report.Markdown())
			say("report: " + filepath.Join(s.Out, "summary.md"))
		}
		return err
	}
}

// given are the flags that were given, as they are typed, but for some.
func given(fs *pflag.FlagSet, but ...string) (line string) {
	fs.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		if !slices.Contains(but, f.Name) {
			line += " --" + f.Name + " " + value
		}
	})
	return line
}
