package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/image"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	imagesHost = "images.test" // in the names of images
	hostsFile  = kind.Registries + "/" + imagesHost + "/hosts.toml"
	// The image has no program of its own. Its pods run the one that their node has.
	programFolder = "/usr/local/bin"
	podProgram    = "/host/weir-app"
)

var _ = Describe("an image that all nodes of a pool want", Label("images"), Ordered, func() {
	var cloud *imageCloud
	BeforeAll(func(ctx SpecContext) {
		cloud = serveImages(ctx, map[string][]int64{
			// As scenarios/images-once.yaml has it.
			"stock": fifty, "once": fifty, "off": fifty, "killed": fifty, "cut": fifty, "kept": small, "away": small,
		})
		Eventually(ctx, func(g Gomega) {
			steady(ctx, g)
			for _, n := range nodesOf(weir) {
				s, err := ask(ctx, runtime.HubOf(n))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.Images).NotTo(BeNil(), "the hub of %s has no mirror", n)
				g.Expect(s.Images.Desk).To(BeTrue(), "the pool does not know what %s has", n)
			}
		}).WithTimeout(long).WithPolling(poll).Should(Succeed())
	}, NodeTimeout(2*long))

	It("crosses the link once", func(ctx SpecContext) {
		heard := readySince(ctx)
		cloud.hosts(ctx, false)
		stock := cloud.rollOut(ctx, "stock", func(*rollOut) {})
		cloud.hosts(ctx, true)
		once := cloud.rollOut(ctx, "once", func(*rollOut) {})
		Expect(stock.ratio).To(BeNumerically(">=", 0.975*float64(sizes[weir])), "the stock way is not as bad as it is said")
		Expect(once.ratio).To(BeNumerically("<=", 1.03))
		Expect(once.took.Seconds() / stock.took.Seconds()).To(BeNumerically("<=", 0.35))
		Expect(readySince(ctx)).To(Equal(heard), "a pull that fills the link makes nodes look dead")
	}, SpecTimeout(3*long))

	It("does so when a machine is off in the middle", func(ctx SpecContext) {
		before := map[string]int64{}
		for _, node := range nodesOf(weir) {
			before[node] = crossedTo(node)
		}
		lost := 0.0 // what the machine had pulled for the others, in pulls: they may have read it from there alone
		is := cloud.rollOut(ctx, "off", func(r *rollOut) {
			r.half(ctx)
			off, least := "", int64(0)
			for node, pulls := range pulling(ctx) {
				if n := crossedTo(node) - before[node]; pulls == 0 && (off == "" || n < least) {
					off, least = node, n
				}
			}
			Expect(off).NotTo(BeEmpty(), "all nodes pull: %v", pulling(ctx))
			r.without(ctx, off)
			lost = float64(least) / float64(r.pulled)
		})
		AddReportEntry("off: of that the machine had pulled", fmt.Sprintf("%.3f", lost))
		Expect(is.ratio).To(BeNumerically("<=", 1.03+lost))
	}, SpecTimeout(3*long))

	It("goes on when the machine that pulls is killed at half", func(ctx SpecContext) {
		is := cloud.rollOut(ctx, "killed", func(r *rollOut) {
			r.half(ctx)
			puller, most := "", 0
			for node, pulls := range pulling(ctx) {
				if pulls > most {
					puller, most = node, pulls
				}
			}
			Expect(puller).NotTo(BeEmpty(), "nobody pulls")
			r.without(ctx, puller)
		})
		Expect(is.ratio).To(BeNumerically("<=", 1.6))
	}, SpecTimeout(3*long))

	It("goes on where a cut left it", func(ctx SpecContext) {
		is := cloud.rollOut(ctx, "cut", func(r *rollOut) {
			r.half(ctx)
			l := pools.Link(weir)
			l.Cut(link.Both, "")
			DeferCleanup(l.HealAll)
			select {
			case <-time.After(10 * time.Second): // the length of the cut
			case <-ctx.Done():
			}
			l.HealAll()
		})
		Expect(is.ratio).To(BeNumerically("<=", 1.1))
	}, SpecTimeout(3*long))

	It("starts on another node without the cloud, and without the registry", func(ctx SpecContext) {
		one, other, straight := nodesOf(weir)[0], nodesOf(weir)[1], nodesOf(weir)[2]
		cloud.pod(ctx, one, "kept", cloud.name("kept"))
		digest := cloud.digest(ctx, "away")
		cloud.pod(ctx, one, "away", digest)

		By("cutting the link")
		cloud.hostsOf(ctx, straight, false)
		l := pools.Link(weir)
		l.Cut(link.Both, "")
		DeferCleanup(l.HealAll)
		const static = "/etc/kubernetes/manifests/kept.yaml"
		Expect(pools.Exec(ctx, other, "sh", "-c", "cat >"+static+" <<'END'\n"+fmt.Sprintf(staticPod, cloud.name("kept"),
			programFolder, podProgram)+"END\n")).Error().NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(pools.Exec(ctx, other, "rm", "-f", static)).Error().NotTo(HaveOccurred())
		}, NodeTimeout(long))
		started := func(node, image string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				out, err := pools.Exec(ctx, node, "ctr", "--namespace=k8s.io", "containers", "ls", "image=="+image)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out).To(ContainSubstring(image))
			}).WithTimeout(long).WithPolling(poll).Should(Succeed())
		}
		started(other, cloud.name("kept"))
		out, err := pullStraight(ctx, straight, cloud.name("kept"))
		Expect(err).To(HaveOccurred(), "the stock way pulls without the link: %s", out)
		l.HealAll()

		By("ending the registry")
		Eventually(ctx, func(g Gomega) { steady(ctx, g) }).WithTimeout(long).WithPolling(poll).Should(Succeed())
		cloud.registry.Kill()
		is := cloud.place(ctx, other, "away", digest)
		Eventually(ctx, func(g Gomega) { // a pull by digest is the registry's to allow while the cloud is there
			p := is(g)
			g.Expect(p.Status.ContainerStatuses).To(HaveLen(1))
			waiting := p.Status.ContainerStatuses[0].State.Waiting
			g.Expect(waiting).NotTo(BeNil())
			g.Expect(waiting.Reason).To(Or(Equal("ErrImagePull"), Equal("ImagePullBackOff")))
			g.Expect(waiting.Message).NotTo(ContainSubstring("media type"))
		}).WithTimeout(long).WithPolling(poll).Should(Succeed())
		l.Cut(link.Both, "")
		started(other, digest)
		out, err = pullStraight(ctx, straight, digest)
		Expect(err).To(HaveOccurred(), "the stock way pulls without the registry: %s", out)
	}, SpecTimeout(3*long))
})

