package limit

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/offline"
)

// limitsFile is made by TestLimitsDocument.
const limitsFile = "../../docs/limits.md"

const limitsHead = `# Limits of a hub, and of a coordinator

What one caller may take, and what all callers together may take. ` +
	`*This node* (the caller that shows the node's own certificate), the hub's probes and
heartbeats are not limited by any row that says "others". ` +
	`They have connections of their own, so they never wait behind others.

A refusal is a Status with code 429, a reason and ` + "`Retry-After`" + `. The metric ` +
	"`weir_hub_refused_requests_total{reason}`" + ` counts refusals. The log names each
reason once a minute at most.

A caller is a service account, or a token that belongs to none. ` +
	`A caller is *known* once the cloud has taken its token. ` +
	`*Unknown* are tokens that the cloud has not taken
yet, and requests without a token.

This file is made from the constants: ` + "`WEIR_WRITE_DOCS=1 go test ./impl/limit -run TestLimitsDocument`" +
	`. The test fails if the file is another one.

| what | limit | flag | beyond the limit |
| --- | --- | --- | --- |
`

const coordinatorHead = `
## A coordinator

A caller is a certificate, by the name in it. Sizes are argued in ` + "`impl/limit`" +
	`. A write that is refused for its number is counted in ` + "`weir_coordinator_refused_writes_total`" +
	`. What travels with a
signature (the denylist, the authorities of the pool) has bounds of its own.

| what | limit | flag | beyond the limit |
| --- | --- | --- | --- |
`

