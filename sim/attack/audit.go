package attack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// audit is what kube-apiserver notes of the one that called.
type audit struct{ policy, log string }

func newAudit(dir string) (*audit, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder of logs: %w", err)
	}
	a := &audit{policy: filepath.Join(dir, "audit-policy.yaml"), log: filepath.Join(dir, "kube-apiserver-audit.log")}
	return a, os.WriteFile(a.policy, []byte(auditPolicy), 0o644)
}

func (a *audit) flags() []string {
	return []string{"--audit-policy-file=" + a.policy, "--audit-log-path=" + a.log}
}

// of returns what was noted of requests whose address contains a text.
func (a *audit) of(uri string) (events []auditEvent, err error) {
	f, err := os.Open(a.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if !strings.Contains(lines.Text(), uri) || json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

type auditEvent struct {
	URI       string   `json:"requestURI"`
	SourceIPs []string `json:"sourceIPs"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
}
