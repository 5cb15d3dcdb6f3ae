package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var kindOfSlices = Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// web is a slice with endpoints.
type web struct {
	*rand.Rand
	discoveryv1.EndpointSlice
}

func newWeb(r *rand.Rand, name string, endpoints int) *web {
	s := &web{r, discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}}
	for range endpoints {
		s.Endpoints = append(s.Endpoints, s.point())
	}
	return s
}

func (s *web) point() discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", s.IntN(256), s.IntN(256), s.IntN(256))},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
		NodeName:   ptr.To(fmt.Sprintf("edge-%d", s.IntN(20))),
		TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-%08x-%05x", s.Uint32(), s.Uint32()&0xfffff),
			UID: types.UID(fmt.Sprintf("%08x-%016x", s.Uint32(), s.Uint64())),
		},
	}
}

// at is the slice at a version.
func (s *web) at(t testing.TB, version uint64) *Object {
	t.Helper()
	s.ResourceVersion = FormatVersion(version)
	raw, err := s.Marshal()
	check(t, err)
	o, err := ParseObject(Protobuf, raw)
	check(t, err)
	return o
}

func ordinary(typ string, o *Object) []byte {
	return AppendProtobufFrame(nil, typ, kindOfSlices, o.Raw)
}

func state(all ...*Object) func(func(*Object) bool) { return slices.Values(all) }

// TestChange: one endpoint of a hundred costs some hundred bytes, and what is made of them is the object.
func TestChange(t *testing.T) {
	s := newWeb(rand.New(rand.NewPCG(38, 1)), "web", 100)
	before := s.at(t, 1000)
	s.Endpoints[17] = s.point()
	now := s.at(t, 1001)
	s.Endpoints[3].Conditions.Ready = ptr.To(false)
	gone := s.at(t, 1002)
	stream, err := AppendDeltaChange(nil, Modified, before, now)
	check(t, err)
	if n := len(stream); n > 150 {
		t.Errorf("one endpoint of a hundred, %d bytes: %d", len(now.Raw), n)
	}
	stream, err = AppendDeltaChange(stream, Deleted, now, gone)
	check(t, err)
	r := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state(before))
	for _, want := range []struct {
		typ string
		o   *Object
	}{{Modified, now}, {Deleted, gone}} {
		ev, err := r.Next()
		check(t, err)
		if ev.Type != want.typ || ev.Version != want.o.Version || !bytes.Equal(ev.Object.Raw, want.o.Raw) ||
			!bytes.Equal(ev.Frame, ordinary(want.typ, want.o)) {
			t.Errorf("%s of version %d, want %s of %d", ev.Type, ev.Version, want.typ, want.o.Version)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) || len(r.objects)+len(r.keys) != 0 {
		t.Errorf("at the end: %v, %d objects are held", err, len(r.objects))
	}
}

// TestSizes: objects of any size go through, alone and together.
func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 7))
	for endpoints := range 40 {
		s := newWeb(r, "web", endpoints)
		before := s.at(t, 1000)
		s.Labels = map[string]string{"at": "1"}
		now := s.at(t, 1001)
		stream, err := AppendDeltaChange(nil, Modified, before, now)
		check(t, err)
		stream = AppendDeltaEvents(stream, ordinary(Modified, before))
		stream = AppendDeltaEvents(stream, ordinary(Modified, now), ordinary(Modified, before))
		in := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state(before))
		for i, want := range []*Object{now, before, now, before} {
			ev, err := in.Next()
			if err != nil || !bytes.Equal(ev.Object.Raw, want.Raw) {
				t.Fatalf("%d endpoints, event %d: %v", endpoints, i, err)
			}
		}
	}
}

// TestBomb: a frame that makes more than an object may have makes nothing.
func TestBomb(t *testing.T) {
	for _, n := range []int{maxText, maxText + 1} {
		text, err := apply(nil, appendWhole(nil, make([]byte, n)))
		if (err == nil) != (n <= maxText) || err == nil && len(text) != n {
			t.Errorf("%d bytes: %d, %v", n, len(text), err)
		}
	}
	z, err := zstd.NewWriter(nil, zstd.WithSingleSegment(false))
	check(t, err)
	var stream bytes.Buffer
	z.Reset(&stream) // of a stream the size is not said
	_, err = z.Write(make([]byte, maxText+1))
	check(t, err)
	check(t, z.Close())
	if text, err := apply(nil, stream.Bytes()); err == nil {
		t.Errorf("%d bytes of a stream", len(text))
	}
}