// coordinatorRows are those of a coordinator.
func coordinatorRows() []limitRow {
	size := func(n int) string {
		if n%(1<<20) == 0 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return []limitRow{
		{"bytes of a request", size(MaxBody), "", "413"},
		{"bytes of a Lease", size(MaxLease), "", "422"},
		{"bytes of the holder of a Lease", fmt.Sprint(MaxHolder), "", "403"},
		{
			"what a hub sets on a Lease",
			"spec, the mark of a node that is cut off, where its relays are, the owner of its node's Lease", "",
			"403; managed fields are left out",
		},
		{
			"where its relays are", "no link-local, multicast or unspecified address; loopback from this machine only", "",
			"403",
		},
		{"how long a Lease of the pool is held", fmt.Sprintf("%d s", contract.MaxLeaseDuration/time.Second), "", "422"},
		{"writes of one caller", fmt.Sprintf("%d a second, %d at once", WriteRate, WriteBurst), "", "429"},
		{"callers whose writes are counted apart", fmt.Sprint(Writers), "", "further ones share"},
		{"bytes of what a hub says against its leader", size(MaxDoubt), "", "400"},
		{
			"connections over which nobody of the pool has asked anything", fmt.Sprint(MaxStrangers), "",
			"the oldest one is closed",
		},
		{"bytes of a relay", size(128 << 20), "--relay-max-bytes", "what the leader feeds is not taken"},
		{"bytes of recent changes of a relay", size(16 << 20), "--ring-bytes", "a client that is further behind lists again"},
		{
			"bytes of etcd's database", size(Quota), "",
			fmt.Sprintf("from %s on its history is thrown away; at the limit it takes no writes for the seconds that this "+
				"takes (weir_coordinator_etcd_reclaims_total)", size(Quota/ReclaimAt)),
		},
	}
}

// limitRow is a line of the table.
type limitRow struct{ what, limit, flag, beyond string }

func limitRows() []limitRow {
	num := func(n int) string { return fmt.Sprint(n) }
	size := func(n int) string {
		if n%(1<<20) == 0 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		return fmt.Sprintf("%d KiB", n>>10)
	}
	rate := func(n, burst int) string { return fmt.Sprintf("%d a second, %d at once", n, burst) }
	long := func(d time.Duration) string {
		if d%time.Minute == 0 {
			return fmt.Sprintf("%d min", d/time.Minute)
		}
		return fmt.Sprintf("%d s", d/time.Second)
	}
	const newest = "the oldest one is closed that has shown the least, of the address that has most; a connection of " +
		"this node never"
	return []limitRow{
		{"connections to a port, others", num(MaxConnections), "", newest},
		{"connections of one remote address, others", num(MaxConnectionsAddress), "", newest},
		{"time for the headers of a request", long(HeaderTimeout), "", "the connection is closed"},
		{"time without a request on a connection", long(IdleTimeout), "", "the connection is closed"},
		{"header bytes of a request", size(MaxHeader), "", "431, or the connection is closed"},
		{"HTTP/2 streams of a connection, others", num(MaxStreams), "", "the client waits"},
		{"HTTP/2 streams of a connection, this node", num(MaxStreamsNode), "", "the client waits"},
		{
			"reading from a connection after a request on it was refused by a limit, others",
			fmt.Sprintf("pauses %d ms for each, 1 s at most", RefusalPause/time.Millisecond), "", "what its client sends waits",
		},
		{"requests under way at the pool port, one peer", num(MaxPeerRequests), "", "429"},
		{"requests under way at the pool port, all peers", num(MaxPeersRequests), "", "429"},
		{
			"refused requests whose client has not taken the answer", num(MaxUntaken), "",
			"the stream is reset, over HTTP/1.1 the connection is closed",
		},
		{
			"the same of one address", num(MaxUntakenAddress), "", "the stream is reset, over HTTP/1.1 the connection is closed",
		},
		{"bytes of request bodies that wait, of one connection", size(ReceiveBuffer), "", "the client waits"},
		{
			"bytes of requests under way, known callers in sum", fmt.Sprintf("%s: %d watches, or %d other requests",
				size(DefaultCallersBytes), DefaultCallersBytes/WatchBytes, DefaultCallersBytes/RequestBytes),
			"--callers-max-bytes", "429 (requests)",
		},
		{
			"the same of one known caller",
			fmt.Sprintf("three times what is free: alone %s, %d watches, or %d other requests; as many watches less for each "+
				"that others hold",
				size(DefaultCallersBytes*3/4), DefaultCallersBytes*3/4/WatchBytes, DefaultCallersBytes*3/4/RequestBytes), "",
			"429 (caller-requests)",
		},
		{"what a watch counts as", size(WatchBytes), "", ""},
		{"what any other request counts as", size(RequestBytes), "", ""},
		{
			"requests at the cloud, one caller",
			fmt.Sprintf("%d about collections, and %d others; what lasts (watches, logs, exec) does not count", CallerWays,
				CallerWays), "", "they wait, in the order in which they came (`weir_hub_waiting_requests`)",
		},
		{"bytes of a body that waits so", size(WaitingBody), "", "the request goes to the cloud at once"},
		{"requests under way, unknown callers in sum", num(MaxUnproven), "", "429 (unproven)"},
		{"requests under way, unknown callers at one address", num(MaxUnprovenAddress), "", "429 (unproven)"},
		{"time for the body of a request, unknown callers", long(UnprovenBody), "", "the request fails"},
		{"requests without a credential", "only /healthz, /livez, /readyz, /version", "--anonymous", "401 (anonymous)"},
		{
			"new requests to the cloud, one caller", rate(DefaultCallerRate, DefaultCallerBurst),
			"--caller-rate", "429 (caller-rate)",
		},
		{
			"new requests to the cloud, all without a credential", rate(PublicRate, PublicBurst),
			"as one caller with --anonymous", "429 (caller-rate)",
		},
		{
			"connections to a cloud server, requests without a credential", num(MaxAnonymousConnections), "",
			"they wait for each other",
		},
		{
			"bytes of an answer to a request without a credential", size(MaxPublicAnswer), "none with --anonymous",
			"the answer is cut",
		},
		{"streams of the node's own kubelet without the cloud (logs, exec)", num(MaxKubelet), "", "429"},
		{"the same of one caller", num(MaxKubeletCaller), "", "429"},
		{"access reviews that wait or are under way, others in sum", num(MaxReviews), "", "429 (caller-rate)"},
		{"the same of one caller", num(MaxCallerReviews), "", "429 (caller-rate)"},
		{"access reviews under way, others", num(ParallelReviews), "", "they wait"},
		{
			"questions about unknown tokens, after the cloud refused a token", rate(ProofRate, ProofBurst), "", "429 (unproven)",
		},
		{"the same from one address", rate(ProofRateAddress, ProofBurstAddress), "", "429 (unproven)"},
		{"unknown tokens whose requests are under way unasked", num(MaxTrusting), "", "further ones are asked about first"},
		{"requests with one of them under way unasked", num(MaxTrusted), "", "further ones wait for the answers"},
		{"how long one counts that was left before its answer", long(TrustTime), "", "then another one may go unasked"},
		{
			"how long unknown tokens are asked about after a refused one", long(Suspicion), "",
			"they go over the shared connection again",
		},
		{"connections to a cloud server for such questions", num(MaxProofConnections), "", "they wait for each other"},
		{"bytes of an answer of the cloud that its reader has not taken, others", size(ReceiveBuffer), "", "the cloud waits"},
		{
			"bytes of objects and documents that are kept for the time without the cloud, and have not come as a whole",
			size(offline.MaxRecording), "", "the one is not kept that stands still longest",
		},
		{
			"time in which a client takes nothing of an answer", long(StallTimeout), "",
			"the answer is ended, the metric weir_hub_stalled_answers_total counts it",
		},
		{"tokens known to be good", num(MaxKnownTokens), "", "the one used least recently is unknown again"},
		{"decisions of the cloud remembered", num(MaxVerdicts), "", "another one is forgotten"},
		{
			"API discovery documents", num(documents.MaxDocuments) + " of " + size(documents.MaxBody), "",
			"a larger one is not kept; of a path the one used least recently is forgotten",
		},
	}
}

// TestLimitsDocument: the table that operators read is that of the constants.
func TestLimitsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(limitsHead)
	for _, r := range limitRows() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, r.limit, r.flag, r.beyond)
	}
	b.WriteString(coordinatorHead)
	for _, r := range coordinatorRows() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, r.limit, r.flag, r.beyond)
	}
	if os.Getenv("WEIR_WRITE_DOCS") != "" {
		if err := os.WriteFile(limitsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(limitsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Errorf("%s is not what the constants say: run WEIR_WRITE_DOCS=1 go test ./impl/limit -run TestLimitsDocument",
			limitsFile)
	}
}
