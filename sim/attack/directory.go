package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// forgedText stands where a ConfigMap of the stage has "hello".
const forgedText = "forged-9d2b"

// forgedNumber is that of what a liar says: it is of the far future.
const forgedNumber = "9000000000000000000"

// forgedEntry is what a liar says that the pool is told about itself.
type forgedEntry map[string]any

// directoryAttacks are those of a leader that lies about the pool itself.
func directoryAttacks() []Attack {
	at := func(number string, flags parts.Flags) *place {
		p := lied(number)
		p.coordinatorFlags = flags
		return p
	}
	const asked = "where it is asked, with Weir-Live: true, and by POST at the coordinator"
	placed := parts.Flags{"placement": "p"}
	all := []Attack{
		{
			Number: "80", Goal: "serve the pool more than it shares", Sent: "an entry whose scope has ConfigMaps, " + asked +
				"; a forged ConfigMap",
			place: at("80", nil),
			play: func(ctx context.Context, x *scene) error {
				return x.misleads(ctx, func(string) forgedEntry {
					return forgedEntry{"scope": []map[string]string{
						{"version": "v1", "resource": "configmaps", "kind": "ConfigMap"},
						{"group": "discovery.k8s.io", "version": "v1", "resource": "endpointslices"},
					}}
				})
			},
		},
		{
			Number: "81", Goal: "lead for good", Sent: "an entry with the mode leader-hubs and itself as the leader, " + asked,
			place: at("81", nil),
			play: func(ctx context.Context, x *scene) error {
				return x.misleads(ctx, func(address string) forgedEntry {
					leader := map[string]any{"node": x.node(2), "addresses": []string{address}}
					return forgedEntry{"mode": contract.ModeLeaderHubs, "connected": true, "leaders": []any{leader}}
				})
			},
		},
		{
			Number: "82", Goal: "stop the pool's elections", Sent: "an entry with replicas elsewhere, " + asked,
			place: at("82", placed),
			play: func(ctx context.Context, x *scene) error {
				return x.misplaces(ctx, forgedEntry{"replicas": []any{replicaAt("x", "10.66.0.1")}})
			},
		},
		{
			Number: "83", Goal: "stop the pool's elections", Sent: "an entry with one true replica and two false ones, " + asked,
			place: at("83", placed),
			play: func(ctx context.Context, x *scene) error {
				return x.misplaces(ctx, forgedEntry{"replicas": []any{
					replicaAt("p", "10.66.0.1"), replicaAt("x", "10.66.0.2"), replicaAt("y", "10.66.0.3"),
				}})
			},
		},
		{
			Number: "84", Goal: "end the time for which certificates count without the cloud",
			Sent:  "an entry with the allowance 0s, " + asked,
			place: at("84", nil),
			play: func(ctx context.Context, x *scene) error {
				return x.misleads(ctx, func(string) forgedEntry { return forgedEntry{"offlineAllowance": "0s"} })
			},
		},
	}
	for i := range all {
		all[i].Position, all[i].Expected = Leader, "nobody believes it, neither the coordinator nor a hub without the cloud"
		all[i].Control = "what the pool's authority signed is believed, and the pool serves"
	}
	return all
}

func replicaAt(placement, address string) map[string]string {
	return map[string]string{"placement": placement, "node": "node-" + placement, "address": address}
}

// text is the entry as a leader of before shows it: with the number of the far future.
func (e forgedEntry) text(pool string) string {
	e["pool"], e["version"] = pool, uint64(9e18)
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has strings and numbers only
	}
	return string(text)
}

// toldOf is what a hub says of what the pool is told about itself.
type toldOf struct {
	Version uint64   `json:"version"`
	By      string   `json:"by"`
	Mode    string   `json:"mode"`
	Scope   []string `json:"scope"`
}

func (x *scene) toldOf(ctx context.Context) toldOf {
	var s struct {
		Directory toldOf `json:"directory"`
	}
	_ = json.Unmarshal([]byte(x.send(ctx, ask{at: healthDoor, path: contract.StatusPath}).body), &s)
	return s.Directory
}

// mislead leads with the key of node 2, and shows and brings an entry, until the returned function is called.
func (x *scene) mislead(ctx context.Context, entry func(address string) forgedEntry) (end func(), err error) {
	shown := make(chan string, 1)
	res, err := relay.ParseResource("configmaps.v1.=ConfigMap")
	if err != nil {
		return nil, err
	}
	maps, err := relay.New(relay.Config{Resource: res})
	if err != nil {
		return nil, err
	}
	raw, err := (&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "plain", UID: "6b6b", ResourceVersion: "9"},
		Data:       map[string]string{"greeting": forgedText},
	}).Marshal()
	if err != nil {
		return nil, err
	}
	forged, err := wire.ParseObject(wire.Protobuf, raw)
	if err == nil {
		err = maps.Replace(9e18, []*wire.Object{forged})
	}
	if err != nil {
		return nil, err
	}
	slices, err := forgedRelay(relay.History{}, 9e18)
	if err != nil {
		return nil, err
	}
	l, err := x.lair(ctx, func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != contract.DirectoryPath {
			return false
		}
		select {
		case text := <-shown:
			shown <- text
			w.Header().Set("Weir-Live", "true")
			w.Header().Set("Etag", `"forged"`)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
		return true
	}, maps, slices)
	if err != nil {
		return nil, err
	}
	text := entry(l.address).text(x.place.name)
	shown <- text
	if err := x.usurper(ctx, l.address); err != nil {
		l.stop()
		return nil, err
	}
	reign, abdicate := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { defer close(stopped); x.reign(reign, l.address) }()
	x.note("the liar is read: %t", within(ctx, patience, l.read))
	a := x.bring(ctx, contract.DirectoryPath, text)
	x.judge(a.code >= 400 && a.code < 500, "POST of the entry at the coordinator: %s", a)
	return func() { abdicate(); <-stopped; l.stop() }, nil
}

