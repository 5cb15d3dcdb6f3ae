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
// # The delta form
//
// It is the form of a watch in which one relay tells another what has changed in an object, and not the whole object
// again. One endpoint of a slice of a hundred is a hundred bytes instead of eleven thousand.
//
// A reader that takes this form asks for it by DeltaMedia, with the Kubernetes forms after it. So a server that does
// not know it answers as ever.
//
// # Frames of the delta form
//
// A stream is a row of frames. Each is its length as a varint, a byte that names its kind, and what that kind has:
//
//   - changed, deleted: the resourceVersion of the object before as a varint, and one zstd frame (RFC 8878) that makes
//     the object of it. The dictionary is the object before, raw; its id is a hash of that object. So the reader knows
//     whether it has what the difference is built on, and the frame's checksum says whether the result is right.
//   - whole: a zstd frame of events in their ordinary form, each behind its length as a varint. What is new is told so.
//   - plain: one event in its ordinary form.
//   - same: initial objects that the reader has just so, each named by six bytes. It is for a reader that says, by the
//     parameter since of the media type, up to which version it has all. So after 410 it is sent what it lacks.
//   - mark: a bookmark, its version as a varint, and what it says beside that.
//
// A difference is a function of its event alone. So it is made once for all readers, and is right after each resume,
// change of leader and change of source.
//
// What does not fit is ErrBase. The reader then asks for the ordinary form: see source.Feeder.
//
// The package starts no goroutine. Everything it returns is immutable by agreement: strings of an Object
// alias its bytes.
package wire
