package hub

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/store/queue"
)

// What must not be on a disk: a Secret, a token that the kubelet asked for, one that a pod showed, and what a node
// wrote while the cloud was away.
const (
	canarySecret = "canary-of-a-secret-0123456789"
	canaryIssued = "canary-of-an-issued-token-0123456789"
	canaryShown  = "canary-of-a-shown-token-0123456789"
	canaryWrite  = "canary-of-a-write-0123456789"
)

// canary answers a get of a Secret and a request for a token.
func canary(w http.ResponseWriter, req *http.Request, resource string) {
	var answer any = &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "canary", UID: "u", ResourceVersion: fmt.Sprint(time.Now().UnixNano()),
		},
		Data: map[string][]byte{"key": []byte(canarySecret)},
	}
	if resource != "secrets" {
		tr := &authenticationv1.TokenRequest{}
		_ = json.NewDecoder(req.Body).Decode(tr)
		tr.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
		tr.Name, tr.Namespace, tr.Status.Token = "sa", "default", canaryIssued
		tr.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		answer = tr
	}
	w.Header().Set("Content-Type", "application/json")
	if resource != "secrets" {
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// leaks are the files of the hub in which a canary stands, in the clear or in base64.
func (b *bed) leaks() (found []string) {
	b.t.Helper()
	check(b.t, filepath.Walk(b.config.DataDir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, c := range []string{canarySecret, canaryIssued, canaryShown, canaryWrite} {
			encoded := base64.StdEncoding.EncodeToString([]byte(c))
			if strings.Contains(string(content), c) || strings.Contains(string(content), encoded[:len(encoded)-4]) {
				found = append(found, filepath.Base(path)+" has a "+c)
			}
		}
		return err
	}))
	return found
}

// passCanaries lets a hub keep all that it keeps of these, several times over, so that free pages have them as well.
func (b *bed) passCanaries(cert *tls.Certificate) {
	b.t.Helper()
	node, pod := b.client(cert), b.client(nil)
	for range 5 {
		flushes := b.hub.store.Stats().Flushes
		if resp, body := get(b.t, node, b.url()+"/api/v1/namespaces/default/secrets/canary", "Accept",
			"application/json"); resp.StatusCode != http.StatusOK {
			b.t.Fatalf("a Secret: %s %s", resp.Status, body)
		}
		tr, err := json.Marshal(&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{"a"}, BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1", Name: "web", UID: "u",
			},
		}})
		check(b.t, err)
		resp, body := do(b.t, node, http.MethodPost, b.url()+"/api/v1/namespaces/default/serviceaccounts/sa/token", tr,
			"Content-Type", "application/json")
		if resp.StatusCode != http.StatusCreated {
			b.t.Fatalf("a token: %s %s", resp.Status, body)
		}
		get(b.t, pod, b.url()+"/api/v1/endpoints", "Authorization", "Bearer "+canaryShown)
		eventually(b.t, "the store to be written", func() bool {
			b.hub.store.Flush()
			return b.hub.store.Stats().Flushes > flushes
		})
	}
	check(b.t, b.hub.store.Queue().Put(queue.Write{
		Target: queue.Target{
			Kind: queue.NodeMetadata, Name: "other",
		}, Ours: []byte(`{"annotations":{"a":"` + canaryWrite + `"}}`),
	}))
}

// TestNoLeak: whoever copies the data of a hub has no Secret, no token and no write of its node: not in free pages, not
// in what was set aside, not from the time before there was a key. Without a key they are there, which shows that the
// test would find them.
func TestNoLeak(t *testing.T) {
	b, link := offlineBed(t)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	run := func(f func()) {
		t.Helper()
		stop := b.start()
		defer stop()
		f()
	}
	served := func() {
		t.Helper()
		b.away()
		resp, body := get(t, b.client(&cert), b.url()+"/api/v1/namespaces/default/secrets/canary", "Accept",
			"application/json")
		if resp.StatusCode != http.StatusOK ||
			!strings.Contains(body, base64.StdEncoding.EncodeToString([]byte(canarySecret))) {
			t.Errorf("without the cloud the Secret is %s", resp.Status)
		}
	}
	run(func() { b.here(); b.passCanaries(&cert) })
	if found := b.leaks(); len(found) > 0 {
		t.Errorf("by default: %v", found)
	}
	link.set(true)
	run(served)
	link.set(false)

	b.config.DataDir, b.config.StoreKeyFile = filepath.Join(b.dir, "plaintext"), NoKey
	run(func() { b.here(); b.passCanaries(&cert) })
	if found := b.leaks(); len(found) != 3 { // the shown token is never kept, but as a hash
		t.Errorf("the test finds nothing in the clear: %v", found)
	}
	b.config.StoreKeyFile = ""
	link.set(true)
	run(served)
	if found := b.leaks(); len(found) > 0 {
		t.Errorf("after a key came: %v", found)
	}

	b.config.StoreKeyFile = NoKey
	link.set(false)
	run(func() { b.here(); b.passCanaries(&cert) })
	for _, name := range []string{"store/cache.db", "store/queue.log"} {
		path := filepath.Join(b.config.DataDir, name)
		content, err := os.ReadFile(path)
		check(t, err)
		for at := 3; at < min(len(content), 5000); at += 50 {
			content[at] ^= 0xff
		}
		check(t, os.WriteFile(path, content, 0o600))
	}
	b.config.StoreKeyFile = ""
	run(func() {})
	if found := b.leaks(); len(found) > 0 {
		t.Errorf("after damage: %v", found)
	}
}

// TestPrivateFolder: the folder of the data is its owner's alone, whatever it was; a key that others can read, or that
// lies in it, is refused.
func TestPrivateFolder(t *testing.T) {
	b, _ := offlineBed(t)
	check(t, os.MkdirAll(b.config.DataDir, 0o755))
	check(t, os.Chmod(b.config.DataDir, 0o755))
	b.start()()
	info, err := os.Stat(b.config.DataDir)
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the data: %v", info.Mode())
	}
	key := func(name string, mode os.FileMode) string {
		path := filepath.Join(b.dir, name)
		check(t, os.WriteFile(path, []byte(strings.Repeat("k", 32)), mode))
		check(t, os.Chmod(path, mode))
		return path
	}
	for _, test := range []struct{ given, etc, says string }{
		{given: key("open", 0o644), says: "--store-key-file"}, {given: key("open", 0o644), says: "chmod 600"},
		{given: key("data/key", 0o600), says: "a copy of that has both"},
		{given: filepath.Join(b.dir, "none"), says: "no such file"},
		{given: filepath.Join(b.dir, "none"), says: "none, which encrypts nothing"},
		{etc: b.config.DataDir, says: storeKey + " in --etc-dir"},
	} {
		c := b.config
		c.StoreKeyFile, c.EtcDir = test.given, cmp.Or(test.etc, c.EtcDir)
		h, err := New(c)
		if err == nil {
			b.run(h)()
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
