package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// Policy is the audit policy of a kube-apiserver that logs what the parts of Weir do, and little else: a policy names
// users, and knows no beginnings of names. What is left of others Read passes over.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + manager + `]
- level: Metadata
  verbs: [delete]
  resources: [{resources: [nodes]}]
- level: None
  users: [system:anonymous]
- level: None
  userGroups: [system:masters, system:nodes, system:serviceaccounts, system:unauthenticated]
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler]
- level: Metadata
  userGroups: [system:authenticated]
- level: None
`

const manager = "system:serviceaccount:kube-system:weir-manager"

// ours reports whether a user is a part of Weir, or a node that joins.
func ours(user string) bool {
	return user == manager || strings.HasPrefix(user, "weir:") || strings.HasPrefix(user, "system:bootstrap:")
}

// Thief is the user agent of somebody else who has the credential of a part: what he is refused is not missing.
const Thief = "thief"

// File is what a log is called in a folder of logs.
const File = "audit.log"

// maxEvent bounds one line of a log.
const maxEvent = 1 << 20

// Use is what was done.
type Use struct {
	used    map[Grant]bool
	Refused []string // requests that no role allows, each once, with what they are about if that is in a namespace
	Events  int

	gone    map[string]bool // Nodes that were deleted in the log that is read
	managed bool            // weir-manager is in it
	reports []string        // of leaders that were refused in it
}

// event is what matters of an audit event.
type event struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource, Subresource, APIGroup, Namespace, Name string
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

var reason = regexp.MustCompile(
	`allowed by (?:ClusterRoleBinding "[^"]*"|RoleBinding "[^"]*/([^"/]*)") of (ClusterRole|Role) "([^"]*)"`)

// Read takes an audit log in. One that ends in the middle of a line, because its writer was killed, is whole up to
// there.
func (u *Use) Read(r io.Reader) error {
	if u.used == nil {
		u.used = map[Grant]bool{}
	}
	u.gone, u.managed, u.reports = map[string]bool{}, false, nil
	defer u.judgeReports()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	var broken error
	for lines.Scan() {
		if broken != nil {
			return broken
		}
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			broken = fmt.Errorf("read an audit log: %w", err)
			continue
		}
		u.take(&e)
	}
	if err := lines.Err(); err != nil {
		return errors.Join(broken, fmt.Errorf("read an audit log: %w", err))
	}
	return nil
}

// refuse notes a request that no role allows.
func (u *Use) refuse(what string) {
	if !slices.Contains(u.Refused, what) {
		u.Refused = append(u.Refused, what)
	}
}

// judgeReports counts the refused reports of leaders at the end of a log. weir-manager grants these: where there is
// none, a leader tries, is refused, and pauses.
func (u *Use) judgeReports() {
	if u.managed {
		for _, what := range u.reports {
			u.refuse(what)
		}
	}
}

// reports reports whether the leader of a pool tells the cloud by a request which nodes it hears (package heartbeat).
func reports(e *event) bool {
	o := e.ObjectRef
	return o != nil && e.Verb == "patch" && o.Resource == "leases" && o.Namespace == contract.KeyNamespace &&
		strings.HasPrefix(o.Name, contract.HeardPrefix) && strings.HasPrefix(e.User.Username, contract.ForwarderUserPrefix)
}

func (u *Use) take(e *event) {
	if o := e.ObjectRef; o != nil && e.Verb == "delete" && o.Resource == "nodes" && o.APIGroup == "" &&
		o.Subresource == "" {
		u.gone[o.Name] = true
	}
	if !ours(e.User.Username) || e.UserAgent == Thief {
		return
	}
	u.Events++
	u.managed = u.managed || e.User.Username == manager
	g := Grant{Verb: e.Verb}
	url, _, _ := strings.Cut(e.RequestURI, "?")
	if o := e.ObjectRef; o != nil {
		g.Group, g.Resource = o.APIGroup, o.Resource
		if o.Subresource != "" {
			g.Resource += "/" + o.Subresource
		}
	} else {
		g.URL = url
	}
	if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
		if part := strings.Split(e.User.Username, ":"); u.gone[part[len(part)-1]] { // its rights went with its Node
			return
		}
		g.Role = e.User.Username
		s := g.String()
		if o := e.ObjectRef; o != nil && o.Namespace != "" {
			s += " " + o.Namespace + "/" + o.Name
		}
		if reports(e) {
			u.reports = append(u.reports, s)
		} else {
			u.refuse(s)
		}
		return
	}
	m := reason.FindStringSubmatch(e.Annotations["authorization.k8s.io/reason"])
	if m == nil {
		return
	}
	g.Role = m[2] + " " + m[3]
	if m[2] == "Role" {
		g.Role = m[2] + " " + m[1] + "/" + m[3]
	}
	u.used[g] = true
}

// Unused are those of some grants that nothing has used.
func (u *Use) Unused(of []Grant) (unused []Grant) {
	for _, g := range of {
		if !u.used[g] {
			unused = append(unused, g)
		}
	}
	return unused
}