// pullStraight pulls an image on a node that does not ask its hub.
func pullStraight(ctx context.Context, node, image string) (string, error) {
	return pools.Exec(ctx, node, "timeout", "60", "ctr", "--namespace=k8s.io", "images", "pull",
		"--hosts-dir="+kind.Registries, image)
}

// staticPod is one that its kubelet starts without the cloud.
const staticPod = `apiVersion: v1
kind: Pod
metadata: {name: kept, namespace: default}
spec:
  containers:
  - name: static
    image: %s
    command: [%[3]s]
    volumeMounts: [{name: host, mountPath: /host, readOnly: true}]
  volumes: [{name: host, hostPath: {path: %[2]s}}]
`

const mb = 1_000_000

var fifty, small = []int64{25 * mb, 15 * mb, 8 * mb, 2 * mb}, []int64{5 * mb}

// imageCloud is a registry beyond the link of the pool.
type imageCloud struct {
	registry *proc.Process
	address  string
	near     map[string]string // where each node finds it
	pulled   map[string]int64  // what one pull brings, by image
}

// serveImages makes images of such layers, and runs the registry that has them until the specs end.
func serveImages(ctx context.Context, all map[string][]int64) *imageCloud {
	GinkgoHelper()
	spawner, err := proc.New()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(spawner.Close)
	dir, err := spawner.Scratch("images")
	Expect(err).NotTo(HaveOccurred())
	program, err := parts.FindNested(ctx, spawner, func(m string) { GinkgoWriter.Println(m) }, ".ci/release", "registry")
	Expect(err).NotTo(HaveOccurred())
	c := &imageCloud{near: map[string]string{}, pulled: map[string]int64{}}
	args := []string{"--listen=127.0.0.1:0"}
	for i, short := range slices.Sorted(maps.Keys(all)) {
		archive := filepath.Join(dir, short+".tar")
		// Each has layers of its own: no node has any of them from the image before.
		made := image.Image{Name: c.name(short), Seed: GinkgoRandomSeed() + int64(i), Layers: all[short]}
		c.pulled[short], err = made.WriteArchive(archive)
		Expect(err).NotTo(HaveOccurred())
		args = append(args, archive)
	}
	log := filepath.Join(dir, "log")
	c.registry, err = spawner.Start(proc.Spec{
		Name: "registry", Path: program, Args: args, Env: []string{"TMPDIR=" + dir}, LogFile: log,
	})
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() string {
		c.address = kind.FirstAddress(log)
		return c.address
	}).WithTimeout(long).WithPolling(poll).ShouldNot(BeEmpty())
	e, err := pools.Endpoint(nodesOf(stock)[0], runtime.ClassNode) // it ends on this machine
	Expect(err).NotTo(HaveOccurred())
	here, err := url.Parse(e.URL)
	Expect(err).NotTo(HaveOccurred())
	for _, n := range nodesOf(weir) {
		near, err := pools.Link(weir).Proxy(n, runtime.ClassImage, net.JoinHostPort(here.Hostname(), "0"), c.address)
		Expect(err).NotTo(HaveOccurred())
		c.near[n] = near.Addr()
	}
	c.hosts(ctx, true)
	return c
}

