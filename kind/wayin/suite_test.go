package wayin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/cloud"
	weircommand "github.com/weir-edge/weir/sim/command"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const (
	switchEnv = "WEIR_TEST_KIND"      // any value: run the specs
	logsEnv   = "WEIR_TEST_KIND_LOGS" // folder of logs

	nodes    = 3
	gates    = 2 // replicas of weir-gate
	gatePort = 30273
	pool     = "harbour"
	appImage = "weir.dev/app:test"

	long   = 5 * time.Minute // for what real kubelets do on a busy machine
	poll   = time.Second
	ends   = time.Minute // a command that goes on longer hangs
	builds = 20 * time.Minute
)

// stage is what all specs share: they run one after the other.
type stage struct {
	spawner *proc.Spawner
	root    string // of the repository
	path    string // folder of helm, kubectl and kubectl-weir
	run     *kind.Run
	cloud   string // address of the control plane
	failed  bool
}

var on stage

func TestWayIn(t *testing.T) {
	if os.Getenv(switchEnv) == "" {
		t.Skip("real kubelets need a Docker engine and some minutes: make test-kind")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "a pool behind a wall")
}

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

func tell(m string) { say("%s", m) }

// node is a worker's name in the cluster, counted from 1.
func node(n int) string { return fmt.Sprintf("edge-%d", n) }

// machine is a worker's.
func machine(n int) docker.Container { return on.run.Worker(n) }

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(docker.Ping(ctx)).To(Succeed())
	var err error
	on.root, err = gobuild.Root("")
	Expect(err).NotTo(HaveOccurred())
	on.spawner, err = proc.New()
	Expect(err).NotTo(HaveOccurred())
	By("providing the node image, and the programs of an operator")
	image, err := kind.Image(ctx, on.spawner, tell)
	Expect(err).NotTo(HaveOccurred())
	givePrograms(ctx)
	By("creating the cluster")
	createCluster(ctx, image)
	By("installing Weir from this checkout, with a gate that is a way in")
	installWeir(ctx)
}, NodeTimeout(4*long+builds))

// givePrograms puts what operators type into one folder.
func givePrograms(ctx context.Context) {
	GinkgoHelper()
	var err error
	on.path, err = on.spawner.Scratch("operator")
	Expect(err).NotTo(HaveOccurred())
	Expect(gobuild.Run(ctx, on.spawner, gobuild.Spec{
		Name: "kubectl-weir", Dir: on.root, Packages: []string{"./impl/cmd/kubectl-weir"}, Output: on.path,
	}, tell)).To(Succeed())
	tools, err := cloud.Find(ctx, on.spawner, tell, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	helm := filepath.Join(on.root, "bin", "helm")
	Expect(helm).To(BeARegularFile(), "make bin/helm builds it")
	Expect(os.Symlink(tools["kubectl"], filepath.Join(on.path, "kubectl"))).To(Succeed())
	Expect(os.Symlink(helm, filepath.Join(on.path, "helm"))).To(Succeed())
}

// createCluster makes one that writes down lists. Nothing else differs from what kind makes, but the names of nodes.
func createCluster(ctx context.Context, image string) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("cluster")
	Expect(err).NotTo(HaveOccurred())
	on.run, err = kind.Begin(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	config := &v1alpha4.Cluster{
		TypeMeta:             v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Networking:           v1alpha4.Networking{IPFamily: v1alpha4.IPv4Family},
		KubeadmConfigPatches: []string{"kind: KubeletConfiguration\nfailCgroupV1: false\n"},
		Nodes:                []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: image}},
	}
	audited, err := on.spawner.Scratch("audit")
	Expect(err).NotTo(HaveOccurred())
	Expect(kind.Audit(config, audited)).To(Succeed())
	for n := range nodes {
		config.Nodes = append(config.Nodes, v1alpha4.Node{
			Role: v1alpha4.WorkerRole, Image: image,
			KubeadmConfigPatches: []string{"kind: JoinConfiguration\nnodeRegistration:\n  name: " + node(n+1) + "\n"},
		})
	}
	Expect(on.run.Create(ctx, config, tell)).To(Succeed())
	typed(ctx, "kubectl wait --for=condition=Ready node --all --timeout=3m")
	typed(ctx, "kubectl -n kube-system wait --for=condition=Ready pod --all --timeout=3m")
	addresses, err := on.run.Control().Addresses(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(addresses).NotTo(BeEmpty())
	on.cloud = addresses[0]
}

