package directory

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// TestSharing: a rule is about all names of its registry, and other registries go by that of all others.
func TestSharing(t *testing.T) {
	for _, test := range []struct {
		told, registry, want string
		shares               bool
	}{
		{"", "docker.io", "enabled", true},
		{"", "", "enabled", true},
		{"a.example=disabled", "a.example", "disabled", true},
		{"a.example=disabled", "A.Example", "disabled", true},
		{"a.example=disabled", "a.example:443", "disabled", true},
		{"a.example=disabled", "a.example.:0443", "disabled", true},
		{"a.example=disabled", "a.example:5000", "enabled", true},
		{"a.example:5000=disabled", "a.example:05000", "disabled", true},
		{"a.example:5000=disabled", "a.example", "enabled", true},
		{"docker.io=judged", "registry-1.docker.io", "judged", true},
		{"docker.io=judged", "index.docker.io:443", "judged", true},
		{"docker.io=judged", "b.example", "enabled", true},
		{"docker.io=judged", "", "judged", true},
		{"a.example=disabled,docker.io=judged", "", "disabled", true}, // it may be one of a.example
		{"*=disabled,docker.io=enabled", "", "disabled", true},
		{"*=disabled,docker.io=enabled", "docker.io", "enabled", true},
		{"*=disabled,docker.io=enabled", "b.example", "disabled", true},
		{"*=judged", "b.example", "judged", true},
		{"*=disabled", "b.example", "disabled", false},
		{"*=disabled,docker.io=disabled", "b.example", "disabled", false},
		{"*=disabled,docker.io=judged", "b.example", "disabled", true},
		{"[fd00::7]:5000=disabled", "[FD00:0::7]:5000", "disabled", true},
		{"[fd00::7]=disabled", "[fd00::7]:443", "disabled", true},
		{"10.0.0.7=disabled", "[::ffff:10.0.0.7]", "disabled", true},
	} {
		e, err := Parse("harbour", object(func(o *corev1.Endpoints) {
			o.Annotations = map[string]string{contract.LeaderHubImages: test.told}
		}), 7)
		if is := e.Images.Sharing(test.registry); err != nil || is != test.want || e.Images.Shares() != test.shares {
			t.Errorf("%q: images of %q are %s, any are shared: %v, %v; want %s, %v", test.told, test.registry, is,
				e.Images.Shares(), err, test.want, test.shares)
		}
	}
}

// TestImagesTold: what is told of images is valid at once, through a restart too, and ends when it is told no more.
func TestImagesTold(t *testing.T) {
	p, file := newPool(), t.TempDir()+"/directory"
	d, number := p.holder(file, io.Discard), uint64(4)
	tell := func(images string) {
		t.Helper()
		number++
		e := must(Parse("harbour", object(func(o *corev1.Endpoints) {
			o.Annotations[contract.LeaderHubImages] = images
		}), number))
		changed := d.Changed()
		if _, err := d.Take(must(e.Sign(p.authorities[0]))); err != nil {
			t.Fatal(err)
		}
		<-changed
	}
	if s := d.Now().Images.Sharing("docker.io"); s != contract.ImagesEnabled {
		t.Errorf("by flags: %s", s)
	}
	tell("docker.io=judged")
	for about, now := range map[string]*Directory{"told": d, "after a restart": p.holder(file, io.Discard)} {
		if s, all := now.Now().Images.Sharing("docker.io"), now.Status().Images; s != contract.ImagesJudged ||
			strings.Join(all, ",") != "docker.io=judged" {
			t.Errorf("%s: %s, %v", about, s, all)
		}
	}
	tell("")
	if s := d.Now().Images.Sharing("docker.io"); s != contract.ImagesEnabled || d.Status().Images != nil {
		t.Errorf("told no more: %s", s)
	}
	bad := Entry{Pool: "harbour", Version: 9, Images: ImageRules{{"docker.io", "maybe"}}}
	if line, err := bad.Sign(p.authorities[0]); err == nil {
		t.Errorf("%s is signed", line)
	}
}

// FuzzRegistryOf: a registry has one name, whatever it is made of.
func FuzzRegistryOf(f *testing.F) {
	for _, s := range []string{"a.example:443", "[fd00::7]:5000", "registry-1.docker.io", "a:0", ":", "[", "a.:1", "]:9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		once := RegistryOf(host)
		if !hosts.MatchString(strings.ToLower(host)) {
			return
		}
		if again := RegistryOf(once); again != once || !hosts.MatchString(once) {
			t.Errorf("%q is %q, and that is %q", host, once, again)
		}
	})
}