// name is what pods call an image.
func (c *imageCloud) name(short string) string { return imagesHost + "/" + short + ":1" }

// digest is its name by its digest, as the registry says.
func (c *imageCloud) digest(ctx context.Context, short string) string {
	GinkgoHelper()
	at := "http://" + c.address + "/v2/" + short + "/manifests/1"
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, at, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	digest := resp.Header.Get("Docker-Content-Digest")
	Expect(digest).To(HavePrefix("sha256:"), resp.Status)
	return imagesHost + "/" + short + "@" + digest
}

// hosts leads the containerd of each node to the registry, by way of its hub or straight as stock nodes.
func (c *imageCloud) hosts(ctx context.Context, byHub bool) {
	GinkgoHelper()
	for _, n := range nodesOf(weir) {
		c.hostsOf(ctx, n, byHub)
	}
}

func (c *imageCloud) hostsOf(ctx context.Context, node string, byHub bool) {
	GinkgoHelper()
	text := fmt.Sprintf("server = %q\n", "http://"+c.near[node])
	if byHub {
		text += fmt.Sprintf("[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n",
			"http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(contract.HubImagesPort)))
	}
	Expect(pools.Exec(ctx, node, "sh", "-c", "mkdir -p "+filepath.Dir(hostsFile)+" && cat >"+hostsFile+" <<'END'\n"+text+
		"END\n")).Error().NotTo(HaveOccurred())
}

// crossed are the bytes of images on the link so far.
func crossed() int64 { return crossedOf(func(link.Counter) bool { return true }) }

// crossedTo are those of a node.
func crossedTo(node string) int64 {
	return crossedOf(func(c link.Counter) bool { return c.Node == node })
}

func crossedOf(those func(link.Counter) bool) int64 {
	return link.Sum(pools.Link(weir).Counters(), func(c link.Counter) bool {
		return c.Class == runtime.ClassImage && those(c)
	})
}

// pulling is how many blobs the hub of each node lets its containerd pull. One that does not answer is missing.
func pulling(ctx context.Context) map[string]int {
	all := map[string]int{}
	for _, n := range nodesOf(weir) {
		if s, err := ask(ctx, runtime.HubOf(n)); err == nil && s.Images != nil {
			all[n] = s.Images.Pulls
		}
	}
	return all
}

// readySince is since when each node of the pool is Ready.
func readySince(ctx context.Context) map[string]time.Time {
	GinkgoHelper()
	all := map[string]time.Time{}
	for _, name := range nodesOf(weir) {
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				Expect(c.Status).To(Equal(corev1.ConditionTrue), name)
				all[name] = c.LastTransitionTime.Time
			}
		}
	}
	return all
}

