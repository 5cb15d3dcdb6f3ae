package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/conformance"
)

// errNotConforming is the end of a run whose report tells which specs failed.
var errNotConforming = errors.New("a spec that passes straight at kube-apiserver failed through a hub")

func runConformance(fs *pflag.FlagSet) commands.Run {
	out := fs.String("out", "reports/out/conformance", "folder of the report, and of the logs of all parts")
	expression := fs.String("focus", ".", "regular expression of the specs that run")
	list := fs.Bool("list", false, "list the specs and end")
	repeat := fs.Int("repeat", 20,
		"how often the specs run that are about watches or have failed through a hub, 0 to 1000; all others run once")
	delay := fs.Duration("delay", 60*time.Millisecond,
		"delay of the link, there and back, under which those specs run a second time, 0 (they do not) to 10s")
	parallel := fs.Int("parallel", 3, "processes of specs at once, 1 to 16")
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		switch {
		case *repeat < 0 || *repeat > 1000:
			return cli.Usage("--repeat", fmt.Sprint(*repeat), "0 to 1000")
		case *delay < 0 || *delay > 10*time.Second:
			return cli.Usage("--delay", delay.String(), "0s to 10s")
		}
		if err := checkParallel(*parallel); err != nil {
			return err
		}
		specs, err := conformance.Select(conformance.Specs(), *expression)
		if err != nil {
			return cli.Usage("--focus", *expression, err.Error())
		}
		if *list {
			fmt.Fprintln(stdout, strings.Join(specs, "\n"))
			return nil
		}
		began := time.Now()
		say := saying(stderr, began)
		o := conformance.Options{
			Dir: *out, Specs: specs, Repeat: *repeat, Delays: []time.Duration{0}, Parallel: *parallel, Progress: say,
		}
		if *delay > 0 && *repeat > 0 {
			o.Delays = append(o.Delays, *delay)
		}
		result, err := conformance.Run(ctx, o)
		if result == nil {
			return err
		}
		result.Revision, result.Started, result.Seconds = revision(context.WithoutCancel(ctx)), began,
			time.Since(began).Seconds()
		if err != nil {
			result.Error = err.Error()
		}
		if werr := result.Write(*out, strings.TrimSpace("bin/weir conformance "+strings.Join(args, " "))); werr != nil {
			return errors.Join(err, werr)
		}
		say("report: " + filepath.Join(*out, "summary.md"))
		return judged(*out, err, result.Passed, errNotConforming)
	}
}
