package install_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/docker"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

const (
	switchEnv = "WEIR_TEST_KIND"      // any value: run the specs
	logsEnv   = "WEIR_TEST_KIND_LOGS" // folder of logs

	version = "v0.0.2" // of the release of this tree: a chart names images by it
	before  = "v0.0.1" // of the one before it, of the revision former
	nodes   = 5

	// former is the revision whose release becomes that of this tree: the last one of main before what is being made now.
	// Any one will do from which the commands of its README install, and whose hub writes what its clients have seen
	// before it ends: 233dfe5 and later. Move it on when this tree cannot be reached from it any more by one upgrade.
	former = "a6be9b2d11fc95973e210c814cf95fa5c063519a"

	long = 5 * time.Minute // for what real kubelets do on a busy machine
	poll = time.Second
)

// stage is what all specs share: they run one after the other.
type stage struct {
	spawner *proc.Spawner
	root    string            // of the repository
	dir     string            // in which commands run: the chart of the release is where the README has it
	path    string            // folder of helm, kubectl and kubectl-weir
	release map[string]string // folders, by version
	sources map[string]string // likewise
	run     *kind.Run
	failed  bool

	address    string         // of the Service that is called
	nodeWas    map[int]string // files of workers before anything was installed
	clusterWas []string       // objects, likewise
}

var on stage

func TestInstall(t *testing.T) {
	if os.Getenv(switchEnv) == "" {
		t.Skip("real kubelets need a Docker engine and some minutes: make test-kind")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "an installation")
}

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

func tell(m string) { say("%s", m) }

// node is a worker's name in the cluster, counted from 1: those of the README.
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
	image, err := kind.Image(ctx, on.spawner, tell)
	Expect(err).NotTo(HaveOccurred())
	on.release, on.sources = map[string]string{}, map[string]string{version: on.root}
	makeRelease(ctx, version)
	if checkOut(ctx) {
		makeRelease(ctx, before)
	}
	install(ctx, version)
	createCluster(ctx, image)
	serveImages(ctx)
	loadApp(ctx)
}, NodeTimeout(8*long))

// checkOut has the sources of the former revision. It is false if this clone does not reach back to it.
func checkOut(ctx context.Context) bool {
	GinkgoHelper()
	if exec.CommandContext(ctx, "git", "-C", on.root, "cat-file", "-e", former+"^{commit}").Run() != nil {
		return false
	}
	dir, err := on.spawner.Scratch("sources", before)
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(ctx, "sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", on.root, former,
		dir).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	on.sources[before] = dir
	return true
}

// makeRelease makes what a release has, for this machine.
func makeRelease(ctx context.Context, version string) {
	GinkgoHelper()
	out, err := on.spawner.Scratch("release", version)
	Expect(err).NotTo(HaveOccurred())
	on.release[version] = out
	build := exec.CommandContext(ctx, "go", "run", ".", "all", "-version", version, "-arch", "amd64", "-out", out, "-helm",
		filepath.Join(on.root, "bin", "helm"))
	build.Dir = filepath.Join(on.sources[version], ".ci", "release")
	build.Env = append(os.Environ(), gobuild.Env()...)
	said, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	say("%s", said)
}

