package estimate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	maxLine      = 4 << 20 // bytes of a line: an event at level RequestResponse has two objects
	maxClients   = 100_000 // watches that are told apart
	maxResources = 2_000
	// begun is how long a log has to be to have all watches: a client begins each again within ten minutes.
	begun = 10 * time.Minute
)

// event is what counts of an audit.k8s.io/v1 Event.
type event struct {
	Stage      string    `json:"stage"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	SourceIPs  []string  `json:"sourceIPs"`
	UserAgent  string    `json:"userAgent"`
	At         time.Time `json:"stageTimestamp"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Group       string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// client is one watch of all objects of a resource.
type client struct{ address, agent, resource string }

// audited is what an audit log tells.
type audited struct {
	*Rates
	events, bad int
	first, last time.Time
	clients     map[client]bool
}

// ReadAudit reads an audit log, one event a line. addresses are those of the nodes of sites: whoever watches from there
// is a client on a node. Lines that are no event are counted and passed over.
func ReadAudit(r io.Reader, addresses map[string]bool) (*Rates, error) {
	a := &audited{Rates: newRates(Audit), clients: map[client]bool{}}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, long, err := readLine(lines)
		a.line(line, long, addresses)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
	}
	if a.events == 0 {
		return nil, fmt.Errorf("it has no event of audit.k8s.io/v1, one a line, among %d lines", a.bad)
	}
	if a.Took = a.last.Sub(a.first); a.Took < time.Second {
		return nil, fmt.Errorf("its %d events are all of one moment: a log of an hour or more is needed", a.events)
	}
	if a.bad > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d lines of the audit log are no events, or longer than %d MiB.", a.bad,
			maxLine>>20))
	}
	a.count(addresses)
	return a.Rates, nil
}

// readLine reads a line of at most maxLine bytes. A longer one is read to its end and not returned.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

func (a *audited) line(line []byte, long bool, addresses map[string]bool) {
	if len(bytes.TrimSpace(line)) == 0 && !long {
		return
	}
	var e event
	if long || json.Unmarshal(line, &e) != nil || e.Verb == "" || e.At.IsZero() {
		a.bad++
		return
	}
	a.events++
	if a.first.IsZero() || e.At.Before(a.first) {
		a.first = e.At
	}
	if e.At.After(a.last) {
		a.last = e.At
	}
	if e.ObjectRef == nil || e.ResponseStatus != nil && e.ResponseStatus.Code >= 300 {
		return
	}
	name := resourceName(e.ObjectRef.Resource, e.ObjectRef.Group)
	switch sub := e.ObjectRef.Subresource; {
	case e.Verb == "watch" && e.ObjectRef.Name == "" && e.ObjectRef.Namespace == "" && len(e.SourceIPs) > 0:
		if c := (client{e.SourceIPs[0], e.UserAgent, name}); addresses[c.address] && len(a.clients) < maxClients {
			a.clients[c] = true
		}
	case e.Stage != "ResponseComplete" || strings.Contains(e.RequestURI, "dryRun=") || sub != "" && sub != "status":
	case writes(e.Verb):
		if _, known := a.Changes[name]; known || len(a.Changes) < maxResources {
			a.Changes[name]++
		}
		if e.Verb == "create" && name == pods && sub == "" {
			a.Pods++
		}
	}
}

// count counts the clients of a node.
func (a *audited) count(addresses map[string]bool) {
	if a.Took < begun || len(addresses) == 0 {
		return
	}
	from := map[string]bool{}
	for c := range a.clients {
		from[c.address] = true
	}
	if len(from) == 0 {
		return
	}
	a.Clients = map[string]float64{}
	for c := range a.clients {
		a.Clients[c.resource] += 1 / float64(len(from))
	}
}

// writes reports whether a verb changes an object. That of many at once counts once.
func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func resourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
