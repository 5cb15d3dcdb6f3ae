package install_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	auditFolder = "/etc/kubernetes/audit"
	auditLog    = "/var/log/kubernetes/audit.log"
)

// audit has kube-apiserver write down each list, as the documentation of kind has it for auditing.
func audit(config *v1alpha4.Cluster) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("audit")
	Expect(err).NotTo(HaveOccurred())
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, " +
		"verbs: [list]}, {level: None}]\n"
	Expect(os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o644)).To(Succeed())
	control := &config.Nodes[0]
	control.ExtraMounts = append(control.ExtraMounts, v1alpha4.Mount{
		HostPath: dir, ContainerPath: auditFolder, Readonly: true,
	})
	patch := fmt.Sprintf(
		`- {op: add, path: /apiServer/extraArgs/-, value: {name: audit-policy-file, value: %[1]s/policy.yaml}}
- {op: add, path: /apiServer/extraArgs/-, value: {name: audit-log-path, value: %[2]s}}
- op: add
  path: /apiServer/extraVolumes
  value:
  - {name: audit-policy, hostPath: %[1]s, mountPath: %[1]s, readOnly: true, pathType: DirectoryOrCreate}
  - {name: audit-log, hostPath: %[3]s, mountPath: %[3]s, readOnly: false, pathType: DirectoryOrCreate}
`, auditFolder, auditLog, filepath.Dir(auditLog))
	control.KubeadmConfigPatchesJSON6902 = append(control.KubeadmConfigPatchesJSON6902,
		v1alpha4.PatchJSON6902{Group: "kubeadm.k8s.io", Version: "v1beta4", Kind: "ClusterConfiguration", Patch: patch})
}

// lists are those that a worker asked kube-apiserver for since a time: who, and what.
func lists(ctx context.Context, n int, since time.Time) (all []string) {
	GinkgoHelper()
	from, err := machine(n).Addresses(ctx)
	Expect(err).NotTo(HaveOccurred())
	text, err := on.run.Control().Exec(ctx, "cat", auditLog)
	Expect(err).NotTo(HaveOccurred())
	seen := 0
	for line := range strings.Lines(text) {
		var e struct {
			User                     struct{ Username string }
			UserAgent, RequestURI    string
			SourceIPs                []string
			RequestReceivedTimestamp time.Time
		}
		Expect(json.Unmarshal([]byte(line), &e)).To(Succeed(), line)
		if seen++; len(e.SourceIPs) > 0 && e.SourceIPs[0] == from[0] && e.RequestReceivedTimestamp.After(since) {
			program, _, _ := strings.Cut(e.UserAgent, " ")
			all = append(all, fmt.Sprintf("%s by %s as %s", e.RequestURI, program, e.User.Username))
		}
	}
	Expect(seen).NotTo(BeZero(), "kube-apiserver writes nothing down")
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
