package attack

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/store/table"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

// afterwards is where all that the others left is searched. It is played last.
var afterwards = &place{name: "afterwards", mode: runtime.HubOnly, nodes: 1, hubs: []int{1}, flags: swift()}

func diskAttacks() []Attack {
	return []Attack{
		{
			Number: "70", Position: Thief, Goal: "read Secrets and tokens from a stolen disk",
			Sent: "a search of the hub's folder, after it was killed, for a Secret and a token that the kubelet " +
				"read, as text, base64 and reversed",
			Expected: "none",
			Control:  "the hub itself reads the Secret from it",
			place:    &place{name: "disk", mode: runtime.HubOnly, nodes: 1, hubs: []int{1}, flags: swift()},
			play:     stealDisk,
		},
		{
			Number: "151", Position: Thief, Goal: "read a Secret as something that is no secret, by a disk that was changed",
			Sent: "the row of a Secret that the kubelet read, in the place of a ConfigMap that a pod reads, with the checksum " +
				"of that place; the hub starts without the cloud",
			Expected: "the pod gets the ConfigMap, or nothing",
			Control:  "the pod reads another object, and the kubelet its Secret",
			place:    &place{name: "swapped", mode: runtime.HubOnly, nodes: 1, hubs: []int{1}, flags: swift()},
			play:     swapRows,
		},
		{
			Number: "71", Position: Thief, Goal: "read Secrets, tokens and keys from logs",
			Sent:     "a search of all logs of the attacks before, at level info, for tokens, keys and canaries",
			Expected: "none", Control: "a token that is written into a copy is found",
			place: afterwards, play: searchLogs,
		},
	}
}

