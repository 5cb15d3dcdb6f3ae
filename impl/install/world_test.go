package install

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/install/host"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	containerdUnit = "/usr/lib/systemd/system/" + host.ContainerdService
	containerdText = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\n" +
		"config_path = \"/etc/containerd/certs.d\"\n"

	nodeName  = "edge-1"
	ownConfig = "/etc/kubernetes/kubelet.conf"
	// kubeadm's unit, as its packages have it.
	kubeletUnit = "/usr/lib/systemd/system/kubelet.service"
	kubeadmDrop = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	kubeadmText = `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf ` +
		`--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// authorityPair signs what a test needs.
type authorityPair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB, name string) *authorityPair {
	t.Helper()
	a := &authorityPair{}
	cert, _, certPEM, key := issue(t, nil, pkix.Name{CommonName: name}, true, time.Hour)
	a.cert, a.key, a.pem = cert, key, certPEM
	return a
}

func issue(t testing.TB, by *authorityPair, name pkix.Name, ca bool, life time.Duration) (*x509.Certificate,
	tls.Certificate, []byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	check(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: name, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), IsCA: ca,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	check(t, err)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return cert, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

func pairPEM(t testing.TB, p tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.PrivateKey)
	check(t, err)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
}

// world is a node of kubeadm's with a systemd, a kubelet and a hub that do as the real ones do towards an installer,
// and a cloud.
type world struct {
	t     testing.TB
	root  string
	ca    *authorityPair
	cloud *httptest.Server
	ports Ports

	mu          gosync.Mutex
	token, user string         // who shows the token is the user; "": only certificates count
	label       string         // of the Node
	lease       int            // version
	said        map[string]any // the condition; nil: there is none
	events      []string
	proxies     map[string]time.Time // pods of kube-proxy, and since when they run
	pods        map[string]*running  // others
	address     string               // that the machine has beside its own
	runtime     string               // of containers, as the Node has it
	six         bool                 // the cluster's Services have IPv6 addresses
	noIP        bool                 // the machine has no ip of iproute2
	coordinates int                  // how often its Pod is still seen on the node
	date        time.Duration        // by which the cloud's clock is ahead
	units       string               // of the kubelet, as systemd has read them
	kubelet     string               // path of the kubeconfig by which it runs; "": it does not
	hub         *fakeHub             // nil: it does not run
	broken      string               // what the hub does wrong
	commands    []string
	changes     []string // since until began
	stop        chan struct{}
	stopped     gosync.WaitGroup
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, root: t.TempDir(), ca: newAuthority(t, "kubernetes"), label: "harbour", lease: 1,
		runtime: "containerd://1.7.27",
		proxies: map[string]time.Time{}, pods: map[string]*running{}, stop: make(chan struct{}),
	}
	for _, p := range []*int{&w.ports.Secure, &w.ports.Health, &w.ports.Pool, &w.ports.Images} {
		*p = freePort(t)
	}
	w.cloud = httptest.NewUnstartedServer(http.HandlerFunc(w.serveCloud))
	_, serving, _, _ := issue(t, w.ca, pkix.Name{CommonName: "kube-apiserver"}, false, time.Hour)
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.cert)
	w.cloud.TLS = &tls.Config{
		Certificates: []tls.Certificate{serving}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots,
		MinVersion: tls.VersionTLS12,
	}
	w.cloud.StartTLS()
	_, mine, _, _ := issue(t, w.ca, pkix.Name{
		CommonName: contract.NodeUserPrefix + nodeName, Organization: []string{contract.NodesGroup},
	}, false, time.Hour)
	for path, text := range map[string]string{
		kubeletUnit: "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n", kubeadmDrop: kubeadmText,
		rotated:                      string(pairPEM(t, mine)),
		"/etc/kubernetes/pki/ca.crt": string(w.ca.pem), "/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\n",
		ownConfig: fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- {name: k, cluster: {server: "+
			"%q, certificate-authority: pki/ca.crt}}\n"+
			"contexts:\n- {name: c, context: {cluster: k, user: u}}\nusers:\n- {name: u, user: {client-certificate: %s, "+
			"client-key: %[2]s}}\n", w.cloud.URL, rotated),
	} {
		w.write(path, text)
	}
	w.write(containerdUnit, "[Service]\nExecStart=/usr/bin/containerd\n")
	w.write(host.ContainerdConfig, containerdText)
	w.write("/opt/weir-hub", "a program")
	check(t, os.Chmod(filepath.Join(w.root, "/opt/weir-hub"), 0o755))
	for _, dir := range []string{units, "/run/systemd/system", "/var/lib", "/usr/local/lib"} {
		check(t, os.MkdirAll(filepath.Join(w.root, dir), 0o755))
	}
	w.boot()
	w.stopped.Go(w.beat)
	t.Cleanup(func() {
		close(w.stop)
		w.mu.Lock()
		w.stopHub()
		w.mu.Unlock()
		w.stopped.Wait()
		w.cloud.Close()
	})
	return w
}

// freePort is a port that no other test takes until this one ends: an abstract unix socket of its name is held.
// Below 32768 the system gives none to an outgoing connection: one could take the port while the hub is restarted.
func freePort(t testing.TB) int {
	t.Helper()
	for {
		port := 12_000 + mathrand.IntN(20_000)
		lock, err := net.Listen("unix", fmt.Sprintf("@weir-test-port/%d", port))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = lock.Close() })
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			check(t, l.Close())
			return port
		}
	}
}

// write is whole at once: the kubelet, which beats meanwhile, would read half a kubeconfig.
func (w *world) write(path, text string) {
	w.t.Helper()
	at := filepath.Join(w.root, path)
	check(w.t, os.MkdirAll(filepath.Dir(at), 0o755))
	check(w.t, disk.WriteFile(at, []byte(text)))
}

// quick is a clock of which tickers run fifty times as fast: what waits looks more often.
type quick struct{ clock.RealClock }

func (quick) NewTicker(d time.Duration) clock.Ticker { return clock.RealClock{}.NewTicker(d / 50) }

func (w *world) installer(change func(*Config)) *Installer {
	w.t.Helper()
	c := Config{
		Pool: "harbour", Coordinator: true, Pods: true, Hub: filepath.Join(w.root, "/opt/weir-hub"), Ports: w.ports,
		Clock: quick{}, Timeout: 10 * time.Second,
		Host: Host{Root: w.root, Run: w.run, Disk: func(string) (uint64, bool, error) { return 1 << 30, false, nil }},
	}
	if change != nil {
		change(&c)
	}
	i, err := New(c)
	check(w.t, err)
	return i
}

// running is a pod that runs since a time.
type running struct {
	since time.Time
	owner string // the kind of its controller; "": it has none
	token bool
	ends  int // how often it is still seen once it is deleted
	gone  bool
}

// ip is what iproute2 does.
func (w *world) ip(args []string) (string, error) {
	switch line := strings.Join(args, " "); {
	case w.noIP:
		return "", errors.New("no such file")
	case line == "-o address show to "+contract.PodsAddress:
		if w.address == "" {
			return "", nil
		}
		return "1: lo    inet " + w.address + " scope host lo\n", nil
	case line == "address del "+contract.PodsAddress+"/32 dev lo" && w.address != "":
		if w.hub != nil {
			w.t.Error("the address is taken away while the hub serves pods there")
		}
		w.address = ""
		return "", nil
	default:
		w.t.Errorf("ip %s", line)
		return "", errors.New("RTNETLINK answers: Cannot assign requested address")
	}
}

// run is systemctl, ip, and the hub's --version.
func (w *world) run(_ context.Context, name string, args ...string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch name {
	case "systemctl":
	case "ip":
		return w.ip(args)
	default:
		return "weir-hub v0.1.0\n", nil
	}
	w.commands = append(w.commands, strings.Join(args, " "))
	service := args[len(args)-1]
	link := filepath.Join(w.root, units, "multi-user.target.wants", service)
	switch args[0] {
	case "is-system-running":
		return "running\n", nil
	case "cat":
		if service == host.ContainerdService {
			text, err := os.ReadFile(filepath.Join(w.root, containerdUnit))
			return "# " + containerdUnit + "\n" + string(text), err
		}
		return w.texts(), nil
	case "is-active":
		if service == hubService && w.hub == nil || service == kubeletService && w.kubelet == "" {
			return "", errors.New("inactive")
		}
	case "daemon-reload":
		w.units = w.texts()
	case "enable":
		_ = os.MkdirAll(filepath.Dir(link), 0o755)
		if err := os.Symlink(hubUnit, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	case "disable":
		_ = os.Remove(link)
	case "restart":
		if service == kubeletService {
			return "", w.startKubelet()
		}
		w.stopHub()
		return "", w.startHub()
	case "stop":
		w.stopHub()
	default:
		w.t.Errorf("systemctl %v is unknown", args)
	}
	return "", nil
}

// texts is what `systemctl cat kubelet.service` prints: a drop-in in /etc hides one of the same name in /run.
func (w *world) texts() string {
	var b strings.Builder
	drops := map[string]string{}
	for _, dir := range []string{filepath.Dir(kubeadmDrop), volatile, lasting} {
		all, _ := filepath.Glob(filepath.Join(w.root, dir, "*.conf"))
		for _, path := range all {
			drops[filepath.Base(path)] = path
		}
	}
	for _, path := range append([]string{filepath.Join(w.root, kubeletUnit)},
		slices.Collect(func(yield func(string) bool) {
			for _, name := range slices.Sorted(maps.Keys(drops)) {
				if !yield(drops[name]) {
					return
				}
			}
		})...) {
		text, err := os.ReadFile(path)
		if err == nil {
			fmt.Fprintf(&b, "# %s\n%s\n", strings.TrimPrefix(path, w.root), text)
		}
	}
	return b.String()
}

// startKubelet starts it as systemd would, by the units that were read.
func (w *world) startKubelet() error {
	w.kubelet = ""
	u, err := host.ParseUnit(w.units, "none.conf", host.UnitFilesBelow(w.root, maxFile))
	if err != nil {
		return err
	}
	w.kubelet = u.Kubeconfig
	if _, err := clientcmd.LoadFromFile(filepath.Join(w.root, w.kubelet)); err != nil {
		w.kubelet = ""
		return err
	}
	return nil
}

// server is where the kubelet calls; "": nowhere.
func (w *world) server() string {
	if w.kubelet == "" {
		return ""
	}
	c, err := clientcmd.LoadFromFile(filepath.Join(w.root, w.kubelet))
	if err != nil {
		return ""
	}
	return c.Clusters[c.Contexts[c.CurrentContext].Cluster].Server
}

// hasAPI reports whether what the kubelet calls answers.
func (w *world) hasAPI() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.server() {
	case w.cloud.URL:
		return true
	case "https://" + local(w.ports.Secure):
		return w.hub != nil
	}
	return false
}

// beat is the kubelet's heartbeat.
func (w *world) beat() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		switch w.server() {
		case w.cloud.URL:
			w.lease++
		case "https://" + local(w.ports.Secure):
			if w.hub != nil && w.broken != "deaf" {
				w.lease++
				w.hub.passed = time.Now()
			}
		}
		w.mu.Unlock()
	}
}

// boot is a machine that starts: /run is empty, the hub starts if it is enabled, and the kubelet.
func (w *world) boot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopHub()
	w.address = ""
	check(w.t, os.RemoveAll(filepath.Join(w.root, "/run")))
	check(w.t, os.MkdirAll(filepath.Join(w.root, "/run/systemd/system"), 0o755))
	w.units = w.texts()
	if _, err := os.Stat(filepath.Join(w.root, units, "multi-user.target.wants", hubService)); err == nil ||
		errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(w.root, units, "multi-user.target.wants", hubService)); err == nil {
			_ = w.startHub()
		}
	}
	_ = w.startKubelet()
}

// fakeHub serves as a hub does to an installer.
type fakeHub struct {
	door, health *http.Server
	at           []net.Listener
	passed       time.Time
	program      string // what was in its program as it was started
	images       *HubImages
}

// program is what is in the program of the hub that systemd starts: a drop-in in /run goes before the unit.
func (w *world) program() string {
	path := hubProgram
	if text, err := os.ReadFile(filepath.Join(w.root, hubTrial+dropIn)); err == nil {
		_, path, _ = strings.Cut(string(text), "ExecStart=\nExecStart=")
		path, _, _ = strings.Cut(path, " ")
	}
	text, err := os.ReadFile(filepath.Join(w.root, path))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// imagesOfHub is what the configuration of the hub that systemd starts says of the mirror.
func (w *world) imagesOfHub() *HubImages {
	path := hubConfig
	if _, err := os.Stat(filepath.Join(w.root, hubTrial+dropIn)); err == nil {
		path = hubNext
	}
	var flags struct {
		Port int `json:"images-port"`
	}
	text, err := os.ReadFile(filepath.Join(w.root, path))
	check(w.t, errors.Join(err, yaml.Unmarshal(text, &flags)))
	if flags.Port == 0 {
		return nil
	}
	return &HubImages{local(flags.Port)}
}

func (w *world) startHub() error {
	needs := []string{hubUnit, hubProgram, hubConfig, rotated}
	if w.token != "" {
		needs[len(needs)-1] = localPair
	}
	for _, path := range needs {
		if _, err := os.Stat(filepath.Join(w.root, path)); err != nil {
			return err
		}
	}
	if w.broken == "dead" || strings.HasPrefix(w.program(), "a broken") {
		return errors.New("Job for weir-hub.service failed")
	}
	if text, err := os.ReadFile(filepath.Join(w.root, hubUnit)); err == nil &&
		bytes.Contains(text, []byte("address replace "+contract.PodsAddress+"/32 dev lo")) {
		w.address = contract.PodsAddress
	}
	signs := newAuthority(w.t, contract.NodeAuthorityPrefix+nodeName)
	_, serving, _, _ := issue(w.t, signs, pkix.Name{CommonName: contract.HubName}, false, time.Hour)
	w.write(authority, string(signs.pem))
	w.write(authorityKey, "a key")
	w.write(storeKey, "a key")
	w.write(hubData+"/store/data", "what it keeps")
	h := &fakeHub{program: w.program(), images: w.imagesOfHub()}
	h.health = &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if req.URL.Path == "/readyz" && (w.broken == "unready" || strings.HasPrefix(h.program, "an unready")) {
			http.Error(rw, "endpoints.v1. is not synced yet", http.StatusServiceUnavailable)
			return
		}
		var s HubStatus
		s.Node, s.Pool, s.Role, s.Source, s.Heartbeat.Passed = nodeName, "harbour", "Follower", "coordinator", h.passed
		s.Images = h.images
		_ = json.NewEncoder(rw).Encode(s)
	})}
	h.door = &http.Server{
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
		},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if w.broken == "shut" {
				http.Error(rw, "Unauthorized", http.StatusUnauthorized)
			}
		}),
	}
	health, err := net.Listen("tcp", local(w.ports.Health))
	if err != nil {
		return err
	}
	door, err := net.Listen("tcp", local(w.ports.Secure))
	if err != nil {
		return errors.Join(err, health.Close())
	}
	w.stopped.Go(func() { _ = h.health.Serve(health) })
	w.stopped.Go(func() { _ = h.door.ServeTLS(door, "", "") })
	w.hub, h.at = h, []net.Listener{door, health}
	return nil
}

func (w *world) stopHub() {
	if w.hub != nil {
		_, _ = w.hub.health.Close(), w.hub.door.Close()
		for _, l := range w.hub.at { // a server that has not begun does not know its listener
			_ = l.Close()
		}
		w.hub = nil
	}
}

// serveCloud is what a kube-apiserver answers to a node.
func (w *world) serveCloud(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	rw.Header().Set("Date", time.Now().Add(w.date).UTC().Format(http.TimeFormat))
	rw.Header().Set("Content-Type", "application/json")
	answer := func(v any) { _ = json.NewEncoder(rw).Encode(v) }
	type object = map[string]any
	if len(req.TLS.PeerCertificates) == 0 && (w.token == "" || req.Header.Get("Authorization") != "Bearer "+w.token) {
		rw.WriteHeader(http.StatusUnauthorized)
		answer(object{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "message": "Unauthorized",
			"code": 401,
		})
		return
	}
	if err := selects(req.URL); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		answer(object{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "BadRequest", "message": err.Error(),
			"code": 400,
		})
		return
	}
	switch path := req.URL.Path; {
	case path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		answer(object{
			"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
			"status": object{"userInfo": object{"username": w.user, "groups": []string{contract.NodesGroup}}},
		})
	case path == "/api/v1/nodes/"+nodeName:
		labels := object{}
		if w.label != "" {
			labels[contract.NodePoolLabel] = w.label
		}
		answer(object{
			"kind": "Node", "apiVersion": "v1", "metadata": object{"name": nodeName, "labels": labels},
			"status": object{
				"addresses": []object{{"type": "InternalIP", "address": "10.0.0.1"}},
				"nodeInfo":  object{"containerRuntimeVersion": w.runtime},
			},
		})
	case path == "/api/v1/nodes/"+nodeName+"/status" && req.Method == http.MethodPatch:
		var patch struct {
			Status struct{ Conditions []map[string]any }
		}
		if err := json.Unmarshal(body, &patch); err != nil || len(patch.Status.Conditions) != 1 {
			w.t.Errorf("patch %s: %v", body, err)
			return
		}
		if w.said = patch.Status.Conditions[0]; w.said["$patch"] == "delete" {
			w.said = nil
		}
		answer(object{"kind": "Node", "apiVersion": "v1", "metadata": object{"name": nodeName}})
	case path == "/api/v1/namespaces/kube-system/services/leader-hub-harbour":
		answer(object{"kind": "Service", "apiVersion": "v1", "metadata": object{
			"name": "leader-hub-harbour", "annotations": object{
				contract.LeaderHubMode: contract.ModeCoordinator, contract.LeaderHubCoordinators: "https://10.0.0.5:10270",
			},
		}})
	case path == "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+nodeName:
		answer(object{
			"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
			"metadata": object{"name": nodeName, "resourceVersion": fmt.Sprint(w.lease)},
		})
	case path == "/api/v1/namespaces/default/events" && req.Method == http.MethodPost:
		w.events = append(w.events, string(body)) // protobuf, in which texts stand as they are
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write(body)
	case path == "/api/v1/namespaces/kube-system/pods":
		items := []object{}
		if w.coordinates > 0 {
			w.coordinates-- // weir-manager takes it away after a while
			items = append(items, object{"metadata": object{"name": "weir-coordinator-1"}})
		}
		answer(object{"kind": "PodList", "apiVersion": "v1", "items": items})
	case path == "/api/v1/pods" && req.URL.Query().Get("fieldSelector") == "spec.nodeName="+nodeName:
		answer(object{"kind": "PodList", "apiVersion": "v1", "items": w.listPods()})
	case strings.HasPrefix(path, "/api/v1/namespaces/") && strings.Contains(path, "/pods/") &&
		req.Method == http.MethodDelete:
		if w.hub == nil {
			w.t.Error("a pod that calls the hub is started anew after the hub is gone")
		}
		name := filepath.Base(path)
		delete(w.proxies, name)
		if p := w.pods[name]; p != nil {
			p.gone = true
		}
		answer(object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case path == "/api/v1/namespaces/default/services/kubernetes":
		at := "10.96.0.1"
		if w.six {
			at = "fd00::1"
		}
		answer(object{
			"kind": "Service", "apiVersion": "v1", "metadata": object{"name": "kubernetes"}, "spec": object{"clusterIP": at},
		})
	default:
		rw.WriteHeader(http.StatusNotFound)
		answer(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	}
}

// selects is what a kube-apiserver says to selectors: it refuses those of fields that the kind has not.
func selects(u *url.URL) error {
	q := u.Query()
	if _, err := labels.Parse(q.Get("labelSelector")); err != nil {
		return err
	}
	selector, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return err
	}
	known := map[string]bool{"metadata.name": true, "metadata.namespace": true}
	if kind := relay.FindBuiltin("", "v1", filepath.Base(u.Path)); kind != nil {
		for field := range kind.Fields {
			known[field] = true
		}
	}
	for _, r := range selector.Requirements() {
		if !known[r.Field] {
			return fmt.Errorf("field label not supported: %s", r.Field)
		}
	}
	return nil
}

// TestWorldRefuses: the cloud of these tests takes no selector that a real one does not.
func TestWorldRefuses(t *testing.T) {
	for query, taken := range map[string]bool{
		"pods?fieldSelector=spec.nodeName%3Da": true, "pods?fieldSelector=spec.NodeName%3Da": false,
		"pods?fieldSelector=metadata.name%3Da": true, "pods?fieldSelector=spec.nodeName": false,
		"nodes?fieldSelector=spec.nodeName%3Da": false, "pods?labelSelector=a%3Db": true, "pods?labelSelector=%3Db": false,
	} {
		u, err := url.Parse("/api/v1/" + query)
		check(t, err)
		if err := selects(u); (err == nil) != taken {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// listPods are all pods of the node.
func (w *world) listPods() (items []map[string]any) {
	type object = map[string]any
	item := func(namespace, name, labels string, since time.Time) object {
		return object{
			"metadata": object{"namespace": namespace, "name": name, "uid": "uid-" + name, "labels": object{"k8s-app": labels}},
			"status": object{
				"phase": "Running", "containerStatuses": []object{
					{"state": object{"running": object{"startedAt": since.UTC().Format(time.RFC3339)}}},
				},
			},
		}
	}
	items = []object{}
	for name, since := range w.proxies {
		items = append(items, item("kube-system", name, "kube-proxy", since))
	}
	for name, p := range w.pods {
		if p.gone {
			if p.ends--; p.ends < 0 {
				delete(w.pods, name)
				continue
			}
		}
		one := item("default", name, "", p.since)
		if p.owner != "" {
			one["metadata"].(object)["ownerReferences"] = []object{{"kind": p.owner, "name": "x", "controller": true}}
		}
		if p.token {
			one["spec"] = object{
				"volumes": []object{
					{
						"name": "kube-api-access", "projected": object{
							"sources": []object{{"serviceAccountToken": object{"path": "token"}}},
						},
					},
				},
			}
		}
		items = append(items, one)
	}
	return items
}

// snapshot is all that is on the machine.
func (w *world) snapshot() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	if w.address != "" {
		out["address "+w.address] = ""
	}
	check(w.t, filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(bytes.TrimSuffix(b, nil))
		}
		out[strings.TrimPrefix(path, w.root)] = info.Mode().String() + " " + text
		return nil
	}))
	return out
}

func chmod(path string) error { return os.Chmod(path, 0o755) }

// differ are the paths at which two of them differ.
func differ(a, b map[string]string) (out []string) {
	for path := range a {
		if got, ok := b[path]; !ok {
			out = append(out, "- "+path)
		} else if got != a[path] {
			out = append(out, "! "+path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			out = append(out, "+ "+path)
		}
	}
	slices.Sort(out)
	return out
}
