package command

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/cli"
)

// TestHelp: who asks about a group of commands gets that group, and who mistypes one is told its names.
func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args     string
		code     int
		says, no string
	}{
		{"", 0, "run scenarios\n", ""},
		{"--help", 0, "make, show and replace certificates", ""},
		{"pki --help", 0, "make the authority of a pool", "run scenarios"},
		{"pki -h", 0, "make the authority of a pool", "try to break pools"},
		{"pki table --help", 0, "weir pki table\n", "make the authority of a pool"},
		{"pki", 0, "make the authority of a pool", "run scenarios"},
		{"pki tabel", 2, "pki table", "scenario run"},
		{"piki", 2, "pki table", "scenario run"},
		{"nothing", 2, "scenario run", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out bytes.Buffer
			err := Run(t.Context(), strings.Fields(c.args), &out, io.Discard)
			code := 0
			if err != nil {
				code = cli.ExitCode(err)
				out.WriteString(err.Error())
			}
			if code != c.code || !strings.Contains(out.String(), c.says) || c.no != "" && strings.Contains(out.String(), c.no) {
				t.Errorf("exit code %d, want %d with %q and without %q:\n%s", code, c.code, c.says, c.no, &out)
			}
		})
	}
}