// stealDisk searches what a hub keeps.
func stealDisk(ctx context.Context, x *scene) error {
	if err := mounted(ctx, x); err != nil {
		return err
	}
	if err := hadToken(ctx, x); err != nil {
		return err
	}
	given := x.send(ctx, x.kept["token request"].(ask))
	_, token, _ := strings.Cut(given.body, `"token":"`)
	token, _, _ = strings.Cut(token, `"`)
	if len(token) < 100 {
		return fmt.Errorf("the kubelet got no token: %s", given)
	}
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for _, path := range []string{
			"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dcanary", "/api/v1/namespaces/a/secrets/canary",
		} {
			q := ask{as: "kubelet", path: path, header: []string{kubeletAgent, "Accept: " + form}, codes: ok}
			if err := until(ctx, "the kubelet to read "+path, func() bool { return x.send(ctx, q).right(q) }); err != nil {
				return err
			}
		}
	}
	if err := x.flushed(ctx); err != nil {
		return err
	}
	// Once more, so that pages are freed and used again.
	if _, err := x.admin.CoreV1().Secrets("a").Patch(
		ctx, "canary", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"turn":"2"}}}`),
		metav1.PatchOptions{},
	); err != nil {
		return err
	}
	x.send(ctx, ask{as: "kubelet", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent}})
	dir, err := x.diskOfKilled(ctx)
	if err != nil {
		return err
	}
	claims := strings.Split(token, ".")
	for what, text := range map[string]string{
		"the Secret": canary, "the token": token, "the token's signature": claims[2],
	} {
		for how, form := range forms(text) {
			files, err := search(dir, form)
			if err != nil {
				return err
			}
			x.judge(len(files) == 0, "%s as %s in %d files %s", what, how, len(files), strings.Join(files, " "))
		}
	}
	// The Secret is on that disk: without the cloud, the hub that has the key gives it to the kubelet.
	x.site.Link(x.place.name).Cut(link.Both, "")
	defer x.site.Link(x.place.name).HealAll()
	if err := x.hub(1).Start(ctx); err != nil {
		return err
	}
	q := ask{
		as: "kubelet", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent}, codes: ok, has: secret64,
	}
	var a answer
	x.control(within(ctx, patience, func() bool { a = x.send(ctx, q); return a.right(q) }),
		"restarted without the cloud: %s", a)
	return nil
}

// swapRows has the encrypted Secret stand where a ConfigMap stood.
func swapRows(ctx context.Context, x *scene) error {
	secret := ask{
		as: "kubelet", path: "/api/v1/namespaces/a/secrets/canary", header: []string{kubeletAgent}, codes: ok, has: secret64,
	}
	plain := ask{as: "reader", path: plainMaps + "/canary", codes: ok, has: "hello"}
	other := ask{as: "reader", path: slices1, codes: ok, has: "shop-1"}
	if err := mounted(ctx, x); err != nil {
		return err
	}
	// It has the name of the Secret: an object under another name is not taken, whatever it is.
	namesake := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"}, Data: map[string]string{"greeting": "hello"},
	}
	if _, err := x.admin.CoreV1().ConfigMaps("a").Create(ctx, namesake, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, q := range []ask{secret, plain, other} {
		if err := until(ctx, q.as+" to read "+q.path, func() bool { return x.send(ctx, q).right(q) }); err != nil {
			return err
		}
	}
	dir, err := x.diskOfKilled(ctx)
	if err != nil {
		return err
	}
	moved, err := moveRow(dir, "secrets.v1.\x00a\x00canary\x00", "configmaps.v1.\x00a\x00canary\x00")
	if err != nil {
		return err
	}
	x.note("rows that were replaced: %d", moved)
	x.site.Link(x.place.name).Cut(link.Both, "")
	defer x.site.Link(x.place.name).HealAll()
	if err := x.hub(1).Start(ctx); err != nil {
		return err
	}
	for _, q := range []ask{secret, other} {
		var a answer
		x.control(moved > 0 && within(ctx, patience, func() bool { a = x.send(ctx, q); return a.right(q) }),
			"restarted without the cloud, %s: %s", q.path, a)
	}
	a := x.send(ctx, plain)
	x.judge(!strings.Contains(a.body, canary) && !strings.Contains(a.body, secret64), "the pod asks for the ConfigMap: %s",
		a)
	return nil
}

// moveRow writes a row of one object, of which the key begins with from, over those of another one in the store below a
// folder, as the store itself would: with its checksums. It returns how many rows it wrote over.
func moveRow(dir, from, to string) (moved int, err error) {
	var folders []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == table.FileName {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	}); err != nil || len(folders) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%d stores are below %s, want one", len(folders), dir))
	}
	db, _, err := table.Open(table.Config{
		Dir: folders[0], MaxBytes: 64 << 20, Seal: func(_ string, sealed []byte) []byte { return sealed },
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var secret []byte
	if err := db.Walk(table.Objects, from, from, func(key string, row []byte) bool {
		payload, _ := table.Decode(table.Objects, key, row)
		secret = bytes.Clone(payload)
		return true
	}); err != nil || secret == nil {
		return 0, errors.Join(err, fmt.Errorf("no row begins with %q", from))
	}
	changes := table.NewOverlay()
	err = db.Walk(table.Objects, to, to, func(key string, _ []byte) bool {
		changes.Set(table.Objects, key, table.Encode(table.Objects, key, secret))
		moved++
		return true
	})
	if err == nil {
		_, err = db.Commit(changes)
	}
	return moved, err
}

// diskOfKilled kills the hub when all is written, and returns the folder of what it keeps.
func (x *scene) diskOfKilled(ctx context.Context) (dir string, err error) {
	if err := x.flushed(ctx); err != nil {
		return "", err
	}
	if err := x.hub(1).Kill(); err != nil {
		return "", err
	}
	return x.vault.Kept(runtime.HubOf(x.node(1)))
}

// flushed waits until everything is on the disk.
func (x *scene) flushed(ctx context.Context) error {
	return until(ctx, "all to be written", func() bool {
		m := x.metrics(ctx, 1)
		return m != nil && m.Sum("weir_store_pending_bytes") == 0 && m.Sum("weir_hub_authorization_unsaved") == 0
	})
}

// forms are how a text may stand somewhere.
func forms(text string) map[string][]byte {
	reversed := []byte(text)
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	all := map[string][]byte{"text": []byte(text), "reversed": reversed}
	for shift := range 3 { // the three places where it may begin in what is encoded
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, shift), text...))
		all[fmt.Sprintf("base64 from %d", shift)] = []byte(encoded[4 : len(encoded)-4])
	}
	return all
}

// search returns the files below a folder that contain something.
func search(dir string, what []byte) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, what) {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	return files, err
}

// secrets are what no log may contain.
func secrets() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"a token":           regexp.MustCompile(`eyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`),
		"half a token":      regexp.MustCompile(`eyJhbGciOi[A-Za-z0-9_-]{16,}`),
		"a private key":     regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`),
		"a Secret":          regexp.MustCompile(canary + "|" + secret64),
		"a bearer header":   regexp.MustCompile(`(?i)bearer [A-Za-z0-9._~+/-]{20,}`),
		"an invented token": regexp.MustCompile(`forged-[0-9]+|crowd-[0-9]+`),
	}
}

func searchLogs(ctx context.Context, x *scene) error {
	for _, q := range []ask{ // at least these were asked
		{as: "reader", path: slices1}, {as: "other", path: slices1}, {as: "kubelet", path: "/api/v1/nodes/{node}"}, {
			wire: withTrick("/version", "forged-1", tricks()[0]),
		},
		{as: "reader", path: "/api/v1/secrets?token=x"}, {
			as: "reader", method: http.MethodPost, path: "/api/v1/namespaces/a/secrets",
			body: `{"stringData":{"a":"` + canary + `"}}`,
		},
	} {
		x.send(ctx, q)
	}
	logs, err := filepath.Glob(filepath.Join(x.vault.Logs(), "*.log"))
	if err != nil {
		return err
	}
	searched := 0
	for _, path := range logs {
		if strings.Contains(path, "audit") {
			continue // kube-apiserver's own
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		searched++
		for what, pattern := range secrets() {
			if found := pattern.Find(data); found != nil {
				x.judge(false, "%s in %s: %.24s…", what, filepath.Base(path), found)
			}
		}
	}
	x.judge(true, "%d logs searched", searched)
	reader, err := x.who("reader")
	if err != nil {
		return err
	}
	found := 0
	for _, pattern := range secrets() {
		if pattern.MatchString("a line with Bearer " + reader.token + " and " + canary) {
			found++
		}
	}
	x.control(found >= 4 && searched > 3, "%d of the patterns fit a line with a token and a Secret", found)
	return nil
}