// rollOut is a DaemonSet of an image on its way to all nodes of the pool.
type rollOut struct {
	name   string
	pulled int64
	before int64 // bytes of images on the link
	began  time.Time
}

// rolledOver is how it went.
type rolledOver struct {
	ratio float64 // bytes over the link by those of one pull
	took  time.Duration
}

// rollOut makes a DaemonSet, does something meanwhile, and waits until all its pods run.
func (c *imageCloud) rollOut(ctx context.Context, short string, meanwhile func(*rollOut)) (is rolledOver) {
	GinkgoHelper()
	r := &rollOut{name: short, pulled: c.pulled[short], before: crossed(), began: time.Now()}
	labels := map[string]string{"app": short}
	spec := imagePod(c.name(short))
	spec.NodeSelector = map[string]string{contract.NodePoolLabel: weir}
	_, err := client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: short},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.AppsV1().DaemonSets(namespace).Delete(ctx, short, metav1.DeleteOptions{})).To(Succeed())
		Eventually(ctx, func() []corev1.Pod { return podsOf(ctx, short) }).WithTimeout(long).WithPolling(poll).Should(
			BeEmpty())
	}, NodeTimeout(long))
	meanwhile(r)
	r.run(ctx, sizes[weir])
	is.took, is.ratio = time.Since(r.began), float64(crossed()-r.before)/float64(r.pulled)
	AddReportEntry(short+": bytes over the uplink, in pulls", fmt.Sprintf("%.3f", is.ratio))
	Expect(is.ratio).To(BeNumerically(">=", 0.97), "nodes had it already, or what crosses is not counted")
	AddReportEntry(short+": s until all pods run", fmt.Sprintf("%.0f", is.took.Seconds()))
	return is
}

// half waits until half of it has crossed the link.
func (r *rollOut) half(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() int64 { return crossed() - r.before }).WithTimeout(long).WithPolling(poll / 5).Should(
		BeNumerically(">=", r.pulled/2))
}

// without has the machine of a node off until the pods of all others run.
func (r *rollOut) without(ctx context.Context, node string) {
	GinkgoHelper()
	hub := part(runtime.HubOf(node))
	Expect(hub.Kill()).To(Succeed())
	r.run(ctx, sizes[weir]-1)
	Expect(hub.Start(ctx)).To(Succeed())
}

// run waits until so many of its pods run.
func (r *rollOut) run(ctx context.Context, want int) {
	GinkgoHelper()
	Eventually(ctx, func() (n int) {
		for _, p := range podsOf(ctx, r.name) {
			if ready(p) {
				n++
			}
		}
		return n
	}).WithTimeout(2*long).WithPolling(poll).Should(BeNumerically(">=", want), r.name)
}

// imagePod is a pod of an image that has no program.
func imagePod(image string) corev1.PodSpec {
	const volume = "host"
	return corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers: []corev1.Container{{
			Name: "app", Image: image, Command: []string{podProgram},
			VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: filepath.Dir(podProgram), ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{
			Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: programFolder}},
		}},
	}
}

// pod runs one of an image on a node until the spec ends.
func (c *imageCloud) pod(ctx context.Context, node, short, image string) {
	GinkgoHelper()
	is := c.place(ctx, node, short, image)
	Eventually(ctx, func(g Gomega) {
		p := is(g)
		g.Expect(ready(p)).To(BeTrue(), "%s: %+v", p.Name, p.Status.ContainerStatuses)
	}).WithTimeout(long).WithPolling(poll).Should(Succeed())
}

// place has a node run a pod of an image until the spec ends, and returns how it is.
func (c *imageCloud) place(ctx context.Context, node, short, image string) func(Gomega) corev1.Pod {
	GinkgoHelper()
	spec := imagePod(image)
	spec.NodeName = node
	name := short + "-" + node
	pods := client.CoreV1().Pods(namespace)
	_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(pods.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	}, NodeTimeout(long))
	return func(g Gomega) corev1.Pod {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return *p
	}
}
