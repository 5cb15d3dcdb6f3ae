package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
)

// mirrorPorts are those of the mirrors of this process, on an address of this process alone: a port that the system
// has said to be free may be taken by the time that a hub asks for it.
var mirrorPorts atomic.Uint32

// mirrors gives hubs a mirror of registries, each with a store of its own.
func (p *poolBed) mirrors(nodes ...string) {
	p.t.Helper()
	id := os.Getpid() // of at most 22 bits: PID_MAX_LIMIT of Linux
	for _, n := range nodes {
		p.hubs[n].config.Images = pooldoor.MirrorOptions{
			BindAddress: fmt.Sprintf("127.%d.%d.%d", 64+id>>16, id>>8&255, id&255),
			Port:        contract.HubImagesPort + int(mirrorPorts.Add(1)), Root: p.t.TempDir(),
		}
	}
}

// atMirror is the URL of something of image app at the mirror of a node.
func (p *poolBed) atMirror(node, path string) string {
	o := p.hubs[node].config.Images
	return "http://" + net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port)) + "/v2/app/" + path
}

// blob puts content into the store of a node, as its containerd does.
func (p *poolBed) blob(node, body string) (digest string) {
	p.t.Helper()
	hex := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
	dir := filepath.Join(p.hubs[node].config.Images.Root, "blobs", "sha256")
	check(p.t, os.MkdirAll(dir, 0o755))
	check(p.t, os.WriteFile(filepath.Join(dir, hex), []byte(body), 0o444))
	return "sha256:" + hex
}

// fromMirror waits until the mirror of a node serves content.
func (p *poolBed) fromMirror(node, digest, body string) {
	p.t.Helper()
	client := testClient(p.t, nil, false)
	url := p.atMirror(node, "blobs/"+digest+"?ns=docker.io")
	eventually(p.t, node+" to serve "+digest, func() bool {
		resp, got := get(p.t, client, url)
		return resp.StatusCode == http.StatusOK && got == body
	})
}

// TestImages: a mirror serves what another member has, with certificates of the pool, by the desk of its coordinator. A
// hub that ends takes nothing along: another one has it by then.
func TestImages(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2", "edge-3")
	p.mirrors("edge-1", "edge-2", "edge-3")
	body := strings.Repeat("a layer of an image ", 100_000)
	digest := p.blob("edge-1", body)
	p.start("edge-1", "edge-2", "edge-3")
	p.fromMirror("edge-1", digest, body)
	p.fromMirror("edge-2", digest, body)
	p.blob("edge-2", body) // its containerd has written what it read
	eventually(t, "the pool to know what edge-2 has", func() bool {
		s := p.hubs["edge-2"].hub.Status().Images
		return s.Desk && s.Holds == 1
	})
	p.stops["edge-1"]()
	p.fromMirror("edge-3", digest, body)
	resp, _ := get(t, testClient(t, nil, false),
		"http://"+p.hubs["edge-3"].hub.HealthAddr().String()+"/metrics")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("metrics: %s", resp.Status)
	}
}

// TestImagesOfLeaderHubs: in a pool without a coordinator the desk is at a leader hub.
func TestImagesOfLeaderHubs(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newNamedBed(t, nodes...)
	p.mirrors(nodes...)
	p.start(nodes...)
	p.name("edge-1")
	p.leads("edge-1")
	p.reads(nodes[1:], "edge-1")
	own := p.blob("edge-1", "what the leader hub has")
	other := p.blob("edge-2", "what a follower has")
	p.fromMirror("edge-3", own, "what the leader hub has")
	p.fromMirror("edge-3", other, "what a follower has")
	p.fromMirror("edge-1", other, "what a follower has")
}

