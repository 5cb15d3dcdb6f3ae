package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

// portRow is a row of docs/network.md about a port of Weir's own: the port, and the flag that sets it.
var portRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `--([a-z-]+)` of (weir-[a-z]+)")

// TestPorts: docs/network.md has each port of package contract, and of weir-manager, with the flag that sets it.
func TestPorts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "network.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range portProblems(string(text)) {
		t.Errorf("docs/network.md: %s", p)
	}
}

func portProblems(text string) (all []string) {
	want := map[int]string{
		contract.HubProxyPort: "weir-hub --proxy-port", contract.HubHealthPort: "weir-hub --health-port",
		contract.HubSecurePort: "weir-hub --secure-port", contract.HubPoolPort: "weir-hub --pool-port",
		contract.CoordinatorPort: "weir-coordinator --secure-port", contract.PeerPort: "weir-coordinator --initial-cluster",
		contract.HubImagesPort: "weir-hub --images-port", contract.GatePort: "weir-gate --secure-port",
		8080: "weir-manager --metrics-bind-address", 8081: "weir-manager --health-probe-bind-address",
	}
	for _, m := range portRow.FindAllStringSubmatch(text, -1) {
		port, err := strconv.Atoi(m[1])
		switch flag := m[3] + " --" + m[2]; {
		case err != nil || want[port] == "":
			all = append(all, fmt.Sprintf("port %s is not one of Weir's, or has two rows", m[1]))
		case want[port] != flag:
			all = append(all, fmt.Sprintf("port %d is of %s, not of %s", port, want[port], flag))
		}
		delete(want, port)
	}
	for port, flag := range want {
		all = append(all, fmt.Sprintf("port %d of %s has no row", port, flag))
	}
	return all
}

func TestPortProblems(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "network.md"))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"| 10269 | ":              "| 10299 | ",
		"`--pool-port` of":        "`--secure-port` of",
		"| 8081 | ":               "| the other | ",
		"of weir-coordinator | e": "of weir-hub | e",
	} {
		planted := strings.Replace(string(text), from, to, 1)
		if planted == string(text) || len(portProblems(planted)) == 0 {
			t.Errorf("%q in the place of %q is not found", to, from)
		}
	}
}
