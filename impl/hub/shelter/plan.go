package shelter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// plan is a request in brief, and what it makes of the object that the hub holds.
type plan struct {
	body    []byte
	becomes object // with the metadata of before
	beats   bool   // it may be that it says no more than that a node was alive, see onlyBeats
}

// errNotPlain is why a request is sent as it came although nothing is wrong with it.
var errNotPlain = errors.New("it is not what a kubelet sends")

// patch plans a strategic merge patch of a status.
func patch(held object, _ string, body []byte) (p plan, err error) {
	var of map[string]any
	if err := utiljson.Unmarshal(body, &of); err != nil {
		return p, err
	}
	metadata, ok := of["metadata"].(map[string]any)
	if _, given := of["metadata"]; given && !ok || !only(of, "metadata", "status") ||
		!only(metadata, "uid", "labels", "annotations") {
		return p, errNotPlain
	}
	if uid, given := metadata["uid"]; given && uid != string(held.GetUID()) {
		return p, fmt.Errorf("it is meant for the object with uid %v", uid)
	}
	if metadata == nil {
		metadata = map[string]any{}
		of["metadata"] = metadata
	}
	p.beats = only(metadata, "uid")
	metadata["resourceVersion"] = held.GetResourceVersion()
	if p.body, err = json.Marshal(of); err != nil {
		return p, err
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(held)
	if err != nil {
		return p, err
	}
	delete(of, "metadata") // that comes with the answer
	p.becomes = reflect.New(reflect.TypeOf(held).Elem()).Interface().(object)
	is, err := merge(was, of, p.becomes)
	if err != nil {
		return p, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(is, p.becomes, true); err != nil {
		return p, err // also of fields that are not known here
	}
	prepare(p.becomes, held)
	return p, nil
}

// merge applies a strategic merge patch. The library panics on some that mean nothing.
func merge(was, patch map[string]any, of object) (is map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("merge a patch: %v", p)
		}
	}()
	return strategicpatch.StrategicMergeMapPatch(was, patch, of)
}

// only reports whether a JSON object has no other fields than these.
func only(of map[string]any, names ...string) bool {
	n := 0
	for _, name := range names {
		if _, ok := of[name]; ok {
			n++
		}
	}
	return n == len(of)
}

var ofDeleteOptions = wire.NewSchema(reflect.TypeFor[metav1.DeleteOptions]())

// deletion plans that a pod ends at once.
func deletion(held object, contentType string, body []byte) (p plan, err error) {
	var options metav1.DeleteOptions
	var kind wire.Kind
	switch contentType {
	case runtime.ContentTypeJSON:
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		err = d.Decode(&options)
	case runtime.ContentTypeProtobuf:
		var raw []byte
		if kind, raw, err = wire.SplitEnvelope(body); err != nil {
			return p, err
		}
		if ofDeleteOptions.Unknown(raw) != "" {
			return p, errNotPlain
		}
		err = options.Unmarshal(raw)
	default:
		err = errNotPlain
	}
	if err != nil {
		return p, err
	}
	version, uid := held.GetResourceVersion(), held.GetUID()
	on := options.Preconditions
	grace := options.GracePeriodSeconds
	if grace == nil || *grace != 0 || len(options.DryRun) > 0 || on == nil || on.UID == nil || *on.UID != uid ||
		on.ResourceVersion != nil || options.OrphanDependents != nil || options.PropagationPolicy != nil ||
		options.IgnoreStoreReadErrorWithClusterBreakingPotential != nil {
		return p, errNotPlain
	}
	on.ResourceVersion = &version
	p.becomes = held
	if contentType == runtime.ContentTypeJSON {
		p.body, err = json.Marshal(options)
		return p, err
	}
	raw, err := options.Marshal()
	p.body = wire.Envelope(kind, raw)
	return p, err
}
