// Package delta is the form of a watch in which one relay tells another what has changed in an object, and not the
// whole object again. One endpoint of a slice of a hundred is a hundred bytes instead of eleven thousand.
//
// A reader that takes this form asks for it by Media, with the Kubernetes forms after it. So a server that does not
// know it answers as ever.
//
// # Frames
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
package delta
