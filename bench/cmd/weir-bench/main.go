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
	bare := fs.String("serve-bare", "", "")
	_ = fs.MarkHidden("serve-bare") // the process of the bare server
	out := fs.String("out", "reports/out/bench", "folder of the report")
	if err := fs.Parse(args); err != nil {
		return cli.Usage("flags", fmt.Sprint(args), err.Error())
	}
	if *bare != "" {
		return bench.ServeBare(ctx, *bare)
	}
	if c.Rounds < 1 || c.Objects < 1 || c.Large < c.Objects {
		return cli.Usage("flags", fmt.Sprint(args), "--rounds and --objects at least 1, --large at least --objects")
	}
	lines, err := bench.Run(ctx, c)
	if err != nil {
		return err
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