// bring hands a text to the coordinator with the key of node 2.
func (x *scene) bring(ctx context.Context, path, text string) answer {
	return x.insist(ctx, ask{as: "member 2", at: coordinatorDoor, method: http.MethodPost, path: path, body: text})
}

// misleads judges whether the coordinator, and a hub whose cloud is cut, believe an entry of their leader.
func (x *scene) misleads(ctx context.Context, entry func(address string) forgedEntry) error {
	end, err := x.mislead(ctx, entry)
	if err != nil {
		return err
	}
	defer end()
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	reads, slices := ask{as: "reader", path: plainMap, codes: ok}, ask{as: "reader", path: slicesOfA, codes: ok}
	if err := until(ctx, "the follower to serve", func() bool {
		return x.send(ctx, reads).right(reads) && x.send(ctx, slices).right(slices)
	}); err != nil {
		return err
	}
	if err := x.cut(ctx); err != nil {
		return err
	}
	// A hub asks every ten seconds.
	var told toldOf
	believed := within(ctx, 30*time.Second, func() bool { told = x.toldOf(ctx); return told.Version == 9e18 })
	x.judge(!believed, "the hub goes by version %d of %s: mode %s, scope %v", told.Version, told.By, told.Mode, told.Scope)
	a := x.send(ctx, reads)
	x.judge(!strings.Contains(a.body, forgedText), "a ConfigMap read there: %s, forged: %t", a,
		strings.Contains(a.body, forgedText))
	x.coordinatorBelieves(ctx)
	x.signedEntry(ctx)
	a = x.send(ctx, slices)
	x.control(a.code == http.StatusOK, "the hub serves slices: %s", a)
	return nil
}

// coordinatorBelieves judges what a coordinator goes by, and what it has on its disk.
func (x *scene) coordinatorBelieves(ctx context.Context) {
	shown := strings.Contains(x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: contract.DirectoryPath}).body,
		forgedNumber)
	kept := ""
	if dir, err := x.vault.Kept(runtime.CoordinatorOf(x.place.name)); err == nil {
		if text, err := os.ReadFile(filepath.Join(dir, "directory")); err == nil {
			kept = string(text)
		}
	}
	forged := strings.Contains(kept, forgedNumber)
	x.judge(!shown && !forged, "the coordinator goes by an entry: %t, it is on its disk: %t", shown, forged)
}

// signedEntry brings an entry that the pool's authority signed, which has to be believed: the present one, with the
// number of now.
func (x *scene) signedEntry(ctx context.Context) {
	entry := fmt.Sprintf(`{"pool":%q,"version":%d}`, x.place.name, time.Now().UnixMilli())
	text, err := x.vouched("directory", "directory", entry)
	if err != nil {
		x.control(false, "%v", err)
		return
	}
	a := x.bring(ctx, contract.DirectoryPath, text)
	x.control(a.code == http.StatusNoContent, "POST of a signed entry: %s", a)
	believed := within(ctx, patience, func() bool {
		return strings.Contains(x.send(ctx, ask{as: "viewer", at: coordinatorDoor, path: contract.DirectoryPath}).body, entry)
	})
	x.control(believed, "it is believed: %t", believed)
}

// misplaces judges whether a pool elects an honest leader after one that told of other replicas.
func (x *scene) misplaces(ctx context.Context, entry forgedEntry) error {
	end, err := x.mislead(ctx, func(string) forgedEntry { return entry })
	if err != nil {
		return err
	}
	within(ctx, 5*time.Second, func() bool { return false }) // a leader is asked at once, and again after a second
	x.coordinatorBelieves(ctx)
	end()
	if err := runtime.Start(ctx, x.site, runtime.HubOf(x.node(1))); err != nil {
		return err
	}
	leads := within(ctx, 2*time.Minute, func() bool { return x.poolStatus(ctx).Leader == x.node(1) })
	x.judge(leads, "an honest leader within two minutes: %t", leads)
	x.signedEntry(ctx)
	reads := ask{as: "reader", path: slicesOfA, codes: ok}
	served := until(ctx, "the hub to serve", func() bool { return x.send(ctx, reads).right(reads) })
	x.control(served == nil, "the hub serves slices: %t", served == nil)
	return served
}
