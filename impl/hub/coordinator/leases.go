package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
)

const (
	leasesPage = 100           // Leases that are asked for at a time: a coordinator keeps 4 KiB of each
	maxPage    = maxAnswer     // bytes of them
	maxPages   = 2 * leasesMax // answers of one list, those that are asked again among them
	leasesMax  = heartbeat.MaxNodes
	// maxLeaseEvent bounds one event: a Lease is some hundred bytes.
	maxLeaseEvent = 1 << 20
)

// isName reports whether a name can be that of a Lease, so that a path has one element for it.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// LeaseList is what could be read of a list. Its Leases are leasesMax at most.
type LeaseList struct {
	Version string // of the list, after which a watch begins
	Items   []coordinationv1.Lease
	Unread  int // Leases that are too large, or none: they are left out
}

// ListLeases lists some, page by page. One that cannot be read keeps nobody from reading the others.
func (r *Replica) ListLeases(ctx context.Context, path, query string) (LeaseList, error) {
	var list LeaseList
	next := ""
	for size, pages := leasesPage, 0; len(list.Items)+list.Unread < leasesMax; pages++ {
		p, err := r.leases(ctx, path+"?"+query+"&limit="+strconv.Itoa(size)+"&continue="+url.QueryEscape(next))
		switch {
		case err != nil:
			return list, err
		case pages == maxPages:
			return list, fmt.Errorf("list leases: more than %d answers", maxPages)
		case p.large && size > 1: // one by one from here on, to find which
			size = 1
			continue
		case p.large:
			list.Unread++
		default:
			list.take(p.items)
		}
		if list.Version == "" {
			list.Version = p.meta.ResourceVersion
		}
		if next = p.meta.Continue; next == "" {
			break
		}
		if !p.large && size < leasesPage {
			size *= 2 // that one is passed
		}
	}
	return list, nil
}

func (l *LeaseList) take(items []json.RawMessage) {
	for _, raw := range items {
		var lease coordinationv1.Lease
		if err := json.Unmarshal(raw, &lease); err != nil || !isName(lease.Name) { // requests would name something else by it
			l.Unread++
			continue
		}
		l.Items = append(l.Items, lease)
	}
}

// page is an answer to a list.
type page struct {
	meta  metav1.ListMeta
	items []json.RawMessage
	large bool // there is more than maxPage of it, and no item is known
}

func (r *Replica) leases(ctx context.Context, uri string) (p page, err error) {
	resp, err := r.get(ctx, uri)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return p, fmt.Errorf("list leases: %w", err)
	}
	if len(body) > maxPage {
		p.large = true
		if p.meta, err = listMeta(body); err != nil {
			return p, fmt.Errorf("list leases: more than %d bytes: %w", maxPage, err)
		}
		return p, nil
	}
	var all struct {
		Metadata metav1.ListMeta
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return p, fmt.Errorf("list leases: %w", err)
	}
	p.meta, p.items = all.Metadata, all.Items
	return p, nil
}

// listMeta reads the metadata of a list of which only the beginning is there. They come before the items.
func listMeta(beginning []byte) (m metav1.ListMeta, err error) {
	d := json.NewDecoder(bytes.NewReader(beginning))
	if _, err := d.Token(); err != nil {
		return m, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return m, err
		}
		if key == "metadata" {
			return m, d.Decode(&m)
		}
		var other json.RawMessage
		if err := d.Decode(&other); err != nil {
			return m, err
		}
	}
	return m, errors.New("no metadata")
}

// get asks for something that is read as it comes. The caller closes the body.
func (r *Replica) get(ctx context.Context, uri string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.at(uri), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.sees(resp.StatusCode)
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("leases: %s", resp.Status)
	}
	return resp, nil
}

// WatchLeases tells of changes of Leases until the watch ends. An event that is none is left out.
func (r *Replica) WatchLeases(ctx context.Context, path, query string,
	take func(kind string, l *coordinationv1.Lease)) error {
	resp, err := r.get(ctx, path+"?watch=1&"+query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	bounded := &io.LimitedReader{R: resp.Body}
	frames := json.NewDecoder(bounded)
	for {
		bounded.N = maxLeaseEvent
		var ev struct {
			Type   string
			Object json.RawMessage
		}
		if err := frames.Decode(&ev); err != nil {
			return fmt.Errorf("watch leases: %w", err)
		}
		switch ev.Type {
		case "ADDED", "MODIFIED", "DELETED":
			var l coordinationv1.Lease
			if err := json.Unmarshal(ev.Object, &l); err != nil || !isName(l.Name) {
				continue
			}
			take(ev.Type, &l)
		default:
			return errors.New("watch leases: " + ev.Type)
		}
	}
}