// TestLongFrame: attack 165. What is longer than a frame may be is refused before it is read.
func TestLongFrame(t *testing.T) {
	for _, n := range []uint64{maxFrame + 1, MaxObject, 1 << 62} {
		in := &endless{head: append(binary.AppendUvarint(nil, n), byte(whole))}
		ev, err := NewDeltaReader(in, Protobuf, kindOfSlices, state()).Next()
		if broken := (*MalformedError)(nil); !errors.As(err, &broken) || in.read > 64<<10 {
			t.Errorf("%d bytes: %v, %v after %d bytes", n, ev, err, in.read)
		}
	}
	in := &endless{head: append(binary.AppendUvarint(nil, maxFrame), byte(whole))}
	if _, err := NewDeltaReader(in, Protobuf, kindOfSlices, state()).Next(); err == nil || in.read < maxFrame {
		t.Errorf("the longest frame: %v after %d bytes", err, in.read)
	}
}

// endless is zeros without end behind a head.
type endless struct {
	head []byte
	read int
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.head = e.head[copy(p, e.head):]
	e.read += len(p)
	return len(p), nil
}

// TestManyEvents: attack 165. Events of one frame are made one by one, so a frame takes what its bytes take, however
// many events it has.
func TestManyEvents(t *testing.T) {
	failure := metav1.Status{Status: metav1.StatusFailure, Code: 410}
	raw, err := failure.Marshal()
	check(t, err)
	ev := AppendProtobufFrame(nil, Error, Kind{APIVersion: "v1", Kind: "Status"}, raw)
	all := slices.Repeat([][]byte{ev}, (maxText-1)/(len(ev)+1))
	r := NewDeltaReader(bytes.NewReader(AppendDeltaEvents(nil, all...)), Protobuf, kindOfSlices, state())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	first, err := r.Next()
	check(t, err)
	runtime.ReadMemStats(&after)
	if made := after.Mallocs - before.Mallocs; first.Type != Error || made > 1000 {
		t.Errorf("%s: the first of %d events has made %d objects", first.Type, len(all), made)
	}
	for n := 1; ; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) && n == len(all) {
			break
		} else if err != nil {
			t.Fatalf("event %d of %d: %v", n, len(all), err)
		}
	}
}

// TestBase: a difference to something else is told, and makes nothing.
func TestBase(t *testing.T) {
	s := newWeb(rand.New(rand.NewPCG(38, 2)), "web", 20)
	before := s.at(t, 1000)
	s.Endpoints[1] = s.point()
	now := s.at(t, 1001)
	s.Endpoints[2] = s.point()
	other := s.at(t, 1000) // as after a restore of the cloud: the same version
	stream, err := AppendDeltaChange(nil, Modified, before, now)
	check(t, err)
	for what, has := range map[string][]*Object{"nothing": nil, "a later version": {now}, "another object": {other}} {
		ev, err := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state(has...)).Next()
		if !errors.Is(err, ErrBase) {
			t.Errorf("%s is held: %v, %v", what, ev, err)
		}
	}
}

