package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/sim/grid"
	"github.com/weir-edge/weir/sim/scenario"
)

// scenarioGrid runs a table of scenarios. Cells that have a report are left out, so it goes on where it was
// interrupted. That a cell does not hold is a result, and no failure.
func scenarioGrid(fs *pflag.FlagSet) commands.Run {
	f := scenarioFlags{runtime: "local", output: "text"}
	var cells []string
	var again bool
	fs.StringVar(&f.out, "out", "reports/out/thin-links", "folder of the table; each cell gets a folder of its own in it")
	fs.StringSliceVar(&cells, "cells", nil,
		"only cells with all of these words, | is or: "+strings.Join(grid.Words(), " "))
	fs.StringVar(&f.binaries, "binaries", "", binariesHelp)
	fs.BoolVar(&again, "again", false, "run cells again that have a report")
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		for _, w := range strings.FieldsFunc(strings.Join(cells, "|"), func(r rune) bool { return r == '|' }) {
			if !slices.Contains(grid.Words(), w) {
				return cli.Usage("--cells", w, strings.Join(grid.Words(), ", "))
			}
		}
		base, err := scenario.Load(args[0])
		if err != nil {
			return err
		}
		if len(base) != 1 {
			return cli.Usage("argument", args[0], "one scenario file")
		}
		chosen := grid.Cells(cells...)
		repeat := "bin/weir scenario grid " + args[0]
		for i, c := range chosen {
			if !again && c.Ran(f.out) {
				continue
			}
			fmt.Fprintf(stderr, "cell %d of %d: %s\n", i+1, len(chosen), c.Name())
			s, err := c.Scenario(base[0])
			if err != nil {
				return err
			}
			s.File = args[0]
			if _, err := runOne(ctx, s, f, stdout, stderr); err != nil {
				fmt.Fprintf(stderr, "cell %s: %v\n", c.Name(), err)
			}
			if ctx.Err() != nil {
				return errors.New("interrupted: the same command goes on")
			}
			if err := grid.Write(f.out, repeat); err != nil {
				return err
			}
		}
		return grid.Write(f.out, repeat)
	}
}
