package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// write takes writes of Endpoints and answers as kube-apiserver does. path is what follows "endpoints".
func (c *fakeCloud) write(w http.ResponseWriter, req *http.Request, namespace string, path []string) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender has left
	}
	name, sub := "", ""
	if len(path) > 0 {
		name = path[0]
	}
	if len(path) > 1 {
		sub = path[1]
	}
	reply := func(o any) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = json.NewEncoder(w).Encode(o)
	}
	resource, there := schema.GroupResource{Resource: "endpoints"}, c.relays["endpoints"].Object(namespace+"/"+name)
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
	}
	switch {
	case req.URL.Query().Has("dryRun"):
		reply(c.object(namespace, name, c.version+1000))
	case req.Method == http.MethodPost && name == "":
		var in corev1.Endpoints
		check(c.t, json.Unmarshal(body, &in))
		if c.relays["endpoints"].Object(namespace+"/"+in.Name) != nil {
			answer.Write(w, apierrors.NewAlreadyExists(resource, in.Name))
			return
		}
		reply(c.put(namespace, in.Name))
	case req.Method == http.MethodDelete && name == "":
		list := corev1.EndpointsList{TypeMeta: metav1.TypeMeta{Kind: "EndpointsList", APIVersion: "v1"}}
		list.ResourceVersion = strconv.FormatUint(c.relays["endpoints"].Status().Version, 10) // of before
		for o := range c.relays["endpoints"].Objects() {
			list.Items = append(list.Items, *c.object(o.Namespace, o.Name, o.Version))
		}
		for _, e := range list.Items {
			c.remove(e.Namespace, e.Name)
		}
		reply(list)
	case there == nil && req.Method != http.MethodPut:
		answer.Write(w, apierrors.NewNotFound(resource, name))
	case req.Method == http.MethodDelete, sub == "eviction":
		if status.Details = (&metav1.StatusDetails{Name: name, Kind: "endpoints"}); sub == "" {
			status.Details.UID = c.uid(name)
		}
		c.remove(namespace, name)
		reply(status)
	case req.Header.Get("Fail") != "":
		c.put(namespace, name)
		if req.Header.Get("Fail") == "break" {
			panic(http.ErrAbortHandler)
		}
		answer.Write(w, apierrors.NewInternalError(errors.New("the server died after the write")))
	default:
		var in corev1.Endpoints
		_ = json.Unmarshal(body, &in)
		if in.ResourceVersion != "" && (there == nil || in.ResourceVersion != strconv.FormatUint(there.Version, 10)) {
			answer.Write(w, apierrors.NewConflict(resource, name, errors.New("another version")))
			return
		}
		e := c.put(namespace, name)
		if e.APIVersion, e.Kind = "v1", "Endpoints"; sub == "scale" {
			e.Kind, e.Subsets, e.ResourceVersion = "Scale", nil, "1"
		}
		reply(e)
	}
}

// object is an Endpoints object at a version.
func (c *fakeCloud) object(namespace, name string, version uint64) *corev1.Endpoints {
	return &corev1.Endpoints{
		TypeMeta: metav1.TypeMeta{Kind: "Endpoints", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: c.uid(name), ResourceVersion: strconv.FormatUint(version, 10),
		},
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}}}},
	}
}

// uid is an object's, of those that had its name one after another.
func (c *fakeCloud) uid(name string) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return types.UID(fmt.Sprintf("uid-%s-%d", name, c.removed[name]))
}

// remove deletes an Endpoints object.
func (c *fakeCloud) remove(namespace, name string) {
	c.mu.Lock()
	c.version++
	v := c.version
	c.mu.Unlock()
	old := c.relays["endpoints"].Object(namespace + "/" + name)
	if old == nil {
		return
	}
	raw, err := c.object(namespace, name, v).Marshal()
	check(c.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(c.t, err)
	c.set(func() { c.removed[name]++ })
	frame := wire.AppendProtobufFrame(nil, wire.Deleted, wire.Kind{APIVersion: "v1", Kind: "Endpoints"}, raw)
	check(c.t, c.relays["endpoints"].Apply(&wire.Event{Type: wire.Deleted, Version: v, Object: o, Frame: frame}))
}

// pass lets the version of the whole cloud grow, as writes of other resources do.
func (c *fakeCloud) pass() { c.set(func() { c.version += 10 }) }