// install puts programs and chart of a release where an operator has them.
func install(ctx context.Context, version string) {
	GinkgoHelper()
	var err error
	on.dir, err = on.spawner.Scratch("operator", version)
	Expect(err).NotTo(HaveOccurred())
	on.path, err = on.spawner.Scratch("operator", version, "bin")
	Expect(err).NotTo(HaveOccurred())
	tools, err := cloud.Find(ctx, on.spawner, tell, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	for name, path := range map[string]string{
		"kubectl": tools["kubectl"], "helm": filepath.Join(on.root, "bin", "helm"),
		"kubectl-weir": filepath.Join(on.release[version], "kubectl-weir-linux-amd64"),
	} {
		Expect(os.RemoveAll(filepath.Join(on.path, name))).To(Succeed()) // an upgrade may come back to a release
		Expect(os.Symlink(path, filepath.Join(on.path, name))).To(Succeed())
	}
	Expect(os.MkdirAll(filepath.Join(on.dir, "charts"), 0o755)).To(Succeed())
	chart := filepath.Join(on.release[version], "weir-"+strings.TrimPrefix(version, "v")+".tgz")
	out, err := exec.CommandContext(ctx, "tar", "-xzf", chart, "-C", filepath.Join(on.dir, "charts")).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// createCluster makes a stock cluster: what kubeadm and kind make of it, but for the names of its nodes.
func createCluster(ctx context.Context, image string) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("cluster")
	Expect(err).NotTo(HaveOccurred())
	on.run, err = kind.Begin(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	config := &v1alpha4.Cluster{
		TypeMeta:                v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Networking:              v1alpha4.Networking{IPFamily: v1alpha4.IPv4Family},
		KubeadmConfigPatches:    []string{"kind: KubeletConfiguration\nfailCgroupV1: false\n"},
		ContainerdConfigPatches: []string{kind.RegistriesPatch},
		Nodes:                   []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: image}},
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
}

// machines are all of the cluster, that of the control plane first.
func machines() []docker.Container {
	all := []docker.Container{on.run.Control()}
	for n := range nodes {
		all = append(all, machine(n+1))
	}
	return all
}

// loadApp gives all machines what the pods of specs run, and the operators' program.
func loadApp(ctx context.Context) {
	GinkgoHelper()
	dir, err := on.spawner.Scratch("app")
	Expect(err).NotTo(HaveOccurred())
	app, err := on.run.BuildApp(ctx, on.spawner, dir, tell)
	Expect(err).NotTo(HaveOccurred())
	for _, m := range machines() {
		Expect(app.Load(ctx, m, appImage)).To(Succeed())
		program, err := os.Open(filepath.Join(on.release[version], "kubectl-weir-linux-amd64"))
		Expect(err).NotTo(HaveOccurred())
		Expect(m.Feed(ctx, program, "install", "-D", "-m", "755", "/dev/stdin", "/root/weir")).To(Succeed())
		Expect(program.Close()).To(Succeed())
	}
}

var _ = AfterEach(func() { on.failed = on.failed || CurrentSpecReport().Failed() })

var _ = AfterSuite(func(ctx SpecContext) {
	ctx2 := context.WithoutCancel(ctx)
	if on.run != nil {
		if dir := os.Getenv(logsEnv); on.failed && dir != "" {
			evidence(ctx2, filepath.Join(dir, "install"))
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
		"objects.yaml": "kubectl get nodes,pods,services,endpoints,endpointslices,deployments,daemonsets,jobs," +
			"configmaps,leases,csr,nodepools,pools.weir.dev --all-namespaces -o yaml",
		"events.txt": "kubectl get events --all-namespaces --sort-by=.lastTimestamp",
		"check.txt":  "kubectl weir check",
	} {
		out, err := command(ctx, line)
		_ = os.WriteFile(filepath.Join(dir, name), []byte(out+fmt.Sprintln(err)), 0o644)
	}
	for n := range nodes {
		out, err := machine(n+1).Exec(ctx, "sh", "-c",
			"/root/weir node status; journalctl --no-pager -u weir-hub -u 'weir-*' -u kubelet | tail -n 3000")
		_ = os.WriteFile(filepath.Join(dir, node(n+1)+".txt"), []byte(out+fmt.Sprintln(err)), 0o644)
	}
}

// command runs a line as an operator types it.
func command(ctx context.Context, line string) (string, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir, c.Stdout, c.Stderr = on.dir, &out, &out
	c.Env = append(os.Environ(), "KUBECONFIG="+on.run.Kubeconfig(), "PATH="+on.path+":"+os.Getenv("PATH"))
	err := c.Run()
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
