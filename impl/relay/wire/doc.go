// Package wire reads and writes Kubernetes objects, lists and watch streams without decoding them.
//
// An object stays the bytes that came from upstream: a bare protobuf message for built-in types, JSON for
// custom resources. What the package decodes is the little that a cache must know: namespace, name, uid,
// resourceVersion and labels. Lists and watch streams are read item by item, so no body is ever held as a whole.
//
// Facts it rests on (k8s.io/apimachinery v0.37, pkg/runtime/serializer):
//   - a protobuf body is "k8s\0" and a runtime.Unknown that wraps the message; list items are bare messages;
//   - a protobuf watch stream is a sequence of 4-byte big-endian lengths and bare metav1.WatchEvent messages,
//     whose object is again "k8s\0" and a runtime.Unknown;
//   - a JSON watch stream is a sequence of {"type":…,"object":…} values;
//   - in every built-in type metadata is field 1, in every list metadata is field 1 and items field 2;
//   - typed JSON list items carry no kind and apiVersion, watch objects do.
//
// The package starts no goroutine. Everything it returns is immutable by agreement: strings of an Object
// alias its bytes.
package wire
