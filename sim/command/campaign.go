package command

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/cli"
)

// saying returns what tells progress, with the time since a command began.
func saying(w io.Writer, began time.Time) func(string) {
	return func(m string) { fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(began).Seconds(), m) }
}

// checkParallel bounds how many attempts a command makes at once.
func checkParallel(n int) error {
	if n < 1 || n > 16 {
		return cli.Usage("--parallel", fmt.Sprint(n), "1 to 16")
	}
	return nil
}

// judged is the end of a run whose report in a folder tells what came of each attempt: an error, or bad unless it
// passed.
func judged(out string, err error, passed bool, bad error) error {
	if err == nil && !passed {
		return fmt.Errorf("%w: see %s", bad, filepath.Join(out, "summary.md"))
	}
	return err
}
