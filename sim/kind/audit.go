package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/docker"
)

const (
	auditFolder = "/etc/kubernetes/audit"
	auditLog    = "/var/log/kubernetes/audit.log"
)

// Audit has kube-apiserver of a cluster that is to be created write down each list, as the documentation of kind has it
// for auditing. dir is for a file that has to be there as long as the cluster.
func Audit(config *v1alpha4.Cluster, dir string) error {
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, " +
		"verbs: [list]}, {level: None}]\n"
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o644); err != nil {
		return err
	}
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
	return nil
}

// Lists are those that a machine asked kube-apiserver for since a time: what, by which program, and as whom. The
// cluster was created with Audit.
func (r *Run) Lists(ctx context.Context, m docker.Container, since time.Time) (all []string, err error) {
	from, err := m.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	text, err := r.Control().Exec(ctx, "cat", auditLog)
	if err != nil {
		return nil, err
	}
	seen := 0
	for line := range strings.Lines(text) {
		var e struct {
			User                     struct{ Username string }
			UserAgent, RequestURI    string
			SourceIPs                []string
			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("a line of the audit log: %w: %s", err, line)
		}
		if seen++; len(e.SourceIPs) > 0 && e.SourceIPs[0] == from[0] && e.RequestReceivedTimestamp.After(since) {
			program, _, _ := strings.Cut(e.UserAgent, " ")
			all = append(all, fmt.Sprintf("%s by %s as %s", e.RequestURI, program, e.User.Username))
		}
	}
	if seen == 0 {
		return nil, errors.New("kube-apiserver writes no list down")
	}
	return all, nil
}

// Relists are the lists, of those that Lists returns, that nobody should ask for again. A Job on the node looks things
// up for itself. A hub looks at one object, of some hundred bytes: to know whether what is on its disk is of this
// cloud, and where a node is. One that was killed fetches what its disk lacks of what its clients go on with.
func Relists(all []string) []string {
	return slices.DeleteFunc(all, func(l string) bool {
		one := strings.Contains(l, "?limit=1&") || strings.Contains(l, "?limit=1 ") ||
			strings.Contains(l, "?fieldSelector=metadata.name%3D")
		behind := strings.Contains(l, "=NotOlderThan ") && strings.Contains(l, " by "+contract.UserAgent+" ")
		return strings.Contains(l, " by weir-node ") || behind || one && strings.Contains(l, " as "+contract.HubUserPrefix)
	})
}
