package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/report"
)

// baselineLog tells who changed a baseline, and why.
const baselineLog = "CHANGES.tsv"

// reportBaseline puts the results of runs in the place of the committed ones.
func reportBaseline(_ context.Context, args []string, stdout, _ io.Writer) error {
	flags := pflag.NewFlagSet("report baseline", pflag.ContinueOnError)
	dir := flags.String("dir", "reports/baseline", "folder of the baselines")
	reason := flags.String("reason", "", "why the baseline changes; it is kept beside it")
	if err := parse(flags, "report baseline --reason REASON DIR…", args, cli.AnyArgs, stdout); err != nil {
		return err
	}
	why := strings.Join(strings.Fields(*reason), " ")
	switch {
	case why == "":
		return cli.Usage("--reason", *reason, "a sentence that says why the baseline changes")
	case flags.NArg() == 0:
		return cli.Usage("arguments", "", "folders of runs, as reports/out/pool-cache")
	}
	var results []report.Result
	for _, path := range flags.Args() {
		r, err := report.Load(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return cli.Usage("argument", path, "the folder of a run, which has a result.json")
		case err != nil:
			return err
		case !r.Passed:
			return fmt.Errorf("%s did not pass: what fails is no baseline", path)
		}
		results = append(results, r)
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of baselines: %w", err)
	}
	for _, r := range results {
		var data bytes.Buffer
		enc := json.NewEncoder(&data)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(r.Small()); err != nil {
			return err
		}
		name := filepath.Join(*dir, r.Scenario+".json")
		if err := os.WriteFile(name, data.Bytes(), 0o644); err != nil {
			return err
		}
		line := strings.Join([]string{r.Started.UTC().Format("2006-01-02"), r.Revision, r.Scenario, why}, "\t") + "\n"
		log, err := os.OpenFile(filepath.Join(*dir, baselineLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = log.WriteString(line)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s: %s\n", name, why)
	}
	return nil
}
