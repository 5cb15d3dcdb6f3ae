package command

import (
	"bytes"
	"errors"
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
		{"", 0, "weir scenario run", ""},
		{"--help", 0, "weir pki table", ""},
		{"pki --help", 0, "weir pki authority", "weir scenario run"},
		{"pki -h", 0, "weir pki table", "weir attack"},
		{"pki table --help", 0, "weir pki table", "weir pki files"},
		{"pki", 2, "pki table", "scenario run"},
		{"pki tabel", 2, "pki table", "scenario run"},
		{"piki", 2, "scenario run", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out bytes.Buffer
			err := Run(t.Context(), strings.Fields(c.args), &out, io.Discard)
			code := 0
			if err != nil && !errors.Is(err, cli.ErrHelp) {
				code = cli.ExitCode(err)
				out.WriteString(err.Error())
			}
			if code != c.code || !strings.Contains(out.String(), c.says) || c.no != "" && strings.Contains(out.String(), c.no) {
				t.Errorf("exit code %d, want %d with %q and without %q:\n%s", code, c.code, c.says, c.no, &out)
			}
		})
	}
}
