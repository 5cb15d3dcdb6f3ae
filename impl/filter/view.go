package filter

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// scope is how near endpoints have to be.
type scope string

const (
	anywhere scope = ""
	sameNode scope = "node"
	samePool scope = "pool"
)

// serviceLabel of a slice names its Service.
const serviceLabel = "kubernetes.io/service-name"

// view is what is known of topology. It is immutable.
type view struct {
	node     string
	members  map[string]bool  // nodes of the pool, with this one; nil: not known
	services map[string]scope // by namespace/name, of those that say by annotation
}

// takes tells which nodes' endpoints of a slice are near enough; nil if all are.
func (v *view) takes(o *wire.Object) func(node string) bool {
	of := scope(o.Labels.Get(contract.TopologyLabel))
	if of != sameNode && of != samePool {
		of = v.services[o.Namespace+"/"+o.Labels.Get(serviceLabel)]
	}
	switch {
	case of == sameNode:
		return func(node string) bool { return node == v.node }
	case of == samePool && v.members != nil:
		return func(node string) bool { return v.members[node] }
	}
	return nil
}

func scopeOf(annotation string) scope {
	switch annotation {
	case contract.HostnameTopology:
		return sameNode
	case contract.PoolTopology, contract.ZoneTopology:
		return samePool
	}
	return anywhere
}

func (v *view) equal(o *view) bool {
	return (v.members == nil) == (o.members == nil) && maps.Equal(v.members, o.members) && maps.Equal(v.services, o.services)
}

// kept is what of a view is in the file.
type kept struct {
	Members  []string         `json:"members,omitempty"`
	Services map[string]scope `json:"services,omitempty"`
}

func (f *Filters) restore() {
	if f.File == "" {
		return
	}
	b, err := os.ReadFile(f.File)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		f.Logger.Error("what was kept of the pool's members and of Services' topology cannot be used: endpoints are not filtered until clients list Services again",
			"file", f.File, "err", err)
		return
	}
	f.view.services = k.Services
	f.view.members = membersOf(k.Members, f.Node)
}

func membersOf(names []string, node string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := map[string]bool{node: true}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// keep writes a view to the file, durably, before anybody sees what it was learnt from: who goes on behind that is not shown it again.
func (f *Filters) keep(v *view) {
	if f.File == "" {
		return
	}
	b, err := json.Marshal(kept{Members: slices.Sorted(maps.Keys(v.members)), Services: v.services})
	if err == nil {
		err = disk.WriteFile(f.File, b)
	}
	if err != nil {
		f.Logger.Warn("cannot keep the pool's members and Services' topology", "file", f.File, "err", err)
	}
}

// setMembers takes the nodes of the pool.
func (f *Filters) setMembers(names []string) {
	f.change(func(v *view) { v.members = membersOf(append(names, f.Node), f.Node) })
}

// learn takes the topology of some Services, by namespace/name; anywhere is none.
func (f *Filters) learn(some map[string]scope) {
	f.mu.Lock()
	news := false
	for key, of := range some {
		news = news || f.view.services[key] != of
	}
	f.mu.Unlock()
	if !news {
		return
	}
	f.change(func(v *view) {
		v.services = maps.Clone(v.services)
		if v.services == nil {
			v.services = map[string]scope{}
		}
		for key, of := range some {
			v.services[key] = of
			if of == anywhere {
				delete(v.services, key)
			}
		}
	})
}
