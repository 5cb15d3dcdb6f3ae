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
		{"--peer", "/no/such/profile.yaml"}, {"--peer", "main.go"}, {"--peer", "testdata/peer.yaml", "--only", "hub"},
	} {
		args = append(args, "--scenarios", "../../../scenarios")
		if err := run(t.Context(), args, io.Discard, io.Discard); cli.ExitCode(err) != 2 {
			t.Errorf("%v: exit code %d, want 2: %v", args, cli.ExitCode(err), err)
		}
	}
	if err := run(t.Context(), []string{"--peer", "testdata/peer.yaml", "--only", "hub", "--scenarios", "../../../scenarios"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nothing beside --peer") {
		t.Errorf("a peer, and a part: %v", err)
	}
	if err := run(t.Context(), nil, io.Discard, io.Discard); cli.ExitCode(err) != 2 {
		t.Errorf("without scenario files: %v", err)
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &help, io.Discard); cli.ExitCode(err) != 0 || !strings.Contains(help.String(), "--only") {
		t.Errorf("help: %v: %s", err, &help)
	}
}
