package virtual

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLeavesBatch: a client whose connection is cut in the middle of what follows an answer of 410 goes to another hub,
// which knows nothing of that. What the first hub had yet to show it sees at its next change, and the judge raises no
// alarm, whenever the client is there again.
func TestLeavesBatch(t *testing.T) {
	c := Config{Seed: 6, Clients: 1, Hubs: 3, Grace: 5 * time.Second, Spread: time.Second}
	for name, script := range map[string]string{
		"and sees what it lacks deleted": `10s link a coordinator lose
10s link a cloud lose
12s write ns/v
13s write ns/p
14s delete ns/v
15s write ns/q
20s cloud forget
21s client a1 cut 1
25s link a cloud open
AGAIN client a1 b
60s end
`,
		"at the version of a deletion": `10s link a coordinator lose
10s link a cloud lose
10s link c coordinator lose
10s link c cloud lose
12s delete ns/p
15s write ns/q
20s cloud forget
21s client a1 cut 1
25s link a cloud open
AGAIN client a1 c
120s end
`,
	} {
		t.Run(name, func(t *testing.T) {
			for tenths := 250; tenths < 450; tenths += 2 {
				s := strings.ReplaceAll(script, "AGAIN", fmt.Sprintf("%d.%ds", tenths/10, tenths%10))
				if trace, err := runScript(c, s); err != nil {
					t.Fatalf("%v\n%s\n%s", err, s, trace)
				}
			}
		})
	}
}
