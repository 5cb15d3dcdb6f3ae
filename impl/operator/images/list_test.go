package images

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
)

var update = flag.Bool("update", false, "write testdata")

func sha(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// image is one as a kubelet tells it.
func image(size int64, names ...string) corev1.ContainerImage {
	return corev1.ContainerImage{Names: names, SizeBytes: size}
}

func node(pool, name string, images ...corev1.ContainerImage) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.NodePoolLabel: pool}},
		Status:     corev1.NodeStatus{Images: images},
	}
}

// cluster has a tag that leads to two images, an image without a tag, and a kubelet that tells of as many as it may.
func cluster() *commands.View {
	app := image(52_000_000, "registry.example/app@"+sha("a"), "registry.example/app:1")
	full := []corev1.ContainerImage{app}
	for i := range told - 1 {
		full = append(full, image(int64(i), fmt.Sprintf("filler.example/f%02d:1", i)))
	}
	return &commands.View{Nodes: []corev1.Node{
		node("harbour", "edge-1", app,
			image(2_000_000, "docker.io/library/busybox@"+sha("b"), "docker.io/library/busybox:1.36")),
		node("harbour", "edge-2", app, image(9_000, "registry.example/untagged@"+sha("c")), image(7)),
		node("harbour", "edge-3", image(53_000_000, "registry.example/app@"+sha("d"), "registry.example/app:1")),
		node("harbour", "edge-4"),
		node("quay", "quay-1", full...),
		node("", "nowhere", app),
	}}
}

// TestList: what people and programs see of the images of nodes, and of one that was asked for and no node has.
func TestList(t *testing.T) {
	asked, err := names([]string{
		"registry.example/app:1", "busybox:1.36", "nobody.example/has:2", "registry.example/app@" + sha("d"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"table", "wide", "json", "yaml"} {
		var got bytes.Buffer
		if err := stockOf(cluster(), "harbour", nil).Write(&got, form); err != nil {
			t.Fatal(err)
		}
		golden(t, "list."+form, got.Bytes())
	}
	var got bytes.Buffer
	if err := stockOf(cluster(), "", asked).Write(&got, "wide"); err != nil {
		t.Fatal(err)
	}
	golden(t, "asked.wide", got.Bytes())
}

// golden compares what was written with a file of testdata, or makes it that file with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}
