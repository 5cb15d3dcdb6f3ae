package certificates

import (
	"context"
	"io"

	"github.com/weir-edge/weir/impl/cli"
)

// Commands are those of weir pki; program is how the user calls it.
func Commands(program string) []cli.Command {
	by := func(run func(ctx context.Context, program string, args []string, stdout io.Writer) error) func(context.Context,
		[]string, io.Writer, io.Writer) error {
		return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
			return run(ctx, program, args, stdout)
		}
	}
	return []cli.Command{
		{Name: "pki table", About: "list the kinds of certificates: what stands in each, and who signs it", Run: by(table)},
		{Name: "pki request", About: "print a request for a certificate", Run: by(request)},
		{
			Name: "pki check", Args: "FILE…",
			About: "show certificates: their contents, the authority that signed them, and when they expire",
			Run:   by(check),
		},
		{
			Name: "pki authority", About: "make the authority of a pool, by itself or below an existing one", Run: by(authority),
		},
		{Name: "pki files", About: "make all files of a pool from its authority", Run: by(files)},
		{
			Name: "pki rotate", About: "replace the authority of a pool by weir-manager, also one whose key is lost",
			Run: by(rotate),
		},
	}
}