// TestSame: what the reader has comes by its name, once, and differences are built on it.
func TestSame(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 8))
	a, b := newWeb(r, "a", 50), newWeb(r, "b", 50)
	a.UID, b.UID = "a", "b"
	has := []*Object{a.at(t, 5), b.at(t, 6)}
	a.Endpoints[1] = a.point()
	now := a.at(t, 8)
	names := AppendDeltaName(AppendDeltaName(nil, has[0]), has[1])
	stream := AppendDeltaBookmark(AppendDeltaSame(nil, names), &Event{Version: 7, InitialEnd: true})
	stream, err := AppendDeltaChange(stream, Modified, has[0], now)
	check(t, err)
	read := func(stream []byte) *DeltaReader {
		in := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state())
		in.Has(state(has...))
		return in
	}
	in := read(stream)
	for _, want := range has {
		ev, err := in.Next()
		check(t, err)
		if ev.Type != Added || ev.Object != want || ev.Version != want.Version || ev.Kind != kindOfSlices {
			t.Errorf("%+v, want %s", ev, want.Key)
		}
	}
	if ev, err := in.Next(); err != nil || !ev.InitialEnd || in.has != nil {
		t.Errorf("%+v, %v, and %d are kept", ev, err, len(in.has))
	}
	if ev, err := in.Next(); err != nil || !bytes.Equal(ev.Object.Raw, now.Raw) {
		t.Errorf("%+v, %v", ev, err)
	}
	other := *has[0]
	other.UID = "another"
	later := a.at(t, 6)
	for what, bad := range map[string][]byte{
		"twice":           AppendDeltaSame(AppendDeltaSame(nil, names), names),
		"another object":  AppendDeltaSame(nil, AppendDeltaName(nil, &other)),
		"another version": AppendDeltaSame(nil, AppendDeltaName(nil, later)),
		"half a name":     AppendDeltaSame(nil, names[:nameSize+2]),
		"no name":         AppendDeltaSame(nil, nil),
	} {
		in := read(bad)
		var err error
		for n := 0; err == nil && n < 10; n++ {
			_, err = in.Next()
		}
		malformed, broken := (*MalformedError)(nil), what == "half a name" || what == "no name"
		if errors.As(err, &malformed) != broken || errors.Is(err, ErrBase) == broken {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEvents: what is no difference comes as it was.
func TestEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 3))
	a, b := newWeb(r, "a", 50).at(t, 7), newWeb(r, "b", 50).at(t, 8)
	marks := []Event{
		{Type: Bookmark, Kind: kindOfSlices, Version: 8, InitialEnd: true, Testimony: "5 3"},
		{Type: Bookmark, Kind: kindOfSlices, Version: 9, BatchTo: 1 << 40, BatchAdmits: 12},
		{Type: Bookmark, Kind: kindOfSlices, Version: 1},
	}
	failure := metav1.Status{Status: metav1.StatusFailure, Code: 410}
	raw, err := failure.Marshal()
	check(t, err)
	stream := AppendDeltaEvents(nil, ordinary(Added, a), ordinary(Added, b))
	if n := len(a.Raw) + len(b.Raw); len(stream) > n/2 {
		t.Errorf("%d bytes of %d", len(stream), n)
	}
	for i := range marks {
		stream = AppendDeltaBookmark(stream, &marks[i])
	}
	status := Kind{APIVersion: "v1", Kind: "Status"}
	stream = AppendDeltaEvents(stream, AppendProtobufFrame(nil, Error, status, raw))
	in := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state())
	for _, want := range []*Object{a, b} {
		ev, err := in.Next()
		check(t, err)
		if ev.Type != Added || !bytes.Equal(ev.Object.Raw, want.Raw) {
			t.Errorf("%s %v, want %s", ev.Type, ev.Object, want.Key)
		}
	}
	for _, want := range marks {
		ev, err := in.Next()
		check(t, err)
		if !reflect.DeepEqual(*ev, want) {
			t.Errorf("%+v, want %+v", *ev, want)
		}
	}
	if ev, err := in.Next(); err != nil || ev.Type != Error || ev.Status.Code != 410 {
		t.Errorf("%+v, %v", ev, err)
	}
}

// TestBreaks: a stream that breaks anywhere is told as broken, and no byte of it makes another object.
func TestBreaks(t *testing.T) {
	s := newWeb(rand.New(rand.NewPCG(38, 4)), "web", 30)
	before := s.at(t, 1000)
	s.Endpoints[1] = s.point()
	now := s.at(t, 1001)
	stream, err := AppendDeltaChange(nil, Modified, before, now)
	check(t, err)
	read := func(stream []byte) (*Event, error) {
		return NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state(before)).Next()
	}
	for n := 1; n < len(stream); n++ {
		if _, err := read(stream[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(stream), err)
		}
	}
	for i := range stream {
		for _, flip := range []byte{1, 0x80} {
			bad := bytes.Clone(stream)
			bad[i] ^= flip
			if ev, err := read(bad); err == nil && ev.Object != nil && !bytes.Equal(ev.Object.Raw, now.Raw) {
				t.Errorf("byte %d: another object", i)
			}
		}
	}
}

// FuzzReader: no stream makes a reader panic, or keep more than it was sent.
func FuzzReader(f *testing.F) {
	s := newWeb(rand.New(rand.NewPCG(38, 5)), "web", 3)
	before := s.at(f, 1000)
	s.Endpoints[1] = s.point()
	now := s.at(f, 1001)
	stream, err := AppendDeltaChange(nil, Modified, before, now)
	check(f, err)
	f.Add(stream)
	f.Add(AppendDeltaEvents(nil, ordinary(Added, now)))
	f.Add(AppendDeltaBookmark(nil, &Event{Version: 5, BatchTo: 6, Testimony: "1"}))
	f.Add(AppendDeltaSame(nil, AppendDeltaName(nil, before)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewDeltaReader(bytes.NewReader(stream), Protobuf, kindOfSlices, state(before))
		r.Has(state(before))
		for {
			if _, err := r.Next(); err != nil {
				return
			}
			if len(r.keys) > len(r.objects) {
				t.Fatalf("%d keys of %d objects", len(r.keys), len(r.objects))
			}
		}
	})
}

func BenchmarkChange(b *testing.B) {
	s := newWeb(rand.New(rand.NewPCG(38, 6)), "web", 100)
	before := s.at(b, 1000)
	s.Endpoints[1] = s.point()
	now := s.at(b, 1001)
	frame, err := AppendDeltaChange(nil, Modified, before, now)
	check(b, err)
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := AppendDeltaChange(nil, Modified, before, now)
			check(b, err)
		}
	})
	b.Run("applied", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := NewDeltaReader(bytes.NewReader(frame), Protobuf, kindOfSlices, state(before)).Next()
			check(b, err)
		}
	})
}
