package install_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const metricsImage = "weir.dev/metrics-server:test"

// metricsPatch is what a cluster of kind needs beside the module's own manifests: its kubelets sign their certificates
// themselves. It runs beside the control plane, which is where nothing of a node comes to it but by the node's kubelet.
const metricsPatch = `
- {op: add, path: /spec/template/spec/containers/0/args/-, value: --kubelet-insecure-tls}
- {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Never}
- {op: replace, path: /spec/template/spec/containers/0/readinessProbe/initialDelaySeconds, value: 1}
- {op: add, path: /spec/template/spec/nodeSelector/node-role.kubernetes.io~1control-plane, value: ""}
- op: add
  path: /spec/template/spec/tolerations
  value: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]
`

// addMetricsServer gives the cluster a metrics-server, as many a cluster has one before Weir.
func addMetricsServer(ctx context.Context) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("metrics")
	Expect(err).NotTo(HaveOccurred())
	const module = "sigs.k8s.io/metrics-server"
	sources := filepath.Join(on.root, "kind", "metrics-server")
	Expect(gobuild.Run(ctx, on.spawner, gobuild.Spec{
		Name: "metrics-server", Dir: sources, Packages: []string{module + "/cmd/metrics-server"}, Output: dir,
		LDFlags: "-s -w",
	}, tell)).To(Succeed())
	archive := filepath.Join(dir, "image.tar")
	name := "localhost/metrics-server:" + on.run.ID
	Expect(kind.Pack(ctx, filepath.Join(dir, "metrics-server"), name, archive)).To(Succeed())
	Expect(kind.LoadImage(ctx, on.run.Control(), archive)).To(Succeed())
	_, err = on.run.Control().Exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", name, metricsImage)
	Expect(err).NotTo(HaveOccurred())

	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = sources, append(os.Environ(), gobuild.Env()...)
	where, err := list.Output()
	Expect(err).NotTo(HaveOccurred())
	base := filepath.Join(dir, "base")
	Expect(os.CopyFS(base, os.DirFS(filepath.Join(strings.TrimSpace(string(where)), "manifests", "base")))).To(Succeed())
	image, tag, _ := strings.Cut(metricsImage, ":")
	kustomization := "resources: [base]\nimages: [{name: gcr.io/k8s-staging-metrics-server/metrics-server, newName: " +
		image + ", newTag: " + tag + "}]\n" +
		"patches: [{path: patch.yaml, target: {kind: Deployment}}]\n"
	Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o644)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "patch.yaml"), []byte(metricsPatch), 0o644)).To(Succeed())
	typed(ctx, "kubectl apply -k "+dir)
}

// showsUse is a spec of kubectl top: what nodes use comes from their kubelets, which ask through their hubs who it is
// that asks them.
func showsUse() {
	It("shows what nodes and pods use", func(ctx SpecContext) {
		since := time.Now()
		Eventually(ctx, func(g Gomega) {
			out, err := command(ctx, "kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes")
			g.Expect(err).NotTo(HaveOccurred(), out)
			var all struct {
				Items []struct {
					Metadata  struct{ Name string }
					Timestamp time.Time
				}
			}
			g.Expect(json.Unmarshal([]byte(out), &all)).To(Succeed(), out)
			fresh := map[string]bool{}
			for _, one := range all.Items {
				fresh[one.Metadata.Name] = one.Timestamp.After(since)
			}
			for n := range nodes {
				g.Expect(fresh).To(HaveKeyWithValue(node(n+1), true))
			}
		}, long, poll).Should(Succeed())
		out := typed(ctx, "kubectl top node")
		for n := range nodes {
			Expect(out).To(MatchRegexp(`(?m)^%s +\d+m +\d+%% +\d+Mi +\d+%% *$`, node(n+1)))
		}
		Eventually(ctx, func() (string, error) {
			return command(ctx, "kubectl top pod -l app=web --no-headers | grep -c 'm  *[0-9]*Mi'")
		}, long, poll).Should(Equal("5\n"))
		typed(ctx, "kubectl top pod -l app=web")
	}, SpecTimeout(long))
}
