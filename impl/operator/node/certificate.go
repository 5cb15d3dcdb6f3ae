package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/install"
)

func certificate(fs *pflag.FlagSet) commands.Run {
	form := fs.StringP("output", "o", "table", "table or json")
	r := root(fs)
	return func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		if *form != "table" && *form != "json" {
			return cli.Usage("--output", *form, "table or json")
		}
		i, err := install.New(install.Config{Host: install.Host{Root: *r}})
		if err != nil {
			return err
		}
		all, failed := i.Certificates(ctx)
		if len(all) == 0 {
			return failed
		}
		if written, err := commands.Write(stdout, *form, all); written {
			return errors.Join(failed, err)
		}
		w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "CERTIFICATE\tENDS\tIN\tSUBJECT\tSIGNED BY\tFILE")
		for _, one := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(one.What, "-"), one.End.Format(time.RFC3339),
				until(one.End.Sub(i.Clock.Now())), one.Subject, one.Signer, one.File)
		}
		return errors.Join(failed, w.Flush())
	}
}

// until is a time for a person.
func until(d time.Duration) string {
	if d <= 0 {
		return "ended " + duration.HumanDuration(-d) + " ago"
	}
	return duration.HumanDuration(d)
}