// installWeir loads the images of this checkout, installs the chart, and has all workers join one pool.
func installWeir(ctx context.Context) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("app")
	Expect(err).NotTo(HaveOccurred())
	app, err := on.run.BuildApp(ctx, on.spawner, dir, tell)
	Expect(err).NotTo(HaveOccurred())
	for n := range nodes {
		Expect(app.Load(ctx, machine(n+1), appImage)).To(Succeed())
	}
	Expect(weircommand.Run(ctx, []string{"dev", "load", "--cluster", on.run.ID}, GinkgoWriter, GinkgoWriter)).To(Succeed())
	typed(ctx, fmt.Sprintf("helm upgrade --install weir charts/weir -n weir-system --create-namespace --wait "+
		"-f bin/dev/values.yaml --set gate.enabled=true --set gate.wayIn.enabled=true --set gate.replicas=%d "+
		"--set-json 'gate.wayIn.connectStraight=[{\"kind\":\"User\",\"name\":\"%s\"}]' --set gate.address=%s:%d",
		gates, kubeletUser, on.cloud, gatePort))
	typed(ctx, "kubectl -n kube-system rollout status deployment/weir-gate --timeout=5m")
	giveAdmin(ctx)
	typed(ctx, "kubectl weir pool create "+pool+" --coordinator")
	for n := range nodes {
		typed(ctx, "kubectl label node "+node(n+1)+" "+contract.NodePoolLabel+"="+pool)
	}
	typed(ctx, "kubectl weir check --wait 5m")
}

var _ = AfterEach(func() { on.failed = on.failed || CurrentSpecReport().Failed() })

var _ = AfterSuite(func(ctx SpecContext) {
	ctx2 := context.WithoutCancel(ctx)
	if on.run != nil {
		if dir := os.Getenv(logsEnv); on.failed && dir != "" {
			evidence(ctx2, filepath.Join(dir, "wayin"))
		}
		Expect(on.run.Remove(ctx2)).To(Succeed())
	}
	if on.spawner != nil {
		Expect(on.spawner.Close()).To(Succeed())
	}
}, NodeTimeout(long))

// evidence keeps what tells why a spec failed.
func evidence(ctx context.Context, dir string) {
	_ = os.MkdirAll(dir, 0o755)
	_ = on.run.CollectLogs(dir)
	for name, line := range map[string]string{
		"objects.yaml": "kubectl get nodes,pods,services,endpoints,deployments,jobs,leases,pools.weir.dev -A -o yaml",
		"events.txt":   "kubectl get events -A --sort-by=.lastTimestamp",
		"gate.txt":     "kubectl -n kube-system logs -l app.kubernetes.io/name=weir-gate --prefix --tail=-1",
	} {
		out, err := command(ctx, line)
		_ = os.WriteFile(filepath.Join(dir, name), []byte(out+fmt.Sprintln(err)), 0o644)
	}
	for n := range nodes {
		out, err := machine(n+1).Exec(ctx, "sh", "-c", fmt.Sprintf("nft list table ip wall; curl -sf -m 3 "+
			"http://127.0.0.1:%d%s; journalctl --no-pager -u weir-hub -u kubelet | tail -n 3000", contract.HubHealthPort,
			contract.StatusPath))
		_ = os.WriteFile(filepath.Join(dir, node(n+1)+".txt"), []byte(out+fmt.Sprintln(err)), 0o644)
	}
}

// environment is that in which an operator types.
func environment() []string {
	return append(os.Environ(), "KUBECONFIG="+on.run.Kubeconfig(), "PATH="+on.path+":"+os.Getenv("PATH"))
}

// command runs a line as an operator types it, in the root of the repository. All that it has started ends with ctx.
func command(ctx context.Context, line string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir, c.Stdout, c.Stderr, c.Env = on.root, &out, &out, environment()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it did not end by itself: %w", ctx.Err())
	}
	return out.String(), err
}

// typed is a line that has to succeed.
func typed(ctx context.Context, line string) string {
	GinkgoHelper()
	began := time.Now()
	out, err := command(ctx, line)
	say("$ %s\n%s(%.1f s)", line, out, time.Since(began).Seconds())
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, out)
	return out
}

// pairs are the lines of a text that have two words, the first of each and the second.
func pairs(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if one, other, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[one] = other
		}
	}
	return all
}