// TestImagesShared: what the Pool says of a registry is obeyed at once, at the node's own mirror and at the port for
// the pool, and so is what it says no more.
func TestImagesShared(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2", "edge-3")
	p.mirrors("edge-1", "edge-2", "edge-3")
	const index = `{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
	digest := p.blob("edge-1", index)
	p.start("edge-1", "edge-2", "edge-3")
	p.fromMirror("edge-2", digest, index)
	client := testClient(t, nil, false)
	ask := func(node, path string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.atMirror(node, path), nil)
		check(t, err)
		req.Header.Set("Accept", "application/vnd.oci.image.index.v1+json")
		resp, err := client.Do(req)
		check(t, err)
		check(t, resp.Body.Close())
		return resp.StatusCode
	}
	told := func(images string) {
		t.Helper()
		p.clouds[0].tell("pool-a", map[string]string{contract.LeaderHubImages: images})
		eventually(t, "hubs to hear of "+images, func() bool {
			for _, n := range []string{"edge-1", "edge-2"} {
				if strings.Join(p.hubs[n].hub.directory.Status().Images, ",") != images {
					return false
				}
			}
			return true
		})
	}
	want := func(about, node, path string, want int) {
		t.Helper()
		if is := ask(node, path); is != want {
			t.Errorf("%s: %s at %s is %d, want %d", about, path, node, is, want)
		}
	}
	blob, tag := "blobs/"+digest, "manifests/v1"
	eventually(t, "a tag that registries said to two nodes to be known in the pool", func() bool {
		for _, n := range []string{"edge-1", "edge-3"} {
			if ask(n, tag+"?ns=a.example") != http.StatusOK { // containerd asks the registry, and goes on by its answer
				ask(n, "manifests/"+digest+"?ns=a.example")
			}
		}
		return ask("edge-2", tag+"?ns=a.example") == http.StatusOK
	})
	want("all is shared", "edge-2", tag+"?ns=a.example", 200)
	told("a.example=judged")
	want("a registry that is asked", "edge-2", tag+"?ns=a.example", 404)
	want("a registry that is asked", "edge-2", blob+"?ns=a.example", 200)
	told("a.example=disabled")
	want("a registry that is not shared", "edge-2", blob+"?ns=a.example", 404)
	want("a registry that is not shared", "edge-1", blob+"?ns=A.example:443", 404)
	want("one that may be it", "edge-2", blob, 404)
	want("another one", "edge-2", blob+"?ns=b.example", 200)
	told("*=disabled")
	want("nothing is shared", "edge-1", blob+"?ns=b.example", 404)
	eventually(t, "the pool to know nothing of edge-1", func() bool {
		s := p.hubs["edge-1"].hub.Status().Images
		return s.Desk && s.Holds == 0
	})
	told("")
	want("all is shared", "edge-1", blob+"?ns=a.example", 200)
	p.fromMirror("edge-2", digest, index)
}

// TestImagesPrompt: an answer begins before there is a byte of it, for containerd waits 30 s for its head. Bytes follow
// as they come to the member that pulls.
func TestImagesPrompt(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	p.mirrors("edge-1", "edge-2")
	p.start("edge-1", "edge-2")
	pulls := func(node string, n int) {
		t.Helper()
		eventually(t, node+" to pull, as its pool knows", func() bool {
			s := p.hubs[node].hub.Status().Images
			return s.Desk && s.Pulls == n
		})
	}
	pulls("edge-1", 0)
	pulls("edge-2", 0)
	const mib = 1 << 20 // containerd writes one at a time
	layer := bytes.Repeat([]byte("0123456789abcdef"), 2*mib/16)
	hex := fmt.Sprintf("%x", sha256.Sum256(layer))
	client := testClient(t, nil, false)
	url := func(node string) string { return p.atMirror(node, "blobs/sha256:"+hex) }
	if resp, _ := get(t, client, url("edge-1")); resp.StatusCode != http.StatusNotFound {
		t.Fatalf("the first: %s, want 404: it is to pull", resp.Status)
	}
	pulls("edge-1", 1)
	dir := filepath.Join(p.hubs["edge-1"].config.Images.Root, "ingest", "a-pull")
	check(t, os.MkdirAll(dir, 0o755))
	data, err := os.Create(filepath.Join(dir, "data")) // the registry is slow: there is no byte
	check(t, err)
	defer data.Close()
	check(t, os.WriteFile(filepath.Join(dir, "total"), []byte(strconv.Itoa(len(layer))), 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "ref"), []byte("k8s.io/1/layer-sha256:"+hex), 0o644))

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // half of what containerd waits
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url("edge-2"), nil)
	check(t, err)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("no answer begins while there is no byte: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(layer)) {
		t.Fatalf("%s, %d bytes, want the layer's %d", resp.Status, resp.ContentLength, len(layer))
	}
	var got []byte
	for _, want := range []int{mib - 64<<10, 2 * mib} { // some wait in buffers for more, or for the end
		_, err := data.Write(layer[:mib])
		check(t, err)
		more := make([]byte, want-len(got))
		if _, err := io.ReadFull(resp.Body, more); err != nil {
			t.Fatalf("%d bytes are not there while more are to come: %v", want, err)
		}
		got = append(got, more...)
	}
	if !bytes.Equal(got, layer) {
		t.Error("other bytes than those of the layer")
	}
}

// TestImagesOptions: what is wrong with flags, and a port that is taken.
func TestImagesOptions(t *testing.T) {
	for want, o := range map[string]pooldoor.MirrorOptions{
		"--images-port":          {BindAddress: "127.0.0.1", Port: 70000, Root: "/x"},
		"an IP address of loop":  {BindAddress: "0.0.0.0", Port: contract.HubImagesPort, Root: "/x"},
		"--images-root":          {BindAddress: "127.0.0.1", Port: contract.HubImagesPort, Root: "x"},
		"want a directory, from": {BindAddress: "::1", Port: contract.HubImagesPort},
	} {
		err := o.Validate()
		usage := (*cli.UsageError)(nil)
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), strings.TrimPrefix(want, "want ")) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	if err := new(pooldoor.MirrorOptions).Validate(); err != nil {
		t.Errorf("none: %v", err)
	}
	b := newBed(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	b.config.Images = pooldoor.MirrorOptions{BindAddress: "127.0.0.1", Port: port, Root: t.TempDir()}
	b.start()
	s := b.hub.Status()
	if len(s.Lacks) != 1 || !strings.Contains(fmt.Sprint(s.Lacks), "--images-port") || s.Images != nil {
		t.Errorf("%+v with a port that is taken, want that the hub lacks it, and goes on", s.Lacks)
	}
}

// TestImagesLiar: a member that says something else of a tag than registries do leads nobody anywhere, itself neither,
// as soon as two others know better.
func TestImagesLiar(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newPoolBed(t, nodes...)
	p.mirrors(nodes...)
	index := func(n int) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[],"schemaVersion":%d}`, n)
	}
	truth, lie := p.blob("edge-1", index(2)), p.blob("edge-3", index(3))
	p.start(nodes...)
	p.fromMirror("edge-2", truth, index(2))
	p.fromMirror("edge-1", lie, index(3))
	client := testClient(t, nil, false)
	ask := func(node, path string) (status int, body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			p.atMirror(node, "manifests/"+path+"?ns=a.example"), nil)
		check(t, err)
		req.Header.Set("Accept", "application/vnd.oci.image.index.v1+json")
		resp, err := client.Do(req)
		check(t, err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(raw)
	}
	digest, err := exchange.ParseDigest(lie)
	check(t, err)
	lies := func() {
		_, err := p.hubs["edge-3"].hub.mirror.Ways.Ask(t.Context(), exchange.ImagesAsk{
			Resolved: []exchange.Resolution{{Tag: "a.example/app:v1", Digest: digest}},
		})
		check(t, err)
	}
	lies()
	for _, node := range []string{"edge-1", "edge-2"} {
		if status, body := ask(node, "v1"); status != http.StatusNotFound {
			t.Errorf("%s is told %d %s, want that it asks the registry", node, status, body)
		}
		ask(node, truth) // which said so
		lies()
	}
	eventually(t, "the pool to believe the two", func() bool {
		status, body := ask("edge-3", "v1")
		if status == http.StatusOK && body != index(2) {
			t.Fatalf("it believes the one: %s", body)
		}
		return status == http.StatusOK
	})
}
