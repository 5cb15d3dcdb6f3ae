package install_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
)

// lists are those that a worker asked kube-apiserver for since a time: who, and what.
func lists(ctx context.Context, n int, since time.Time) []string {
	GinkgoHelper()
	all, err := on.run.Lists(ctx, machine(n), since)
	Expect(err).NotTo(HaveOccurred())
	return all
}

// meter counts the bytes between each worker and kube-apiserver. It does so on the machine of the control plane, where
// nothing of Weir is.
func meter(ctx context.Context) {
	GinkgoHelper()
	var counters, in, out strings.Builder
	for n := range nodes {
		at, err := machine(n + 1).Addresses(ctx)
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&counters, "  counter %s { }\n", node(n+1))
		fmt.Fprintf(&in, "    ip saddr %s tcp dport 6443 counter name %s\n", at[0], node(n+1))
		fmt.Fprintf(&out, "    ip daddr %s tcp sport 6443 counter name %s\n", at[0], node(n+1))
	}
	table := "table ip uplink {\n" + counters.String() + "  chain in {\n    type filter hook input priority -10;\n" +
		in.String() + "  }\n  chain out {\n    type filter hook output priority -10;\n" + out.String() + "  }\n}\n"
	Expect(on.run.Control().Feed(ctx, strings.NewReader(table), "nft", "-f", "-")).To(Succeed(), table)
}

// metered are the bytes so far, by worker.
func metered(ctx context.Context) map[string]int64 {
	GinkgoHelper()
	text, err := on.run.Control().Exec(ctx, "nft", "-j", "list", "counters", "table", "ip", "uplink")
	Expect(err).NotTo(HaveOccurred())
	var said struct {
		Nftables []struct {
			Counter *struct {
				Name  string
				Bytes int64
			}
		}
	}
	Expect(json.Unmarshal([]byte(text), &said)).To(Succeed(), text)
	all := map[string]int64{}
	for _, one := range said.Nftables {
		if one.Counter != nil {
			all[one.Counter.Name] = one.Counter.Bytes
		}
	}
	Expect(all).To(HaveLen(nodes))
	return all
}

// hubMetric is the sum of those of a metric of a hub that have some words in their labels.
func hubMetric(ctx context.Context, n int, name string, labels ...string) float64 {
	GinkgoHelper()
	text, err := onNode(ctx, n, fmt.Sprintf("curl -sf -m 3 http://127.0.0.1:%d/metrics", contract.HubHealthPort))
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			continue
		}
		var value float64
		_, err := fmt.Sscan(rest[strings.LastIndex(rest, " ")+1:], &value)
		Expect(err).NotTo(HaveOccurred(), line)
		sum += value
	}
	return sum
}
