package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/cli"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "weather"}, {"--only", "hub,weather"}, {"--rounds", "0"}, {"--objects", "0"}, {"--large", "10"}, {"--manager-nodes", "-1"}, {"--pool-rounds", "0"}, {"--parallel", "9"}, {"--no-such-flag"}, {"left over"},
	} {
		args = append(args, "--scenarios", "../../../scenarios")
		if err := run(t.Context(), args, io.Discard, io.Discard); cli.ExitCode(err) != 2 {
			t.Errorf("%v: exit code %d, want 2: %v", args, cli.ExitCode(err), err)
		}
	}
	if err := run(t.Context(), nil, io.Discard, io.Discard); cli.ExitCode(err) != 2 {
		t.Errorf("without scenario files: %v", err)
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &help, io.Discard); cli.ExitCode(err) != 0 || !strings.Contains(help.String(), "--only") {
		t.Errorf("help: %v: %s", err, &help)
	}
}
