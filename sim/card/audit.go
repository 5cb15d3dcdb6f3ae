package card

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/audit"
)

// What hubs ask of kube-apiserver, as it is counted.
const (
	lists   = "lists" // streaming lists too
	others  = "lists of anything else"
	watches = "watches"
	reviews = "access reviews"
)

const maxEvent = 1 << 20

// request is what is read of an event of an audit log.
type request struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
	} `json:"objectRef"`
}

// logged is how far the audit log goes now.
func (b *bench) logged() (int64, error) {
	f, err := b.auditLog()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Seek(0, io.SeekEnd)
}

// did counts what the hubs of each pool asked since.
func (b *bench) did(from int64) (map[string]map[string]float64, error) {
	f, err := b.auditLog()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	since, err := audit.After(f, from)
	if err != nil {
		return nil, err
	}
	return count(since)
}

// count counts requests of hubs by pool and kind. A watch is logged when it begins and when it ends, and counts when it
// begins.
func count(r io.Reader) (map[string]map[string]float64, error) {
	did := map[string]map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e request
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may be under way
		}
		pool, what := e.pool(), e.kind()
		if what == lists {
			what = e.list()
		}
		if pool == "" || what == "" {
			continue
		}
		if did[pool] == nil {
			did[pool] = map[string]float64{}
		}
		did[pool][what]++
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return did, nil
}

// pool is that of the hub who asks, as itself or as its node, whose name is that of its pool and a number; "": another
// asks.
func (e *request) pool() string {
	if name, ok := strings.CutPrefix(e.User.Username, contract.HubUserPrefix); ok {
		pool, _, _ := strings.Cut(name, ":")
		return pool
	}
	node, ok := strings.CutPrefix(e.User.Username, "system:node:")
	if i := strings.LastIndexByte(node, '-'); ok && i > 0 {
		return node[:i]
	}
	return ""
}

// list tells lists apart by what is listed: hubs compare samples of a namespace, or look where the cloud's history
// stands, at moments of their own.
func (e *request) list() string {
	switch of := e.ObjectRef; {
	case of.Resource != "endpointslices" && of.Resource != "endpoints":
		return others
	case of.Namespace != "":
		return lists + " of " + of.Resource + " of one namespace"
	default:
		return lists + " of " + of.Resource
	}
}

func (e *request) kind() string {
	switch {
	case e.ObjectRef == nil:
		return ""
	case e.Verb == "list" && e.Stage == "ResponseComplete":
		return lists
	case e.Verb == "watch" && e.Stage == "ResponseStarted":
		if strings.Contains(e.RequestURI, "sendInitialEvents=") && !strings.Contains(e.RequestURI, "sendInitialEvents=0") &&
			!strings.Contains(e.RequestURI, "sendInitialEvents=false") {
			return lists
		}
		return watches
	case e.Verb == "create" && strings.HasSuffix(e.ObjectRef.Resource, "accessreviews") && e.Stage == "ResponseComplete":
		return reviews
	}
	return ""
}
