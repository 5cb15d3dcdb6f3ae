package frames

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logged is what a kube-apiserver of Kubernetes 1.37 logs, with what its etcd answers between it.
const logged = `I1127 11:37:04.000000    5657 ???:1] "started"
I1127 11:37:04.960975    5657 ???:1] "http2: Framer 0xd7a0: read HEADERS flags=END_HEADERS stream=73 len=9"
I1127 11:37:04.961029    5657 ???:1] "http2: decoded hpack field header field \":method\" = \"PUT\""
I1127 11:37:04.961037    5657 ???:1] "http2: decoded hpack field header field \":path\" = ` +
	`\"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/harbour-1?timeout=10s\""
I1127 11:37:04.961065    5657 ???:1] "http2: decoded hpack field header field \"user-agent\" = \"hollow-kubelet/v1\""
http2: server read frame HEADERS flags=END_HEADERS stream=73 len=9
I1127 11:37:14.961136    5657 ???:1] "http2: Framer 0xd7a0: read DATA flags=END_STREAM stream=73 len=485 data=\"len=7\""
I1127 11:37:14.966357    5657 ???:1] "http2: Framer 0xd700: wrote HEADERS flags=END_HEADERS stream=223 len=17"
I1127 11:37:14.967727    5657 ???:1] "http2: Framer 0xd7a0: read PING len=8 ping=\"\\x02\\x04\\x10\""
I1127 11:37:14.971568    5657 ???:1] "http2: Framer 0xd700: read HEADERS flags=END_HEADERS stream=223 len=2"
I1127 11:37:14.971594    5657 ???:1] "http2: decoded hpack field header field \":status\" = \"200\""
I1127 11:37:15.000000    5657 ???:1] "http2: Framer 0xd7a0: wrote HEADERS flags=END_HEADERS stream=73 len=100"
I1127 11:37:15.000001    5657 ???:1] "http2: Framer 0xd7a0: wrote DATA flags=END_STREAM stream=73 len=300 data=\"x\""
I1127 11:37:15.100000    5657 ???:1] "http2: Framer 0xd7a0: read HEADERS flags=END_STREAM|END_HEADERS stream=75 len=11"
I1127 11:37:15.100001    5657 ???:1] "http2: decoded hpack field header field \":method\" = \"GET\""
I1127 11:37:15.100002    5657 ???:1] "http2: decoded hpack field header field \":path\" = ` +
	`\"/api/v1/pods?fieldSelector=spec.nodeName%3Dharbour-1&watch=true\""
I1127 11:37:15.100003    5657 ???:1] "http2: decoded hpack field header field \"user-agent\" = \"hollow-kubelet/v1\""
I1127 11:37:16.000000    5657 ???:1] "http2: Framer 0xd7b0: read HEADERS flags=END_STREAM|END_HEADERS stream=1 len=11"
I1127 11:37:16.000001    5657 ???:1] "http2: decoded hpack field header field \":method\" = \"GET\""
I1127 11:37:16.000002    5657 ???:1] "http2: decoded hpack field header field \":path\" = \"/api/v1/nodes/town-1\""
I1127 11:37:16.000003    5657 ???:1] "http2: decoded hpack field header field \"user-agent\" = \"hollow-kubelet/v1\""
I1127 11:37:30.000000    5657 ???:1] "http2: Framer 0xd7a0: wrote DATA stream=75 len=150 data=\"x\""
W1127 11:37:30.500000    5657 watcher.go:1] "something else"
I1127 11:37:40.000000    5657 ???:1] "http2: Framer 0xd7a0: read HEADERS flags=END_STREAM|END_HEADERS stream=1 len=11"
I1127 11:37:40.000001    5657 ???:1] "http2: decoded hpack field header field \":path\" = \"/api/v1/nodes/other\""
I1127 11:37:40.000002    5657 ???:1] "http2: decoded hpack field header field \"user-agent\" = \"kubectl/v1\""
I1127 11:39:00.000000    5657 ???:1] "http2: Framer 0xd7a0: wrote DATA stream=75 len=150 data=\"x\""
`

// TestRead: what a pool's connections cost in a span. Heads of requests before it name what comes in it.
func TestRead(t *testing.T) {
	at := func(minute, second int) time.Time { return time.Date(2026, 11, 27, 11, minute, second, 0, time.UTC) }
	got, err := Read(strings.NewReader(logged), at(37, 10), at(38, 0), Of{
		Agents: []string{"hollow-kubelet"}, Without: []string{"town-"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Cause{
		{What: "hollow-kubelet update leases, one", Up: 9 + 485, Down: 9 + 100 + 9 + 300},
		{What: "hollow-kubelet watch pods, of the node", Requests: 1, Up: 9 + 11, Down: 9 + 150},
		{What: "connections", Up: 9 + 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got)", diff)
	}
	none, err := Read(strings.NewReader(logged), at(0, 0), at(59, 0), Of{Agents: []string{"weir-hub"}})
	if len(none) > 0 || err != nil {
		t.Errorf("of nobody: %v, %v", none, err)
	}
	if _, err := Read(strings.NewReader(strings.Repeat("x", maxLine+1)), at(0, 0), at(59, 0), Of{}); err == nil {
		t.Error("a line without end is read")
	}
}
